"""Attention in Paddle's forms: packed projections, sequences of different lengths, weights on request.

All of them are calls of one op that computes block by block and never holds a matrix of all scores.
"""

from __future__ import annotations

import oar
from oar._C import Tensor, ops

__all__ = [
    "flash_attention",
    "flash_attention_v3_varlen",
    "flash_attn_qkvpacked",
    "flash_attn_unpadded",
    "flash_attn_varlen_qkvpacked",
    "scaled_dot_product_attention",
]

scaled_dot_product_attention = ops.scaled_dot_product_attention


def _weights(query: Tensor, key: Tensor, dropout: float, causal: bool, scale: float, training: bool) -> Tensor:
    """The weights [batch, heads, queries, keys], as a matrix."""
    sharers = query.shape[2] // key.shape[2]
    if sharers > 1:
        key = ops.repeat_interleave(key, sharers, 2)
    scores = ops.matmul(ops.transpose(query, [0, 2, 1, 3]) * scale, ops.transpose(key, [0, 2, 3, 1]))
    if causal:
        seen = ops.tril(oar.ones(scores.shape[-2:], dtype="float32")).astype("bool")
        scores = ops.where(seen, scores, oar.full([], float("-inf"), dtype=scores.dtype))
    return ops.dropout(ops.softmax(scores), dropout, None, training)


def flash_attention(query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0, causal: bool = False,
                    return_softmax: bool = False, *, fixed_seed_offset: Tensor | None = None, rng_name: str = "",
                    training: bool = True, name: str | None = None, softmax_scale: float | None = None):
    """Attention of [batch, length, heads, width] tensors: (result, weights or None).

    ``fixed_seed_offset`` is a tensor of two integers, a seed and an offset: weights are then dropped by that
    stream alone, the same in every call. ``rng_name`` names a generator in Paddle; there is one here.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        dropout: the probability of dropping an attention weight in training.
        causal: whether a position sees only itself and earlier ones.
        return_softmax: whether to return the softmax as well.
        fixed_seed_offset: accepted for compatibility.
        rng_name: accepted for compatibility.
        training: whether the call is part of training.
        softmax_scale: the factor of the scores; 1 / sqrt(width) if None.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.ones([1, 4, 2, 8])  # [batch, length, heads, width]
        >>> result, weights = F.flash_attention.flash_attention(x, x, x, causal=True)
        >>> result.shape, weights is None
        ([1, 4, 2, 8], True)
    """
    with _stream(fixed_seed_offset if training and dropout else None):
        if not return_softmax:
            out = ops.scaled_dot_product_attention(query, key, value, None, dropout, causal, training, None,
                                                   softmax_scale)
            return out, None
        scale = softmax_scale if softmax_scale is not None else query.shape[-1] ** -0.5
        weights = _weights(query, key, dropout, causal, scale, training)
    sharers = query.shape[2] // value.shape[2]
    if sharers > 1:
        value = ops.repeat_interleave(value, sharers, 2)
    out = ops.matmul(weights, ops.transpose(value, [0, 2, 1, 3]))
    return ops.transpose(out, [0, 2, 1, 3]), weights


class _stream:
    """Inside, random numbers come from a fixed position; afterwards the stream continues as before."""

    def __init__(self, seed_offset: Tensor | None):
        self._place = seed_offset

    def __enter__(self):
        if self._place is not None:
            self._before = oar.get_rng_state()
            seed, offset = (int(number) for number in self._place.tolist())
            oar.seed(seed * 1_000_003 + offset)

    def __exit__(self, *_):
        if self._place is not None:
            oar.set_rng_state(self._before)


def flash_attn_qkvpacked(qkv: Tensor, dropout: float = 0.0, causal: bool = False, return_softmax: bool = False, *,
                         fixed_seed_offset: Tensor | None = None, rng_name: str = "", training: bool = True,
                         name: str | None = None):
    """Attention of query, key and value packed as [batch, length, sharers + 2, key heads, width].

    Args:
        qkv: queries, keys and values.
        dropout: the probability of dropping an attention weight in training.
        causal: whether a position sees only itself and earlier ones.
        return_softmax: whether to return the softmax as well.
        fixed_seed_offset: accepted for compatibility.
        rng_name: accepted for compatibility.
        training: whether the call is part of training.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> result, _ = F.flash_attn_qkvpacked(oar.ones([1, 4, 3, 2, 8]))
        >>> result.shape
        [1, 4, 2, 8]
    """
    query = ops.reshape(qkv[:, :, :-2], [0, 0, -1, qkv.shape[-1]])
    return flash_attention(query, qkv[:, :, -2], qkv[:, :, -1], dropout, causal, return_softmax,
                           fixed_seed_offset=fixed_seed_offset, rng_name=rng_name, training=training)


