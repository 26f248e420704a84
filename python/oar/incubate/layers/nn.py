"""Layers of Paddle's incubating names."""

from __future__ import annotations

import oar
from oar._C import Tensor, ops

__all__ = ["shuffle_batch"]


def shuffle_batch(x: Tensor, seed: int | Tensor | None = None) -> Tensor:
    """The vectors along the last axis in another order, drawn at random.

    Args:
        x: of rank 2 or more.
        seed: a number for the same order every time; the random stream's next when None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> sorted(oar.incubate.layers.shuffle_batch(oar.to_tensor([[1.0], [2.0], [3.0]])).flatten().tolist())
        [1.0, 2.0, 3.0]
    """
    if x.ndim < 2:
        raise ValueError(f"[shuffle_batch] x must have 2 axes or more, not the shape {list(x.shape)}.")
    rows = ops.reshape(x, [-1, x.shape[-1]])
    place = oar.get_rng_state()
    try:
        if seed is not None:
            oar.seed(int(seed))
        order = ops.argsort(ops.rand([rows.shape[0]]))
    finally:
        if seed is not None:
            oar.set_rng_state(place)
    return ops.reshape(oar.gather(rows, order), list(x.shape))
