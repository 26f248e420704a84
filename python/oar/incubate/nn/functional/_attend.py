"""The parts of attention that the functions of this package share."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.nn import functional as F


def rotated_half(x: Tensor) -> Tensor:
    first, second = ops.split(x, 2, -1)
    return ops.concat([-second, first], -1)


def rotated_pairs(x: Tensor) -> Tensor:
    pairs = ops.reshape(x, [*x.shape[:-1], x.shape[-1] // 2, 2])
    first, second = ops.unstack(pairs, -1)
    return ops.reshape(ops.stack([-second, first], -1), x.shape)


def additive(mask: Tensor, dtype) -> Tensor:
    """A mask that is added to scores: bools and integers say what is seen."""
    if mask.dtype.name == "bool" or mask.dtype.name.startswith("int"):
        return (ops.cast(mask, dtype) - 1.0) * 1e9
    return mask


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout: float, training: bool,
            mode: str) -> Tensor:
    """Attention of [batch, heads, length, size]; fewer heads of keys and values are shared by several queries."""
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (ops.repeat_interleave(t, groups, 1) for t in (k, v))
    scores = ops.matmul(q * scale, k, False, True)
    if mask is not None:
        scores = scores + mask
    return ops.matmul(F.dropout(ops.softmax(scores, -1), dropout, training=training, mode=mode), v)