def flash_attn_unpadded(query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor,
                        max_seqlen_q: int, max_seqlen_k: int, scale: float, dropout: float = 0.0,
                        causal: bool = False, return_softmax: bool = False, fixed_seed_offset: Tensor | None = None,
                        rng_name: str = "", training: bool = True, name: str | None = None):
    """Attention of sequences that are concatenated in [total length, heads, width].

    ``cu_seqlens_q`` and ``cu_seqlens_k`` say where each begins, and where the last one ends.

    Args:
        query: the queries.
        key: the keys.
        value: the values.
        cu_seqlens_q: where each query sequence begins, and the end of the last.
        cu_seqlens_k: where each key sequence begins, and the end of the last.
        max_seqlen_q: the length of the longest query sequence.
        max_seqlen_k: the length of the longest key sequence.
        scale: the factor of the scores.
        dropout: the probability of dropping an attention weight in training.
        causal: whether a position sees only itself and earlier ones.
        return_softmax: whether to return the softmax as well.
        fixed_seed_offset: accepted for compatibility.
        rng_name: accepted for compatibility.
        training: whether the call is part of training.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.ones([5, 2, 8])  # sequences of 2 and 3 steps
        >>> ends = oar.to_tensor([0, 2, 5], dtype='int32')
        >>> result, _ = F.flash_attention.flash_attn_unpadded(x, x, x, ends, ends, 3, 3, 0.35)
        >>> result.shape
        [5, 2, 8]
    """
    if return_softmax:
        raise NotImplementedError("sequences of different lengths have no common matrix of weights; "
                                  "pass return_softmax=False.")
    starts_q, starts_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    if len(starts_q) != len(starts_k):
        raise ValueError(f"cu_seqlens_q names {len(starts_q) - 1} sequences and cu_seqlens_k {len(starts_k) - 1}.")
    pieces = []
    with _stream(fixed_seed_offset if training and dropout else None):
        for q0, q1, k0, k1 in zip(starts_q, starts_q[1:], starts_k, starts_k[1:]):
            pieces.append(ops.scaled_dot_product_attention(query[q0:q1], key[k0:k1], value[k0:k1], None, dropout,
                                                           causal, training, None, scale))
    return ops.concat(pieces, 0), None


def flash_attn_varlen_qkvpacked(qkv: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                                max_seqlen_k: int, scale: float, dropout: float = 0.0, causal: bool = False,
                                return_softmax: bool = False, fixed_seed_offset: Tensor | None = None,
                                rng_name: str = "", varlen_padded: bool = True, training: bool = True,
                                name: str | None = None):
    """``flash_attn_unpadded`` of query, key and value packed as [total length, sharers + 2, key heads, width].

    Args:
        qkv: queries, keys and values.
        cu_seqlens_q: where each query sequence begins, and the end of the last.
        cu_seqlens_k: where each key sequence begins, and the end of the last.
        max_seqlen_q: the length of the longest query sequence.
        max_seqlen_k: the length of the longest key sequence.
        scale: the factor of the scores.
        dropout: the probability of dropping an attention weight in training.
        causal: whether a position sees only itself and earlier ones.
        return_softmax: whether to return the softmax as well.
        fixed_seed_offset: accepted for compatibility.
        rng_name: accepted for compatibility.
        varlen_padded: whether the sequences are padded.
        training: whether the call is part of training.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> qkv, ends = oar.ones([5, 3, 2, 8]), oar.to_tensor([0, 2, 5], dtype='int32')  # sequences of 2 and 3 steps
        >>> result, _ = F.flash_attn_varlen_qkvpacked(qkv, ends, ends, 3, 3, 0.35, varlen_padded=False)
        >>> result.shape
        [5, 2, 8]
    """
    query = ops.reshape(qkv[:, :-2], [0, -1, qkv.shape[-1]])
    return flash_attn_unpadded(query, qkv[:, -2], qkv[:, -1], cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                               scale, dropout, causal, return_softmax, fixed_seed_offset, rng_name, training)


def _seen(rows: int, columns: int, before: int, after: int) -> Tensor | None:
    """Which keys each query sees, if the last query is at the last key; None for all. -1 is no bound."""
    if before < 0 and after < 0:
        return None
    distance = ops.range(0, columns, 1, "int64") - ops.unsqueeze(ops.range(columns - rows, columns, 1, "int64"), [1])
    seen = ops.full([], True, "bool")
    if before >= 0:
        seen = ops.logical_and(seen, distance >= -before)
    return seen if after < 0 else ops.logical_and(seen, distance <= after)


