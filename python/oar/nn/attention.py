"""Which kernel computes attention."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The ways to compute attention.

    Examples:
        >>> import oar
        >>> oar.nn.attention.SDPBackend.MATH.value
        0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Says in which ways attention within the block may be computed. Oar has one kernel for all of them: it needs no memory
    for the scores, and is exact, so the block changes nothing.

    Args:
        backends: one of ``SDPBackend``, or several.
        set_priority: whether they come in the order of preference.

    Examples:
        >>> import oar
        >>> from oar.nn.attention import SDPBackend, sdpa_kernel
        >>> x = oar.ones([1, 3, 2, 4])
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     print(oar.nn.functional.scaled_dot_product_attention(x, x, x).shape)
        ...
        [1, 3, 2, 4]
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(one, SDPBackend) for one in chosen):
        raise ValueError(f"[sdpa_kernel] backends must be one or more of SDPBackend, not {backends!r}.")
    if all(one is SDPBackend.ERROR for one in chosen):
        raise ValueError("[sdpa_kernel] SDPBackend.ERROR is no way to compute attention.")
    yield
