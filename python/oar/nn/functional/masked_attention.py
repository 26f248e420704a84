"""Attention whose masks are given in a compressed form."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["flashmask_attention", "sparse_attention"]


def _attend(query: Tensor, key: Tensor, value: Tensor, seen: Tensor, dropout: float, training: bool) -> Tensor:
    """Attention of [batch, length, heads, width] where seen holds; a query that sees nothing reads 0."""
    some = ops.any(seen, [-1], True)
    shown = ops.logical_or(seen, ops.logical_not(some))
    out = ops.scaled_dot_product_attention(query, key, value, shown, dropout, False, training)
    return ops.where(ops.transpose(some, [0, 2, 1, 3]), out, ops.zeros([], out.dtype))


def _window(size: int | tuple[int, int] | list[int], causal: bool, row: Tensor, column: Tensor) -> Tensor:
    """Whether a key is at most so many positions before, and after, the query."""
    before, after = (size, size) if isinstance(size, int) else size
    near = column >= row - before
    return near if causal else ops.logical_and(near, column <= row + after)


def _seen_rows(indices: Tensor, causal: bool, row: Tensor) -> Tensor:
    """Whether each query sees each key, [batch, heads, queries, keys]: by the bounds of the rows that do not."""
    bounds = [ops.unsqueeze(t, [2]) for t in ops.unstack(indices, -1)]
    hidden = row >= bounds[0]
    if len(bounds) == (2 if causal else 4):
        hidden = ops.logical_and(hidden, row < bounds[1])
    if not causal:
        above = row < bounds[-1]
        if len(bounds) == 4:
            above = ops.logical_and(above, row >= bounds[2])
        hidden = ops.logical_or(hidden, above)
    return ops.logical_not(hidden)


def flashmask_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    startend_row_indices: Tensor | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
    window_size: int | tuple[int, int] | None = None,
    return_softmax_lse: bool = False,
    return_seed_offset: bool = False,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """Attention of [batch, length, heads, width] tensors with a mask that says, for each key, which queries do not see it.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        startend_row_indices: [batch, heads or 1, keys, n]. If causal, a key is hidden from the queries from the first
            number on (n = 1), or from the first to before the second (n = 2). Else it is hidden from the queries from
            the first number on and from those before the second (n = 2), or from those between the first two and between
            the last two (n = 4).
        dropout: the probability of dropping an attention weight in training.
        causal: whether a position sees only itself and earlier ones.
        window_size: how many positions before, and after, a query it sees; instead of startend_row_indices.
        return_softmax_lse: only False.
        return_seed_offset: only False.
        fixed_seed_offset: only None.
        rng_name: accepted for compatibility.
        training: whether the call is part of training.

    Returns:
        a tensor like query; a query that sees nothing reads 0.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.arange(3, dtype='float32').reshape([1, 3, 1, 1])
        >>> rows = oar.to_tensor([1, 2, 3], dtype='int32').reshape([1, 1, 3, 1])  # a key is hidden from later queries
        >>> F.flashmask_attention(x, x, x, rows, causal=True).flatten().tolist()
        [0.0, 1.0, 2.0]
    """
    op = "flashmask_attention"
    if return_softmax_lse or return_seed_offset or fixed_seed_offset is not None:
        raise NotImplementedError(f"[{op}] return_softmax_lse, return_seed_offset and fixed_seed_offset are not "
                                  "supported. Leave them out.")
    rows, columns = query.shape[1], key.shape[1]
    row = ops.reshape(ops.range(0, rows, 1, "int32"), [1, 1, rows, 1])
    column = ops.reshape(ops.range(0, columns, 1, "int32"), [1, 1, 1, columns])
    seen = None
    if startend_row_indices is not None:
        if window_size is not None:
            raise ValueError(f"[{op}] window_size and startend_row_indices are both given. Pass one of them.")
        shape, widths = list(startend_row_indices.shape), (1, 2) if causal else (2, 4)
        if len(shape) != 4 or shape[0] != key.shape[0] or shape[2] != columns or shape[3] not in widths:
            raise ValueError(f"[{op}] startend_row_indices has shape {shape}; it must be [{key.shape[0]}, heads or 1, "
                             f"{columns}, {widths[0]} or {widths[1]}].")
        if shape[1] not in (1, query.shape[2]):
            if shape[1] != key.shape[2]:
                raise ValueError(f"[{op}] startend_row_indices has {shape[1]} heads; it must have 1, {key.shape[2]} or "
                                 f"{query.shape[2]}.")
            startend_row_indices = ops.repeat_interleave(startend_row_indices, query.shape[2] // shape[1], 1)
        seen = _seen_rows(startend_row_indices, causal, row)
    elif window_size is not None:
        seen = _window(window_size, causal, row, column)
    if seen is None:
        return ops.scaled_dot_product_attention(query, key, value, None, dropout, causal, training)
    if causal:
        seen = ops.logical_and(seen, column <= row)
    return _attend(query, key, value, seen, dropout, training)


def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_csr_offset: Tensor,
    sparse_csr_columns: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """Attention of [batch, heads, length, width] tensors where each query sees a list of keys, in CSR form.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        sparse_csr_offset: where the list of each query begins, and where the last one ends, [batch, heads, length + 1].
        sparse_csr_columns: the keys of all lists, one after the other, [batch, heads, count].
        key_padding_mask: [batch, length]; a key is hidden where it is 0.
        attn_mask: [length, length]; hidden where it is 0.

    Returns:
        a tensor like query; a query that sees nothing reads 0.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.to_tensor([[[[1.0], [2.0]]]])
        >>> offset, columns = oar.to_tensor([[[0, 1, 2]]]), oar.to_tensor([[[1, 0]]])
        >>> F.sparse_attention(x, x, x, offset, columns).flatten().tolist()
        [2.0, 1.0]
    """
    op = "sparse_attention"
    batch, heads, length, _ = query.shape
    if list(sparse_csr_offset.shape) != [batch, heads, length + 1]:
        raise ValueError(f"[{op}] sparse_csr_offset has shape {list(sparse_csr_offset.shape)}; it must be [{batch}, "
                         f"{heads}, {length + 1}].")
    if sparse_csr_columns.ndim != 3 or list(sparse_csr_columns.shape[:2]) != [batch, heads]:
        raise ValueError(f"[{op}] sparse_csr_columns has shape {list(sparse_csr_columns.shape)}; it must be [{batch}, "
                         f"{heads}, count].")
    count = sparse_csr_columns.shape[2]
    number = ops.broadcast_to(ops.range(0, count, 1, "int64"), [batch, heads, count])
    ends = ops.cast(sparse_csr_offset, "int64")[:, :, 1:]
    # Numbers after the last list belong to a row of their own, which is cut off.
    row = ops.searchsorted(ends, number, False, True)
    place = row * length + ops.cast(sparse_csr_columns, "int64")
    marks = ops.put_along_axis(ops.zeros([batch, heads, (length + 1) * length], query.dtype), place,
                               ops.ones_like(place, query.dtype), 2)
    seen = ops.reshape(marks[:, :, :length * length], [batch, heads, length, length]) > 0
    if key_padding_mask is not None:
        seen = ops.logical_and(seen, ops.reshape(key_padding_mask != 0, [batch, 1, 1, length]))
    if attn_mask is not None:
        seen = ops.logical_and(seen, attn_mask != 0)
    query, key, value = (ops.transpose(t, [0, 2, 1, 3]) for t in (query, key, value))
    return ops.transpose(_attend(query, key, value, seen, 0.0, False), [0, 2, 1, 3])