def flash_attention_v3_varlen(query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor,
                              max_seqlen_q: int, max_seqlen_k: int, seqused_q: Tensor | None = None,
                              seqused_k: Tensor | None = None, softmax_scale: float | None = None,
                              causal: bool = False, qv: Tensor | None = None, q_descale: Tensor | None = None,
                              k_descale: Tensor | None = None, v_descale: Tensor | None = None,
                              window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, num_splits: int = 1,
                              pack_gqa: bool | None = None, sm_margin: int = 0):
    """Attention of sequences that are concatenated in [total length, heads, width], with windows.

    The last query of a sequence is at the place of its last key; windows and causality count from there.

    Args:
        query: the queries.
        key: the keys; several heads of queries can share one.
        value: the values.
        cu_seqlens_q: where each query sequence begins, and the end of the last.
        cu_seqlens_k: where each key sequence begins, and the end of the last.
        max_seqlen_q: the length of the longest query sequence; not used.
        max_seqlen_k: the length of the longest key sequence; not used.
        seqused_q: how many queries of each sequence count, the results of the others are 0; all if None.
        seqused_k: how many keys of each sequence count; all if None.
        softmax_scale: the factor of the scores; 1 / sqrt(width) if None.
        causal: whether a position sees only itself and earlier ones.
        qv: not supported.
        q_descale: for float8, which needs a GPU.
        k_descale: for float8, which needs a GPU.
        v_descale: for float8, which needs a GPU.
        window_size: how many keys before and after its own place a query sees; -1 for all.
        softcap: if positive, scores become softcap * tanh(scores / softcap).
        num_splits: not used; it divides the work on a GPU.
        pack_gqa: not used.
        sm_margin: not used.

    Returns:
        the result like query; and the logarithm of the sum of exponents of scores, [heads, total length].

    Examples:
        >>> import oar
        >>> x, ends = oar.ones([5, 2, 8]), oar.to_tensor([0, 2, 5], dtype='int32')  # sequences of 2 and 3 steps
        >>> out, sums = oar.nn.functional.flash_attention_v3_varlen(x, x, x, ends, ends, 3, 3, causal=True)
        >>> out.shape, sums.shape
        ([5, 2, 8], [2, 5])
    """
    op = "flash_attention_v3_varlen"
    if qv is not None:
        raise NotImplementedError(f"[{op}] qv is not supported. Pass None.")
    if q_descale is not None or k_descale is not None or v_descale is not None:
        raise NotImplementedError(f"[{op}] q_descale, k_descale and v_descale are for float8, which needs a GPU. Pass None.")
    starts_q, starts_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    if len(starts_q) != len(starts_k):
        raise ValueError(f"[{op}] cu_seqlens_q names {len(starts_q) - 1} sequences and cu_seqlens_k {len(starts_k) - 1}.")
    sizes_q, sizes_k = ([end - start for start, end in zip(starts, starts[1:])] for starts in (starts_q, starts_k))
    used_q = sizes_q if seqused_q is None else seqused_q.tolist()
    used_k = sizes_k if seqused_k is None else seqused_k.tolist()
    scale = query.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    before, after = window_size
    after = 0 if causal else after
    pieces, sums = [], []
    for q0, k0, size, rows, columns in zip(starts_q, starts_k, sizes_q, used_q, used_k):
        q = ops.transpose(query[q0:q0 + rows], [1, 0, 2])
        k, v = (ops.transpose(t[k0:k0 + columns], [1, 0, 2]) for t in (key, value))
        sharers = q.shape[0] // max(k.shape[0], 1)
        if sharers > 1:
            k, v = (ops.repeat_interleave(t, sharers, 0) for t in (k, v))
        scores = ops.matmul(q * scale, k, False, True)
        if softcap > 0:
            scores = ops.tanh(scores / softcap) * softcap
        seen = _seen(rows, columns, before, after)
        if seen is not None:
            scores = ops.where(seen, scores, ops.full([], float("-inf"), scores.dtype))
        total = ops.logsumexp(scores, [-1]) if columns else ops.full([q.shape[0], rows], float("-inf"), q.dtype)
        finite = ops.where(ops.isfinite(total), total, ops.zeros([], total.dtype))  # a query that sees nothing: result 0
        out = ops.transpose(ops.matmul(ops.exp(scores - ops.unsqueeze(finite, [-1])), v), [1, 0, 2])
        if rows < size:
            out = ops.concat([out, ops.zeros([size - rows, *out.shape[1:]], out.dtype)], 0)
            total = ops.concat([total, ops.full([total.shape[0], size - rows], float("-inf"), total.dtype)], 1)
        pieces.append(out)
        sums.append(total)
    return ops.concat(pieces, 0), ops.concat(sums, 1)
