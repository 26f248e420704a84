"""Attention over caches that are kept in blocks, so that sequences of different lengths share one memory."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar._creation import to_tensor
from oar.incubate.nn.functional._attend import attend, rotated_half, rotated_pairs
from oar.incubate.nn.functional._quantise import only_floats, quantised

__all__ = ["block_multihead_attention"]

_OP = "block_multihead_attention"


def _numbers(t: Tensor) -> list[int]:
    return ops.reshape(t, [-1]).tolist()


def _projections(qkv: Tensor, scale: Tensor | None, bias: Tensor | None, compute_dtype: str) -> Tensor:
    """Queries, keys and values as floats, with their bias."""
    dtypes = {"default": qkv.dtype, "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
    if compute_dtype not in dtypes:
        raise ValueError(f"[{_OP}] compute_dtype is {compute_dtype!r}; it can be one of {', '.join(dtypes)}.")
    if (scale is None) == (qkv.dtype.name == "int32"):
        raise ValueError(f"[{_OP}] qkv_out_scale is for qkv of int32, and qkv has dtype {qkv.dtype.name}.")
    if scale is not None:
        if compute_dtype == "default":
            raise ValueError(f"[{_OP}] for qkv of int32, compute_dtype must be 'fp16', 'bf16' or 'fp32'.")
        qkv = ops.cast(ops.cast(qkv, "float32") * ops.reshape(scale, [-1]), dtypes[compute_dtype])
    return qkv if bias is None else qkv + ops.cast(ops.reshape(bias, [-1]), qkv.dtype)


def _turned(x: Tensor, rope_emb: Tensor, sequence: list[int], position: list[int], neox: bool) -> Tensor:
    """Heads [tokens, heads, size], turned by the angles of their positions."""
    _, batch, longest, _, width = rope_emb.shape
    if position and max(position) >= longest:
        raise ValueError(f"[{_OP}] rope_emb has {longest} positions, but position {max(position)} is needed.")
    rows = [(b if batch > 1 else 0) * longest + p for b, p in zip(sequence, position)]
    angles = ops.gather(ops.reshape(rope_emb, [2, batch * longest, width]), to_tensor(rows, "int64"), 1)
    if width * 2 == x.shape[-1]:
        angles = ops.concat([angles, angles], -1) if neox else ops.repeat_interleave(angles, 2, -1)
    cos, sin = ops.unstack(ops.unsqueeze(ops.cast(angles, x.dtype), [2]), 0)
    return x * cos + (rotated_half if neox else rotated_pairs)(x) * sin


class _Blocks:
    """A cache [blocks, heads, block size, size] through the table of the blocks of each sequence."""

    def __init__(self, cache: Tensor, tables: list[list[int]]) -> None:
        self._cache, self._tables = cache, tables
        self._number, self._heads, self._block, self._size = cache.shape

    def _blocks_of(self, sequence: int, end: int) -> list[int]:
        """The blocks for all positions before the end."""
        needed = -(-end // self._block)
        blocks = self._tables[sequence][:needed]
        if len(blocks) < needed or any(not 0 <= block < self._number for block in blocks):
            raise ValueError(f"[{_OP}] sequence {sequence} has {end} positions and needs {needed} blocks of size "
                             f"{self._block}, but its row of block_tables names {self._tables[sequence]}, of "
                             f"{self._number} blocks.")
        return blocks

    def write(self, sequence: int, start: int, rows: Tensor) -> None:
        """Writes [length, heads, size] to the positions from the start on."""
        place = range(start, start + rows.shape[0])
        blocks = self._blocks_of(sequence, place.stop)
        block = ops.unsqueeze(to_tensor([blocks[p // self._block] for p in place], "int64"), [1])
        within = ops.unsqueeze(to_tensor([p % self._block for p in place], "int64"), [1])
        heads = ops.unsqueeze(ops.range(0, self._heads, 1, "int64"), [0])
        ops.index_put_(self._cache, [block, heads, within], ops.cast(rows, self._cache.dtype))

    def read(self, sequence: int, end: int) -> Tensor:
        """[1, heads, end, size]."""
        blocks = ops.gather(self._cache, to_tensor(self._blocks_of(sequence, end), "int64"), 0)
        return ops.reshape(ops.transpose(blocks, [1, 0, 2, 3]), [1, self._heads, -1, self._size])[:, :, :end]


def block_multihead_attention(
    qkv: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    seq_lens_encoder: Tensor,
    seq_lens_decoder: Tensor,
    seq_lens_this_time: Tensor,
    padding_offsets: Tensor,
    cum_offsets: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    block_tables: Tensor,
    pre_key_cache: Tensor | None = None,
    pre_value_cache: Tensor | None = None,
    cache_k_quant_scales: Tensor | None = None,
    cache_v_quant_scales: Tensor | None = None,
    cache_k_dequant_scales: Tensor | None = None,
    cache_v_dequant_scales: Tensor | None = None,
    qkv_out_scale: Tensor | None = None,
    qkv_bias: Tensor | None = None,
    out_shift: Tensor | None = None,
    out_smooth: Tensor | None = None,
    max_enc_len_this_time: Tensor | None = None,
    max_dec_len_this_time: Tensor | None = None,
    rope_emb: Tensor | None = None,
    mask: Tensor | None = None,
    tgt_mask: Tensor | None = None,
    max_seq_len: int = -1,
    block_size: int = 64,
    use_neox_style: bool = False,
    use_dynamic_cachekv_quant: bool = False,
    quant_round_type: int = 1,
    quant_max_bound: float = 127.0,
    quant_min_bound: float = -127.0,
    out_scale: float = -1,
    compute_dtype: str = "default",
    rope_theta: float = 10000.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention of prompts and of new positions, whose keys and values are written to caches in blocks.

    The tokens of all sequences follow each other in qkv. A sequence is either at its prompt or at its next positions;
    one call can have both kinds.

    Args:
        qkv: queries, keys and values of the tokens, [tokens, (heads + 2 * key heads) * head size].
        key_cache: [blocks, key heads, block_size, head size]; it is written in place.
        value_cache: like key_cache.
        seq_lens_encoder: the length of each prompt, 0 for a sequence that is past it; [batch, 1].
        seq_lens_decoder: how many positions the cache of each sequence holds, 0 at the prompt; [batch, 1].
        seq_lens_this_time: how many tokens of each sequence qkv has, [batch, 1].
        padding_offsets: not used; cu_seqlens_q says where sequences are.
        cum_offsets: not used.
        cu_seqlens_q: where each sequence begins in qkv, and where the last one ends, [batch + 1, 1].
        cu_seqlens_k: not used.
        block_tables: the blocks of each sequence, [batch, blocks of a sequence].
        pre_key_cache: keys before the prompts, [batch, key heads, prefix length, head size]; or None.
        pre_value_cache: like pre_key_cache.
        cache_k_quant_scales: for a quantised cache, which needs a GPU.
        cache_v_quant_scales: for a quantised cache, which needs a GPU.
        cache_k_dequant_scales: for a quantised cache, which needs a GPU.
        cache_v_dequant_scales: for a quantised cache, which needs a GPU.
        qkv_out_scale: what qkv of int32 is multiplied by, one number for each column.
        qkv_bias: added to qkv, one number for each column.
        out_shift: added to the result before it is quantised.
        out_smooth: what the result is multiplied by before it is quantised.
        max_enc_len_this_time: not used.
        max_dec_len_this_time: not used.
        rope_emb: cosines and sines, [2, batch or 1, positions, 1, head size // 2]; with use_neox_style the last axis
            can also be head size.
        mask: added to the scores of prompts, [batch, 1, length, prefix length + length]; if None, a position sees
            itself and earlier ones.
        tgt_mask: added to the scores of new positions, [batch, 1 or heads, 1, keys].
        max_seq_len: not used.
        block_size: how many positions a block has.
        use_neox_style: whether elements of both halves turn together (True) or neighbours (False).
        use_dynamic_cachekv_quant: for a quantised cache, which needs a GPU.
        quant_round_type: 0 rounds half to even, 1 half away from zero.
        quant_max_bound: the largest quantised number.
        quant_min_bound: the smallest quantised number.
        out_scale: if positive, the result is quantised to int8 with this scale.
        compute_dtype: 'fp16', 'bf16' or 'fp32' for qkv of int32.
        rope_theta: not used; the angles are those of rope_emb.

    Returns:
        the result [tokens, heads * head size]; then qkv, key_cache and value_cache.

    Examples:
        >>> import oar
        >>> def lengths(*numbers):
        ...     return oar.to_tensor(numbers, dtype='int32')
        >>> keys, values = oar.zeros([3, 1, 2, 2]), oar.zeros([3, 1, 2, 2])  # 3 blocks of 2 positions
        >>> out, _, _, _ = oar.incubate.nn.functional.block_multihead_attention(
        ...     oar.ones([3, 6]), keys, values, lengths(3), lengths(0), lengths(3), lengths(0, 0, 0), lengths(0),
        ...     lengths(0, 3), lengths(0, 3), oar.to_tensor([[2, 0]]), block_size=2)
        >>> out.shape
        [3, 2]
        >>> keys[:, 0, :, 0].tolist()  # the first two positions are in block 2, the third in block 0
        [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """
    only_floats(_OP, cache_k_quant_scales=cache_k_quant_scales, cache_v_quant_scales=cache_v_quant_scales,
                cache_k_dequant_scales=cache_k_dequant_scales, cache_v_dequant_scales=cache_v_dequant_scales,
                use_dynamic_cachekv_quant=use_dynamic_cachekv_quant or None)
    if key_cache.ndim != 4 or key_cache.shape[2] != block_size or list(key_cache.shape) != list(value_cache.shape):
        raise ValueError(f"[{_OP}] key_cache has shape {list(key_cache.shape)} and value_cache "
                         f"{list(value_cache.shape)}; both must be [blocks, key heads, {block_size}, head size].")
    if (pre_key_cache is None) != (pre_value_cache is None):
        raise ValueError(f"[{_OP}] only one of pre_key_cache and pre_value_cache is given.")
    _, shared, _, size = key_cache.shape
    tokens, every = qkv.shape[0], qkv.shape[1] // size
    heads = every - 2 * shared
    if qkv.shape[1] % size or heads <= 0 or heads % shared:
        raise ValueError(f"[{_OP}] qkv has shape {list(qkv.shape)}, which does not fit caches with {shared} heads of size "
                         f"{size}.")
    prompts, held, counts, begins = (
        _numbers(t) for t in (seq_lens_encoder, seq_lens_decoder, seq_lens_this_time, cu_seqlens_q))
    batch = len(counts)
    if len(prompts) != batch or len(held) != batch or len(begins) != batch + 1 or begins[-1] != tokens or any(
            end - begin != count for begin, end, count in zip(begins, begins[1:], counts)):
        raise ValueError(f"[{_OP}] seq_lens_this_time is {counts} and cu_seqlens_q {begins}; cu_seqlens_q must be its "
                         f"running sum, from 0 to {tokens}, and seq_lens_encoder and seq_lens_decoder as long.")
    for b in range(batch):
        if counts[b] and (prompts[b] > 0) == (held[b] > 0):
            raise ValueError(f"[{_OP}] for sequence {b}, seq_lens_encoder is {prompts[b]} and seq_lens_decoder {held[b]}; "
                             "one of them must be 0 and the other positive.")
    x = ops.reshape(_projections(qkv, qkv_out_scale, qkv_bias, compute_dtype), [tokens, every, size])
    turning, v = ops.split(x, [heads + shared, shared], 1)
    if rope_emb is not None and tokens:
        sequence = [b for b in range(batch) for _ in range(counts[b])]
        position = [held[b] + p for b in range(batch) for p in range(counts[b])]
        turning = _turned(turning, rope_emb, sequence, position, use_neox_style)
    q, k = ops.split(turning, [heads, shared], 1)
    tables = block_tables.tolist()
    keys, values = _Blocks(key_cache, tables), _Blocks(value_cache, tables)
    before = 0 if pre_key_cache is None else pre_key_cache.shape[2]
    results = []
    for b in range(batch):
        if not counts[b]:
            continue
        if pre_key_cache is not None and pre_value_cache is not None and prompts[b]:
            keys.write(b, 0, ops.transpose(pre_key_cache[b], [1, 0, 2]))
            values.write(b, 0, ops.transpose(pre_value_cache[b], [1, 0, 2]))
        part, start = slice(begins[b], begins[b + 1]), before + held[b]
        end = start + counts[b]
        keys.write(b, start, k[part])
        values.write(b, start, v[part])
        given, rows = (mask, counts[b]) if prompts[b] else (tgt_mask, 1)
        added = None if given is None else given[b:b + 1, :, :rows, :end]
        if counts[b] > 1 and (not prompts[b] or mask is None):
            row = ops.reshape(ops.range(start, end, 1, "int64"), [1, 1, -1, 1])
            seen = ops.reshape(ops.range(0, end, 1, "int64"), [1, 1, 1, -1]) <= row
            hidden = ops.where(seen, ops.zeros([], x.dtype), ops.full([], float("-inf"), x.dtype))
            added = hidden if added is None else added + hidden
        query = ops.transpose(ops.unsqueeze(q[part], [0]), [0, 2, 1, 3])
        one = attend(query, ops.cast(keys.read(b, end), x.dtype), ops.cast(values.read(b, end), x.dtype), added,
                     size**-0.5, 0.0, False, "upscale_in_train")
        results.append(ops.reshape(ops.transpose(one, [0, 2, 1, 3]), [counts[b], heads * size]))
    out = ops.concat(results, 0) if results else ops.zeros([0, heads * size], x.dtype)
    if out_scale > 0:
        out = out if out_shift is None else out + out_shift
        out = out if out_smooth is None else out * out_smooth
    return quantised(out, out_scale, quant_round_type, quant_max_bound, quant_min_bound), qkv, key_cache, value_cache
