"""Attention with what surrounds it: positions, caches, projections and norms."""

from __future__ import annotations

import math

from oar._C import Tensor, ops
from oar.incubate.nn.functional._attend import additive, attend, rotated_half, rotated_pairs
from oar.incubate.nn.functional._quantise import only_floats
from oar.nn import functional as F

__all__ = [
    "blha_get_max_len",
    "fused_multi_head_attention",
    "fused_rotary_position_embedding",
    "masked_multihead_attention",
    "variable_length_memory_efficient_attention",
]


def _angles(length: int, size: int, base: float, dtype) -> tuple[Tensor, Tensor]:
    """sin and cos of the angles of each position, [length, size]: pairs of neighbours turn together."""
    each = ops.range(0, size, 2, "float32") * (-math.log(base) / size)
    turns = ops.unsqueeze(ops.range(0, length, 1, "float32"), [1]) * ops.exp(each)
    both = ops.reshape(ops.stack([turns, turns], -1), [length, size])
    return ops.cast(ops.sin(both), dtype), ops.cast(ops.cos(both), dtype)


def fused_rotary_position_embedding(
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    sin: Tensor | None = None,
    cos: Tensor | None = None,
    position_ids: Tensor | None = None,
    use_neox_rotary_style: bool = True,
    time_major: bool = False,
    rotary_emb_base: float = 10000.0,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Queries and keys, turned by angles that depend on their position.

    Args:
        q: [batch, length, heads, size].
        k: the same for keys; or None.
        v: the same for values; or None.
        sin: the sines, [length, size] or [1, length, 1, size]; computed if None.
        cos: the cosines, like sin.
        position_ids: the position of each element, [batch, length]; else they count from 0.
        use_neox_rotary_style: whether neighbours turn together (True) or elements of both halves (False).
        time_major: whether q, k and v are [length, batch, heads, size].
        rotary_emb_base: the base of the angles.

    Returns:
        q, k and v; None where the argument is None.

    Examples:
        >>> import oar
        >>> q = oar.ones([1, 2, 1, 2])
        >>> oar.incubate.nn.functional.fused_rotary_position_embedding(q)[0].reshape([2, 2])
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[ 1.        ,  1.        ],
                [-0.30116868,  1.38177323]])
    """
    op = "fused_rotary_position_embedding"
    if q.ndim != 4 or q.shape[-1] % 2:
        raise ValueError(f"[{op}] q has shape {list(q.shape)}; it must be [batch, length, heads, size], size even.")
    if (sin is None) != (cos is None):
        raise ValueError(f"[{op}] only one of sin and cos is given.")
    if sin is None and (position_ids is not None or not use_neox_rotary_style):
        raise ValueError(f"[{op}] position_ids and use_neox_rotary_style=False need sin and cos.")
    length, size = q.shape[0 if time_major else 1], q.shape[-1]
    if sin is None or cos is None:
        sines, cosines = _angles(length, size, rotary_emb_base, q.dtype)
    else:
        sines, cosines = (ops.reshape(t, [-1, size]) for t in (sin, cos))
    if position_ids is not None:
        shape = [*position_ids.shape, 1, size]
        sines, cosines = (ops.reshape(ops.gather(t, ops.reshape(position_ids, [-1]), 0), shape)
                          for t in (sines, cosines))
        if time_major:
            sines, cosines = (ops.transpose(t, [1, 0, 2, 3]) for t in (sines, cosines))
    else:
        shape = [length, 1, 1, size] if time_major else [1, length, 1, size]
        sines, cosines = (ops.reshape(t[:length], shape) for t in (sines, cosines))
    rotated = rotated_pairs if use_neox_rotary_style else rotated_half

    def turned(t: Tensor) -> Tensor:
        return t * cosines + rotated(t) * sines

    return turned(q), None if k is None else turned(k), None if v is None else turned(v)


def fused_multi_head_attention(
    x: Tensor,
    qkv_weight: Tensor,
    linear_weight: Tensor,
    pre_layer_norm: bool = False,
    pre_ln_scale: Tensor | None = None,
    pre_ln_bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    pre_ln_epsilon: float = 1e-05,
    qkv_bias: Tensor | None = None,
    linear_bias: Tensor | None = None,
    cache_kv: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout_rate: float = 0.5,
    attn_dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-05,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    num_heads: int = -1,
    transpose_qkv_wb: bool = False,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The attention of a transformer's layer: x + dropout(linear(attention(x))), with a layer norm before or after.

    Args:
        x: the input [batch, length, size].
        qkv_weight: [3, heads, head size, size], or [size, 3 * size] if transpose_qkv_wb.
        linear_weight: [size, size].
        pre_layer_norm: whether the norm is before the attention rather than after.
        pre_ln_scale: the weight of the norm before.
        pre_ln_bias: the bias of the norm before.
        ln_scale: the weight of the norm after.
        ln_bias: the bias of the norm after.
        pre_ln_epsilon: added to the variance in the norm before.
        qkv_bias: [3, heads, head size], or [3 * size] if transpose_qkv_wb.
        linear_bias: [size].
        cache_kv: keys and values of earlier positions, [2, batch, heads, length, head size].
        attn_mask: added to the scores; bools and integers say what is seen.
        dropout_rate: the probability of a zero at the end.
        attn_dropout_rate: the probability of a zero among the attention's weights.
        ln_epsilon: added to the variance in the norm after.
        training: whether elements are dropped.
        mode: 'upscale_in_train' or 'downscale_in_infer'.
        ring_id: of a group of processes; only -1.
        add_residual: whether x is added.
        num_heads: the number of heads if transpose_qkv_wb.
        transpose_qkv_wb: whether the weight is that of a linear layer.

    Returns:
        a tensor like x; with cache_kv also the longer cache.

    Examples:
        >>> import oar
        >>> x = oar.ones([1, 2, 4])
        >>> out = oar.incubate.nn.functional.fused_multi_head_attention(
        ...     x, oar.ones([3, 2, 2, 4]), oar.ones([4, 4]), training=False)
        >>> out.shape
        [1, 2, 4]
    """
    op = "fused_multi_head_attention"
    if ring_id != -1:
        raise NotImplementedError(f"[{op}] ring_id is for several processes, which Oar does not have yet.")
    if x.ndim != 3:
        raise ValueError(f"[{op}] x has shape {list(x.shape)}; it must be [batch, length, size].")
    batch, length, size = x.shape
    if transpose_qkv_wb:
        if num_heads <= 0 or size % num_heads:
            raise ValueError(f"[{op}] num_heads is {num_heads}; with transpose_qkv_wb it must divide {size}.")
        heads, head = num_heads, size // num_heads
        weight = qkv_weight
    else:
        if qkv_weight.ndim != 4 or qkv_weight.shape[0] != 3 or qkv_weight.shape[3] != size:
            raise ValueError(f"[{op}] qkv_weight has shape {list(qkv_weight.shape)}; it must be [3, heads, head size, "
                             f"{size}].")
        heads, head = qkv_weight.shape[1], qkv_weight.shape[2]
        weight = ops.transpose(ops.reshape(qkv_weight, [3 * heads * head, size]), [1, 0])
    out = F.layer_norm(x, [size], pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    qkv = ops.matmul(out, weight)
    if qkv_bias is not None:
        qkv = qkv + ops.reshape(qkv_bias, [-1])
    q, k, v = ops.unstack(ops.transpose(ops.reshape(qkv, [batch, length, 3, heads, head]), [2, 0, 3, 1, 4]), 0)
    if cache_kv is not None:
        k, v = ops.concat([cache_kv[0], k], 2), ops.concat([cache_kv[1], v], 2)
    mask = None if attn_mask is None else additive(attn_mask, x.dtype)
    out = attend(q, k, v, mask, head**-0.5, attn_dropout_rate, training, mode)
    out = ops.reshape(ops.transpose(out, [0, 2, 1, 3]), [batch, length, heads * head])
    out = ops.matmul(out, linear_weight)
    out = F.dropout(out if linear_bias is None else out + linear_bias, dropout_rate, training=training, mode=mode)
    if add_residual:
        out = x + out
    if not pre_layer_norm:
        out = F.layer_norm(out, [size], ln_scale, ln_bias, ln_epsilon)
    return out if cache_kv is None else (out, ops.stack([k, v], 0))


def variable_length_memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_lens: Tensor,
    kv_seq_lens: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
    pre_cache_length: int = 0,
) -> Tensor:
    """Attention of sequences of different lengths; what is after the end of a sequence is 0.

    Args:
        query: [batch, heads, length, size].
        key: [batch, heads, key length, size]; several heads of the query can share one.
        value: like key.
        seq_lens: the length of each query, [batch, 1].
        kv_seq_lens: the length of the keys, [batch, 1].
        mask: added to the scores, [batch, 1, length, key length].
        scale: what scores are multiplied by; 1 / sqrt(size) if None.
        causal: whether a position sees no later ones.
        pre_cache_length: how many keys come before the first position.

    Returns:
        a tensor like query.

    Examples:
        >>> import oar
        >>> q, n = oar.ones([1, 1, 2, 2]), oar.to_tensor([[1]])
        >>> out = oar.incubate.nn.functional.variable_length_memory_efficient_attention(q, q, q, n, n)
        >>> out.reshape([2, 2]).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    rows, columns = query.shape[2], key.shape[2]
    row = ops.reshape(ops.range(0, rows, 1, "int64"), [1, 1, rows, 1])
    column = ops.reshape(ops.range(0, columns, 1, "int64"), [1, 1, 1, columns])
    lengths, keys = (ops.reshape(ops.cast(t, "int64"), [-1, 1, 1, 1]) for t in (seq_lens, kv_seq_lens))
    seen = column < keys + pre_cache_length
    if causal:
        seen = ops.logical_and(seen, column <= row + pre_cache_length)
    added = ops.where(seen, ops.zeros([], query.dtype), ops.full([], float("-inf"), query.dtype))
    if mask is not None:
        added = added + mask
    factor = 1.0 / math.sqrt(query.shape[3]) if scale is None else scale
    out = attend(query, key, value, added, factor, 0.0, False, "upscale_in_train")
    exists = ops.logical_and(row < lengths, keys + pre_cache_length > 0)
    return ops.where(exists, out, ops.zeros([], query.dtype))


def masked_multihead_attention(
    x: Tensor,
    cache_kv: Tensor | None = None,
    bias: Tensor | None = None,
    src_mask: Tensor | None = None,
    cum_offsets: Tensor | None = None,
    sequence_lengths: Tensor | None = None,
    rotary_tensor: Tensor | None = None,
    beam_cache_offset: Tensor | None = None,
    qkv_out_scale: Tensor | None = None,
    out_shift: Tensor | None = None,
    out_smooth: Tensor | None = None,
    seq_len: int = 1,
    rotary_emb_dims: int = 0,
    use_neox_rotary_style: bool = False,
    compute_dtype: str = "default",
    out_scale: float = -1,
    quant_round_type: int = 1,
    quant_max_bound: float = 127.0,
    quant_min_bound: float = -127.0,
) -> tuple[Tensor, Tensor]:
    """One step of decoding: attention of one new position to those in a cache, which the new one is written into.

    Args:
        x: queries, keys and values of the new position, [batch, 3 * heads * size].
        cache_kv: keys and values, [2, batch, heads, longest, size]; it is written in place.
        bias: added to x, [3, heads, size].
        src_mask: added to the scores, [batch, 1, 1, positions]; without sequence_lengths it says how many there are.
        cum_offsets: not supported.
        sequence_lengths: how many positions each cache holds already, [batch, 1].
        rotary_tensor: not supported; turn x before with fused_rotary_position_embedding.
        beam_cache_offset: not supported.
        qkv_out_scale: for quantised computation, which needs a GPU.
        out_shift: for quantised computation, which needs a GPU.
        out_smooth: for quantised computation, which needs a GPU.
        seq_len: the length of x; only 1.
        rotary_emb_dims: only 0.
        use_neox_rotary_style: not used.
        compute_dtype: not used.
        out_scale: only -1: the result is not quantised.
        quant_round_type: not used.
        quant_max_bound: not used.
        quant_min_bound: not used.

    Returns:
        the result [batch, heads * size], and the cache.

    Examples:
        >>> import oar
        >>> cache = oar.zeros([2, 1, 1, 4, 2])
        >>> out, cache = oar.incubate.nn.functional.masked_multihead_attention(
        ...     oar.ones([1, 6]), cache, sequence_lengths=oar.to_tensor([[0]]))
        >>> out.tolist()
        [[1.0, 1.0]]
    """
    op = "masked_multihead_attention"
    only_floats(op, qkv_out_scale=qkv_out_scale, out_shift=out_shift, out_smooth=out_smooth)
    if out_scale > 0:
        raise NotImplementedError(f"[{op}] out_scale is for quantised computation, which needs a GPU. Pass -1.")
    if rotary_tensor is not None or rotary_emb_dims or beam_cache_offset is not None or cum_offsets is not None:
        raise NotImplementedError(
            f"[{op}] rotary_tensor, beam_cache_offset and cum_offsets are not supported. Turn x before, with "
            "fused_rotary_position_embedding."
        )
    if cache_kv is None or cache_kv.ndim != 5:
        raise ValueError(f"[{op}] cache_kv must be a tensor [2, batch, heads, longest, size].")
    batch, kv_heads, longest, size = cache_kv.shape[1:]
    heads = x.shape[1] // size - 2 * kv_heads
    x = ops.reshape(x, [batch, heads + 2 * kv_heads, 1, size])
    if bias is not None:
        x = x + ops.reshape(bias, [1, heads + 2 * kv_heads, 1, size])
    q, k, v = x[:, :heads], x[:, heads:heads + kv_heads], x[:, heads + kv_heads:]
    if sequence_lengths is not None:
        at = ops.reshape(ops.cast(sequence_lengths, "int64"), [batch, 1, 1, 1])
    elif src_mask is not None:
        at = ops.full([batch, 1, 1, 1], src_mask.shape[-1] - 1, "int64")
    else:
        raise ValueError(f"[{op}] sequence_lengths or src_mask must say how many positions the cache holds.")
    place = ops.range(0, longest, 1, "int64")
    here = ops.equal(ops.reshape(place, [1, 1, longest, 1]), at)
    cache_kv[0] = ops.where(here, k, cache_kv[0])
    cache_kv[1] = ops.where(here, v, cache_kv[1])
    seen = ops.reshape(place, [1, 1, 1, longest]) <= at
    added = ops.where(seen, ops.zeros([], x.dtype), ops.full([], float("-inf"), x.dtype))
    if src_mask is not None:
        rest = longest - src_mask.shape[-1]
        added = added + (src_mask if rest <= 0 else F.pad(src_mask, [0, 0, 0, 0, 0, 0, 0, rest]))[..., :longest]
    out = attend(q, cache_kv[0], cache_kv[1], added, size**-0.5, 0.0, False, "upscale_in_train")
    return ops.reshape(out, [batch, heads * size]), cache_kv


def blha_get_max_len(seq_lens_encoder: Tensor, seq_lens_decoder: Tensor, batch_size: Tensor) -> tuple[Tensor, Tensor]:
    """The largest lengths, for ``block_multihead_attention``.

    Args:
        seq_lens_encoder: the lengths of the prompts.
        seq_lens_decoder: the lengths of what was decoded.
        batch_size: a tensor whose size is that of the batch.

    Returns:
        two tensors with one number each.

    Examples:
        >>> import oar
        >>> lengths = oar.to_tensor([3, 5], dtype='int32')
        >>> a, b = oar.incubate.nn.functional.blha_get_max_len(lengths, lengths + 1, oar.ones([2]))
        >>> a.tolist(), b.tolist()
        ([5], [6])
    """
    return ops.reshape(ops.max(seq_lens_encoder), [1]), ops.reshape(ops.max(seq_lens_decoder), [1])
