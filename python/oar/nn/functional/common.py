"""Functions of everyday use that are written with other ops."""

from __future__ import annotations

from typing import Any

import oar
from oar import _C
from oar._C import Tensor, ops
from oar.nn.functional.vision import interpolate, pad, unfold, upsample  # noqa: F401  (as in Paddle)

__all__ = ["bilinear", "dropout1d", "sequence_mask"]

# Ops of the core (src/oar/ops/families), in the module where Paddle's programs look for them too.
cosine_similarity = ops.cosine_similarity
linear = ops.linear


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """The form ``x1 · weight[k] · x2`` of each pair of rows, for each output feature ``k``.

    Args:
        x1: ``[batch, in1]``.
        x2: ``[batch, in2]``.
        weight: ``[out, in1, in2]``.
        bias: ``[1, out]``, added to the result ``[batch, out]``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.bilinear(oar.ones([2, 3]), oar.ones([2, 4]), oar.ones([5, 3, 4])).shape
        [2, 5]
    """
    result = oar.einsum("bi,kij,bj->bk", x1, weight, x2)
    return result if bias is None else result + bias


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets whole channels of sequences to zero, each with probability p, and scales the others so that the mean stays.

    Args:
        input: sequences, ``[N, C, L]`` or ``[C, L]``.
        p: the probability.
        training: whether anything is dropped.
        inplace: whether the input itself is written.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> made = F.dropout1d(oar.ones([4, 8, 3]), 0.5)
        >>> sorted(set(made.sum(-1).flatten().tolist()) | {0.0, 6.0})
        [0.0, 6.0]
    """
    if input.ndim not in (2, 3):
        raise ValueError(f"[dropout1d] input has shape {list(input.shape)}; sequences have two or three axes.")
    made = ops.dropout(input, p, list(range(input.ndim - 1)), training)
    return ops.copy_into(input, made) if inplace else made


def sequence_mask(x: Tensor, maxlen: Any = None, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """1 for positions within a sequence and 0 after its end, along a new last axis.

    Args:
        x: the lengths of the sequences.
        maxlen: the size of the new axis, a number or a Tensor; None for the greatest length.
        dtype: the dtype of the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.sequence_mask(oar.to_tensor([1, 3]), maxlen=4)
        Tensor(shape=[2, 4], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1, 0, 0, 0],
                [1, 1, 1, 0]])
    """
    if not isinstance(x, Tensor):
        raise _C.ArgumentTypeError(f"[sequence_mask] argument 'x' must be a tensor, not {type(x).__name__}.")
    longest = maxlen if maxlen is not None else x.max() if x.size else 0
    size = int(longest.item() if isinstance(longest, Tensor) else longest)
    return (oar.arange(size, dtype=x.dtype) < x.unsqueeze(-1)).astype(dtype)
