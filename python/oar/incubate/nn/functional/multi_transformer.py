"""All layers of a transformer in one call, with the caches of generation."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor, ops
from oar.incubate.nn.functional._attend import additive, attend, rotated_half, rotated_pairs
from oar.incubate.nn.functional.linear import fused_bias_act
from oar.nn import functional as F

__all__ = ["fused_multi_transformer"]

_OP = "fused_multi_transformer"


def _hidden(seen: Tensor, dtype) -> Tensor:
    """What is added to scores so that only what is seen has a weight."""
    return ops.where(seen, ops.zeros([], dtype), ops.full([], float("-inf"), dtype))


def _prompt_mask(x: Tensor, before: int, attn_mask: Tensor | None, lengths: Tensor | None, causal: bool) -> Tensor | None:
    """The mask for all positions of a prompt, with `before` positions of a prefix; None if everything is seen."""
    length = x.shape[1]
    column = ops.reshape(ops.range(0, before + length, 1, "int64"), [1, 1, 1, -1])
    mask = None if attn_mask is None else additive(attn_mask, x.dtype)
    if mask is None and causal:
        row = ops.reshape(ops.range(0, length, 1, "int64"), [1, 1, length, 1])
        mask = _hidden(column <= row + before, x.dtype)
    if lengths is not None:
        padding = _hidden(column < lengths + before, x.dtype)
        mask = padding if mask is None else mask + padding
    return mask


def _step_mask(x: Tensor, longest: int, attn_mask: Tensor | None, at: Tensor) -> Tensor:
    """The mask for one new position, number `at`, over all places of a cache."""
    mask = _hidden(ops.reshape(ops.range(0, longest, 1, "int64"), [1, 1, 1, longest]) <= at, x.dtype)
    if attn_mask is None:
        return mask
    rest = longest - attn_mask.shape[-1]
    given = additive(attn_mask, x.dtype)
    return mask + (given if rest <= 0 else F.pad(given, [0, 0, 0, 0, 0, 0, 0, rest]))[..., :longest]


def _turned(x: Tensor, cos: Tensor, sin: Tensor, parts: int, neox: bool) -> Tensor:
    if not neox:
        return x * cos + rotated_pairs(x) * sin
    halves = ops.reshape(x, [*x.shape[:-1], parts, x.shape[-1] // parts])
    return x * cos + ops.reshape(rotated_half(halves), x.shape) * sin


def fused_multi_transformer(
    x: Tensor,
    ln_scales: Sequence[Tensor],
    ln_biases: Sequence[Tensor] | None,
    qkv_weights: Sequence[Tensor],
    qkv_biases: Sequence[Tensor] | None,
    linear_weights: Sequence[Tensor],
    linear_biases: Sequence[Tensor] | None,
    ffn_ln_scales: Sequence[Tensor],
    ffn_ln_biases: Sequence[Tensor] | None,
    ffn1_weights: Sequence[Tensor],
    ffn1_biases: Sequence[Tensor] | None,
    ffn2_weights: Sequence[Tensor],
    ffn2_biases: Sequence[Tensor] | None,
    pre_layer_norm: bool = True,
    epsilon: float = 1e-05,
    residual_alpha: float = 1.0,
    cache_kvs: Sequence[Tensor] | None = None,
    beam_offset: Tensor | None = None,
    pre_caches: Sequence[Tensor] | None = None,
    seq_lens: Tensor | None = None,
    rotary_embs: Tensor | None = None,
    time_step: Tensor | int | None = None,
    attn_mask: Tensor | None = None,
    dropout_rate: float = 0.0,
    rotary_emb_dims: int = 0,
    activation: str = "gelu",
    training: bool = False,
    mode: str = "upscale_in_train",
    trans_qkvw: bool = True,
    ring_id: int = -1,
    norm_type: str = "layernorm",
    use_neox_rotary_style: bool = False,
    gqa_group_size: int = -1,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Sequence[Tensor]]:
    """The layers of a transformer: attention and two linear layers each, with their norms and residuals.

    A model that generates calls it once for the prompt, with empty caches, which are filled; then with time_step for
    each new position.

    Args:
        x: the input [batch, length, size]; length 1 with time_step.
        ln_scales: the weights of the norms of the attention, a tensor [size] for each layer.
        ln_biases: their biases; or None.
        qkv_weights: [3, heads, head size, size], or [size, 3, heads, head size] if not trans_qkvw; with gqa_group_size
            [heads + 2 * key heads, head size, size] or [size, heads + 2 * key heads, head size].
        qkv_biases: [3, heads, head size] or [heads + 2 * key heads, head size]; or None.
        linear_weights: [heads * head size, size].
        linear_biases: [size]; or None.
        ffn_ln_scales: the weights of the norms of the linear layers, [size].
        ffn_ln_biases: their biases; or None.
        ffn1_weights: [size, inner size]; [size, 2 * inner size] for 'geglu' and 'swiglu'.
        ffn1_biases: the biases of the first linear layers; or None.
        ffn2_weights: [inner size, size].
        ffn2_biases: [size]; or None.
        pre_layer_norm: whether norms are before the attention and the linear layers rather than after.
        epsilon: added to the variance.
        residual_alpha: what the residual is multiplied by.
        cache_kvs: keys and values, [2, batch, key heads, longest, head size] for each layer; written in place.
        beam_offset: not supported.
        pre_caches: keys and values before the prompt, [2, batch, key heads, prefix length, head size] for each layer.
        seq_lens: the length of each prompt, the rows after it are 0; with time_step, how many positions each cache
            holds; [batch].
        rotary_embs: cosines and sines, [2, batch, 1, length, head size].
        time_step: how many positions all caches hold; then x is the next one.
        attn_mask: added to the scores, [batch, 1, length, keys]; bools and integers say what is seen. If None, a
            position sees all others; with seq_lens or cache_kvs only itself and earlier ones.
        dropout_rate: the probability of a zero.
        rotary_emb_dims: 0 without rotary_embs; else how many parts of a head turn separately.
        activation: 'gelu', 'relu', 'geglu' or 'swiglu'.
        training: whether elements are dropped.
        mode: 'upscale_in_train' or 'downscale_in_infer'.
        trans_qkvw: whether size is the last axis of qkv_weights.
        ring_id: of a group of processes; only -1.
        norm_type: 'layernorm' or 'rmsnorm'.
        use_neox_rotary_style: whether elements of both halves turn together (True) or neighbours (False).
        gqa_group_size: the number of heads of keys and values; as many as of queries if not positive.

    Returns:
        a tensor like x; with cache_kvs also the caches.

    Examples:
        >>> import oar
        >>> one, square = [oar.ones([4])], [oar.ones([4, 4])]
        >>> out = oar.incubate.nn.functional.fused_multi_transformer(
        ...     oar.ones([1, 2, 4]), one, None, [oar.ones([3, 2, 2, 4])], None, square, None, one, None, square, None,
        ...     square, None)
        >>> out.shape
        [1, 2, 4]
    """
    if ring_id != -1:
        raise NotImplementedError(f"[{_OP}] ring_id is for several processes, which Oar does not have yet.")
    if beam_offset is not None:
        raise NotImplementedError(f"[{_OP}] beam_offset is not supported. Reorder the caches with index_select.")
    if norm_type not in ("layernorm", "rmsnorm"):
        raise ValueError(f"[{_OP}] norm_type is {norm_type!r}; it can be 'layernorm' or 'rmsnorm'.")
    if x.ndim != 3:
        raise ValueError(f"[{_OP}] x has shape {list(x.shape)}; it must be [batch, length, size].")
    if (rotary_embs is None) != (rotary_emb_dims == 0):
        raise ValueError(f"[{_OP}] rotary_emb_dims is {rotary_emb_dims}; it must be 0 without rotary_embs, else positive.")
    for name_of, given in (("cache_kvs", cache_kvs), ("pre_caches", pre_caches)):
        if given is not None and len(given) != len(qkv_weights):
            raise ValueError(f"[{_OP}] {name_of} has {len(given)} tensors, for {len(qkv_weights)} layers.")
    batch, length, size = x.shape
    lengths = None if seq_lens is None else ops.reshape(ops.cast(seq_lens, "int64"), [batch, 1, 1, 1])
    before = 0 if pre_caches is None else pre_caches[0].shape[3]
    here: Tensor | None = None  # with time_step, the place of the new position in the cache
    mask: Tensor | None
    if time_step is not None:
        if cache_kvs is None or length != 1:
            raise ValueError(f"[{_OP}] with time_step, x must have length 1, not {length}, and cache_kvs must be given.")
        at = lengths if lengths is not None else ops.full([batch, 1, 1, 1], int(time_step), "int64")
        longest, last = cache_kvs[0].shape[3], int(ops.max(at))
        if last >= longest:
            raise ValueError(f"[{_OP}] cache_kvs has room for {longest} positions, but position {last} is next.")
        mask = _step_mask(x, longest, attn_mask, at)
        here = ops.equal(ops.reshape(ops.range(0, longest, 1, "int64"), [1, 1, -1, 1]), at)
    else:
        if cache_kvs is not None and cache_kvs[0].shape[3] < before + length:
            raise ValueError(f"[{_OP}] cache_kvs has room for {cache_kvs[0].shape[3]} positions, but there are "
                             f"{before + length}.")
        mask = _prompt_mask(x, before, attn_mask, lengths, lengths is not None or cache_kvs is not None)

    def norm(t: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] | None, i: int) -> Tensor:
        bias = None if biases is None else biases[i]
        if norm_type == "layernorm":
            return F.layer_norm(t, [size], weights[i], bias, epsilon)
        out = ops.rms_norm(t, [size], weights[i], epsilon)
        return out if bias is None else out + bias

    def linear(t: Tensor, weight: Tensor, biases: Sequence[Tensor] | None, i: int) -> Tensor:
        product = ops.matmul(t, weight)
        return product if biases is None else product + ops.reshape(biases[i], [-1])

    def drop(t: Tensor) -> Tensor:
        return F.dropout(t, dropout_rate, training=training, mode=mode)

    def keys_and_values(k: Tensor, v: Tensor, i: int) -> tuple[Tensor, Tensor]:
        """The new ones with those of the prefix or of the cache, which is written."""
        if here is not None and cache_kvs is not None:
            cache = cache_kvs[i]
            cache[0], cache[1] = ops.where(here, k, cache[0]), ops.where(here, v, cache[1])
            return cache[0], cache[1]
        if pre_caches is not None:
            k, v = ops.concat([pre_caches[i][0], k], 2), ops.concat([pre_caches[i][1], v], 2)
        if cache_kvs is not None:
            cache_kvs[i][0, :, :, :before + length] = k
            cache_kvs[i][1, :, :, :before + length] = v
        return k, v

    def attention(t: Tensor, i: int) -> Tensor:
        weight = qkv_weights[i]
        if weight.ndim != (3 if gqa_group_size > 0 else 4) or weight.shape[-1 if trans_qkvw else 0] != size:
            raise ValueError(f"[{_OP}] a tensor of qkv_weights has shape {list(weight.shape)}, which does not fit size "
                             f"{size}, trans_qkvw={trans_qkvw} and gqa_group_size={gqa_group_size}.")
        head = weight.shape[-2 if trans_qkvw else -1]
        flat = ops.transpose(ops.reshape(weight, [-1, size]), [1, 0]) if trans_qkvw else ops.reshape(weight, [size, -1])
        every = flat.shape[1] // head
        shared = gqa_group_size if gqa_group_size > 0 else every // 3
        qkv = ops.transpose(ops.reshape(linear(t, flat, qkv_biases, i), [batch, length, every, head]), [0, 2, 1, 3])
        q, k, v = ops.split(qkv, [every - 2 * shared, shared, shared], 1)
        if rotary_embs is not None:
            cos, sin = ops.cast(rotary_embs[0], x.dtype), ops.cast(rotary_embs[1], x.dtype)
            q, k = (_turned(part, cos, sin, rotary_emb_dims, use_neox_rotary_style) for part in (q, k))
        k, v = keys_and_values(k, v, i)
        out = attend(q, k, v, mask, head**-0.5, dropout_rate, training, mode)
        out = ops.reshape(ops.transpose(out, [0, 2, 1, 3]), [batch, length, q.shape[1] * head])
        return drop(linear(out, linear_weights[i], linear_biases, i))

    def feed_forward(t: Tensor, i: int) -> Tensor:
        bias = None if ffn1_biases is None else ffn1_biases[i]
        inner = fused_bias_act(ops.matmul(t, ffn1_weights[i]), bias, act_method=activation)
        return drop(linear(drop(inner), ffn2_weights[i], ffn2_biases, i))

    out = x
    for i in range(len(qkv_weights)):
        for part, weights, biases in ((attention, ln_scales, ln_biases), (feed_forward, ffn_ln_scales, ffn_ln_biases)):
            inner = norm(out, weights, biases, i) if pre_layer_norm else out
            out = (out if residual_alpha == 1.0 else out * residual_alpha) + part(inner, i)
            if not pre_layer_norm:
                out = norm(out, weights, biases, i)
    if lengths is not None and time_step is None:
        row = ops.reshape(ops.range(0, length, 1, "int64"), [1, length, 1])
        out = ops.where(row < ops.reshape(lengths, [batch, 1, 1]), out, ops.zeros([], out.dtype))
    return out if cache_kvs is None else (out, cache_kvs)
