"""The random stream."""

from __future__ import annotations

from oar import _C

__all__ = ["initial_seed"]


def initial_seed() -> int:
    """The seed that the random stream started with.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> _ = oar.seed(7)
        >>> oar.random.initial_seed()
        7
    """
    return _C.rng_state()[0]
