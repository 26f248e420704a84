"""Attention over the pairs that a sparse mask names."""

from __future__ import annotations

import math

from oar import _C, _sparse
from oar._C import Tensor, ops

__all__ = ["attention"]


def attention(
    query: Tensor, key: Tensor, value: Tensor, sparse_mask: Tensor, key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None, name: str | None = None,
) -> Tensor:
    """softmax(query keyᵀ / sqrt(width)) value, computed only for the pairs that sparse_mask holds.

    Args:
        query: a tensor ``[batch, heads, length, width]``.
        key: a tensor ``[batch, heads, length, width]``.
        value: a tensor ``[batch, heads, length, width]``.
        sparse_mask: a CSR tensor ``[batch * heads, length, length]``. Its values do not matter.
        key_padding_mask: a tensor ``[batch, length]``; pairs with a key whose entry is 0 are left out.
        attn_mask: a tensor ``[length, length]``; pairs whose entry is 0 are left out.

    Returns:
        a tensor ``[batch, heads, length, width]``.

    Examples:
        >>> import oar
        >>> x = oar.ones([1, 2, 3, 4])
        >>> mask = oar.eye(3).expand([2, 3, 3]).to_sparse_csr()
        >>> bool((oar.sparse.nn.functional.attention(x, x, x, mask) == x).all())
        True
    """
    _sparse.require(sparse_mask, "attention", ("sparse_csr",))
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ValueError("[attention] query, key and value must be [batch, heads, length, width].")
    batch, heads, length, width = query.shape
    if list(sparse_mask.shape) != [batch * heads, length, length]:
        raise ValueError(f"[attention] sparse_mask has shape {list(sparse_mask.shape)}; for query of shape "
                         f"{list(query.shape)} it must be {[batch * heads, length, length]}.")

    def flat(t: Tensor) -> Tensor:
        return ops.reshape(t, [batch * heads, length, t.shape[3]])

    keys = ops.transpose(flat(key), [0, 2, 1])
    scores = _C.sparse_masked_matmul(flat(query) / math.sqrt(width), keys, sparse_mask)
    hidden = _hidden_pairs(sparse_mask, heads, key_padding_mask, attn_mask)
    if hidden is not None:
        values = ops.where(hidden, ops.full([], -math.inf, scores.dtype), scores.values())
        scores = _C.sparse_with_values(scores, values)
    weights = ops.softmax(scores, -1)
    if hidden is not None:  # a row with hidden pairs only has no weights
        zero = ops.zeros([], weights.dtype)
        weights = _C.sparse_with_values(weights, ops.where(hidden, zero, weights.values()))
    return ops.reshape(ops.matmul(weights, flat(value)), [batch, heads, length, value.shape[3]])


def _hidden_pairs(mask: Tensor, heads: int, key_padding_mask: Tensor | None, attn_mask: Tensor | None) -> Tensor | None:
    """For each pair of the mask, whether one of the other masks leaves it out; None if there are none."""
    if key_padding_mask is None and attn_mask is None:
        return None
    image, row, col = ops.unbind(_C.sparse_to_coo(mask, 3).indices(), 0)
    hidden = None
    if attn_mask is not None:
        hidden = ops.equal(ops.index_take(attn_mask, [row, col]), 0)
    if key_padding_mask is not None:
        padded = ops.equal(ops.index_take(key_padding_mask, [ops.floor_divide(image, heads), col]), 0)
        hidden = padded if hidden is None else ops.logical_or(hidden, padded)
    return hidden
