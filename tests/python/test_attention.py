"""Attention beyond the registry's tests: Paddle's forms of the call, blocks larger than one, layers and caches."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F


def reference(query, key, value, mask=None, causal=False, scale=None):
    """Attention in float64 with a whole matrix of scores; in fully masked rows all keys have equal weight."""
    sharers = query.shape[2] // key.shape[2]
    key, value = np.repeat(key, sharers, 2), np.repeat(value, sharers, 2)
    scores = np.einsum("bqhd,bkhd->bhqk", query, key) * (scale or query.shape[-1] ** -0.5)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    allowed = np.tri(*scores.shape[2:]) if causal else np.ones(scores.shape[2:])
    high = np.max(scores, -1, keepdims=True, initial=-1e300)
    weights = np.where(high == -1e300, allowed, np.exp(scores - high))
    return np.einsum("bhqk,bkhe->bqhe", weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300), value)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def qkv(batch, queries, heads, keys, key_heads, width):
    return (numbers(batch, queries, heads, width), numbers(batch, keys, key_heads, width, seed=1),
            numbers(batch, keys, key_heads, width, seed=2))


# Several blocks of queries and keys, ends that do not fit, one query with long keys, shared heads.
SIZES = [(2, 70, 2, 450, 2, 64), (1, 600, 4, 600, 1, 32), (2, 1, 6, 500, 2, 64), (1, 130, 1, 50, 1, 200),
         (3, 17, 2, 33, 2, 5)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks(sizes, causal):
    arrays = qkv(*sizes)
    wanted = reference(*arrays, causal=causal)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 3e-2)):
        out = F.scaled_dot_product_attention(*(oar.to_tensor(a, dtype=dtype) for a in arrays), is_causal=causal)
        assert out.dtype.name == dtype
        np.testing.assert_allclose(out.astype("float64").numpy(), wanted, atol=tolerance * 2, rtol=tolerance)


@pytest.mark.parametrize("sizes", SIZES)
def test_kernel_gradients_are_those_of_the_parts(sizes):
    arrays = qkv(*sizes)
    weight = oar.to_tensor(numbers(*arrays[0].shape, seed=3))

    def gradients(function):
        tensors = [oar.to_tensor(a, stop_gradient=False) for a in arrays]
        (function(*tensors) * weight).sum().backward()
        return [t.grad.numpy() for t in tensors]

    def parts(query, key, value):
        sharers = query.shape[2] // key.shape[2]
        key, value = (oar._C.ops.repeat_interleave(t, sharers, 2) for t in (key, value))
        query, key, value = (oar.transpose(t, [0, 2, 1, 3]) for t in (query, key, value))
        weights = F.softmax(oar.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True))
        return oar.transpose(oar.matmul(weights, value), [0, 2, 1, 3])

    for ours, wanted in zip(gradients(F.scaled_dot_product_attention), gradients(parts)):
        np.testing.assert_allclose(ours, wanted, atol=1e-11)


def test_masks_broadcast_and_hide():
    arrays = qkv(2, 3, 4, 5, 2, 8)
    tensors = [oar.to_tensor(a) for a in arrays]
    for mask in (numbers(2, 4, 3, 5), numbers(3, 5), numbers(2, 1, 1, 5) > 0, numbers(5) > -0.5):
        out = F.scaled_dot_product_attention(*tensors, attn_mask=oar.to_tensor(mask))
        np.testing.assert_allclose(out.numpy(), reference(*arrays, mask=mask), atol=1e-12)
    # Three axes are [batch, queries, keys].
    mask = numbers(2, 3, 5)
    out = F.scaled_dot_product_attention(*tensors, attn_mask=oar.to_tensor(mask))
    np.testing.assert_allclose(out.numpy(), reference(*arrays, mask=mask[:, None]), atol=1e-12)


def test_a_query_that_sees_nothing_is_the_mean_of_the_values_to_second_order():
    query, key, value = (oar.to_tensor(a, stop_gradient=False) for a in qkv(1, 2, 1, 3, 1, 4))
    mask = oar.to_tensor([[True, False, True], [False, False, False]])
    out = F.scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_allclose(out.numpy()[0, 1], value.numpy()[0].mean(0), atol=1e-12)
    grads = oar.grad((out * out).sum(), [query, key, value], create_graph=True)
    second = oar.grad(sum((g * g).sum() for g in grads), [query, key, value])
    for g in [*grads, *second]:
        assert np.isfinite(g.numpy()).all()
    assert np.all(grads[0].numpy()[0, 1] == 0)


@pytest.mark.parametrize("sizes", [(2, 5, 2, 5, 2, 4), (1, 70, 2, 500, 1, 8), (2, 1, 4, 9, 2, 8)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["bool", "-inf", "-1e38"])
def test_rows_that_are_hidden_altogether(kind, causal, sizes):
    """Values, and gradients by difference quotients, where every other query sees nothing."""
    arrays = qkv(*sizes)
    seen = np.ones((sizes[1], sizes[3]), bool)
    seen[::2] = False
    mask = seen if kind == "bool" else np.where(seen, 0.0, float(kind))
    tensors = [oar.to_tensor(a, stop_gradient=False) for a in arrays]
    out = F.scaled_dot_product_attention(*tensors, attn_mask=oar.to_tensor(mask), is_causal=causal)
    wanted = reference(*arrays, mask=seen, causal=causal)
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-12)
    weight = numbers(*wanted.shape, seed=7)
    (out * oar.to_tensor(weight)).sum().backward()
    for which, (array, tensor) in enumerate(zip(arrays, tensors)):
        place, step = tuple(n // 2 for n in array.shape), 1e-5
        moved = []
        for sign in (1, -1):
            changed = [a.copy() for a in arrays]
            changed[which][place] += sign * step
            moved.append((reference(*changed, mask=seen, causal=causal) * weight).sum())
        assert tensor.grad.numpy()[place] == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_under_a_mask_of_large_numbers(dtype):
    """A row whose scores are all near -1e9: the weights still sum to 1 in the derivative."""
    query, key, value = (oar.to_tensor(a).astype(dtype) for a in qkv(1, 40, 2, 40, 2, 16))
    value.stop_gradient = False
    mask = np.zeros((40, 40), "float32")
    mask[::2] = -1e9
    F.scaled_dot_product_attention(query, key, value, attn_mask=oar.to_tensor(mask)).sum().backward()
    total = value.grad.astype("float64").numpy().sum(1)
    np.testing.assert_allclose(total, 40, rtol=2e-2 if dtype == "bfloat16" else 1e-4)


def test_no_keys():
    out = F.scaled_dot_product_attention(oar.ones([1, 2, 1, 4]), oar.ones([1, 0, 1, 4]), oar.ones([1, 0, 1, 4]))
    assert out.tolist() == oar.zeros([1, 2, 1, 4]).tolist()


def test_nan_is_not_hidden():
    query = oar.full([1, 2, 1, 4], float("nan"))
    out = F.scaled_dot_product_attention(query, oar.ones([1, 3, 1, 4]), oar.ones([1, 3, 1, 4]))
    assert np.isnan(out.numpy()).all()


def test_dropout():
    query, key, value = oar.randn([2, 8, 2, 16]), oar.randn([2, 64, 2, 16]), oar.ones([2, 64, 2, 16])
    dropped = F.scaled_dot_product_attention(query, key, value, dropout_p=0.5)
    assert 0.05 < float(dropped.std()) < 1 and abs(float(dropped.mean()) - 1) < 0.3
    whole = F.scaled_dot_product_attention(query, key, value, dropout_p=0.5, training=False)
    np.testing.assert_allclose(whole.numpy(), 1, rtol=1e-5)
    assert not F.scaled_dot_product_attention(query, key, value, dropout_p=1.0).numpy().any()


def test_flash_attention_forms():
    flash = F.flash_attention
    arrays = qkv(2, 6, 4, 6, 4, 8)
    tensors = [oar.to_tensor(a) for a in arrays]
    wanted = reference(*arrays, causal=True)
    out, weights = flash.flash_attention(*tensors, causal=True)
    assert weights is None
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-12)
    out, weights = flash.flash_attention(*tensors, causal=True, return_softmax=True)
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(weights.numpy().sum(-1), 1, atol=1e-12)
    packed, _ = F.flash_attn_qkvpacked(oar.stack(tensors, 2), causal=True)
    np.testing.assert_allclose(packed.numpy(), wanted, atol=1e-12)
    # The two samples one after the other.
    flat = [oar.reshape(t, [12, 4, 8]) for t in tensors]
    ends = oar.to_tensor([0, 6, 12], dtype="int32")
    out, _ = flash.flash_attn_unpadded(*flat, ends, ends, 6, 6, 8**-0.5, causal=True)
    np.testing.assert_allclose(out.numpy().reshape(wanted.shape), wanted, atol=1e-12)
    seed = oar.to_tensor([3, 5])
    one, two = (flash.flash_attention(*tensors, dropout=0.5, fixed_seed_offset=seed)[0].numpy() for _ in range(2))
    assert (one == two).all()


def test_errors():
    x = oar.ones([1, 2, 3, 4])
    with pytest.raises(ValueError, match="not a multiple of the 2 heads"):
        F.scaled_dot_product_attention(x, oar.ones([1, 2, 2, 4]), oar.ones([1, 2, 2, 4]))
    with pytest.raises(ValueError, match="does not broadcast"):
        F.scaled_dot_product_attention(x, x, x, oar.ones([5, 7]))
    with pytest.raises(ValueError, match="enable_gqa=False"):
        F.scaled_dot_product_attention(x, x[:, :, :1], x[:, :, :1], enable_gqa=False)
    with pytest.raises(ValueError, match="divisible"):
        nn.MultiHeadAttention(10, 3)


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_subclass_prepares_queries_and_keys(need_weights):
    """Rotary embeddings are put in by overriding ``_prepare_qkv``."""

    def rotated(x):
        angle = np.arange(x.shape[2])[:, None] / 10.0 ** np.arange(x.shape[3] // 2)
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = [even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)]
        return np.stack(turned, -1).reshape(x.shape).astype("float32")

    class Rotary(nn.MultiHeadAttention):
        def _prepare_qkv(self, query, key, value, cache=None):
            q, k, v = super()._prepare_qkv(query, key, value, cache)
            assert list(q.shape) == [2, 2, 5, 4] and cache is None
            return oar.to_tensor(rotated(q.numpy())), oar.to_tensor(rotated(k.numpy())), v

    layer, x = Rotary(8, 2, need_weights=need_weights), numbers(2, 5, 8).astype("float32")
    q, k, v = (p(oar.to_tensor(x)).numpy().reshape(2, 5, 2, 4) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    q, k = (rotated(part.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for part in (q, k))
    out = layer(oar.to_tensor(x))
    wanted = layer.out_proj(oar.to_tensor(reference(q, k, v).reshape(2, 5, 8).astype("float32")))
    np.testing.assert_allclose((out[0] if need_weights else out).numpy(), wanted.numpy(), atol=1e-5)


def test_a_subclass_may_change_the_width_of_queries():
    class Wide(nn.MultiHeadAttention):
        def _prepare_qkv(self, query, key, value, cache=None):
            q, k, v = super()._prepare_qkv(query, key, value, cache)
            return oar.concat([q, q], -1), oar.concat([k, k], -1), v

    layer, x = Wide(8, 2), oar.to_tensor(numbers(2, 5, 8).astype("float32"))
    q, k, v = (p(x).numpy().reshape(2, 5, 2, 4) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    wanted = layer.out_proj(oar.to_tensor(reference(q, k, v, scale=1.0).reshape(2, 5, 8).astype("float32")))
    np.testing.assert_allclose(layer(x).numpy(), wanted.numpy(), atol=1e-5)


def test_multi_head_attention_weights_and_cache():
    oar.seed(1)
    layer = nn.MultiHeadAttention(8, 2)
    x = oar.randn([2, 5, 8])
    whole = layer(x, attn_mask=oar.tril(oar.ones([5, 5])).astype("bool"))
    layer.need_weights = True
    out, weights = layer(x)
    assert weights.shape == [2, 2, 5, 5]
    layer.need_weights = False
    np.testing.assert_allclose(out.numpy(), layer(x).numpy(), atol=1e-6)
    cache = layer.gen_cache(x)
    for t in range(5):
        step, cache = layer(x[:, t:t + 1], x[:, t:t + 1], x[:, t:t + 1], None, cache)
        np.testing.assert_allclose(step.numpy()[:, 0], whole.numpy()[:, t], atol=1e-5)
    assert cache.k.shape == [2, 2, 5, 4]
    static = layer.gen_cache(x, x, type=nn.MultiHeadAttention.StaticCache)
    out, same = layer(x, x, x, None, static)
    np.testing.assert_allclose(out.numpy(), layer(x).numpy(), atol=1e-6)
    assert same is static


def test_transformer_decodes_step_by_step_as_at_once():
    oar.seed(2)
    net = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, normalize_before=True)
    net.eval()
    source, target = oar.randn([2, 4, 8]), oar.randn([2, 3, 8])
    whole = net(source, target, tgt_mask=net.generate_square_subsequent_mask(3))
    memory = net.encoder(source)
    cache = net.decoder.gen_cache(memory)
    for t in range(3):
        step, cache = net.decoder(target[:, t:t + 1], memory, cache=cache)
        np.testing.assert_allclose(step.numpy()[:, 0], whole.numpy()[:, t], atol=1e-5)
    assert len(net.encoder.layers) == 1 and len(net.decoder.layers) == 2
    assert net.decoder.layers[0].linear1.weight is not net.decoder.layers[1].linear1.weight


def test_transformer_trains():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1), 2)
    net(oar.randn([2, 5, 8])).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def _attention(q, k, v, seen):
    """[batch, length, heads, width] by loops; seen [batch, heads, queries, keys]."""
    out, sharers = np.zeros(q.shape), q.shape[2] // k.shape[2]
    for b, h, i in np.ndindex(q.shape[0], q.shape[2], q.shape[1]):
        keys = np.flatnonzero(seen[b, h, i])
        if keys.size:
            scores = k[b, keys, h // sharers] @ q[b, i, h] / np.sqrt(q.shape[3])
            share = np.exp(scores - scores.max())
            out[b, i, h] = share / share.sum() @ v[b, keys, h // sharers]
    return out


@pytest.mark.parametrize("causal, width", [(True, 1), (True, 2), (False, 2), (False, 4)])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_masks_by_rows_of_each_key(causal, width, heads):
    rng = np.random.default_rng(width + heads)
    q, k, v = rng.normal(size=(2, 6, 4, 3)), rng.normal(size=(2, 6, 2, 3)), rng.normal(size=(2, 6, 2, 3))
    rows = np.sort(rng.integers(0, 7, (2, heads, 6, width)), -1)
    if not causal and width == 2:
        rows = rows[..., ::-1].copy()  # the lower part starts after the upper part ends
    if width == 4:
        rows = rows[..., [2, 3, 0, 1]].copy()
    i = np.arange(6)[:, None]
    bounds = [np.repeat(rows[..., n], 4 // heads, 1)[:, :, None] for n in range(width)]
    if causal:
        hidden = (i >= bounds[0]) & ((i < bounds[1]) if width == 2 else True) | (np.arange(6) > i)
    elif width == 2:
        hidden = (i >= bounds[0]) | (i < bounds[1])
    else:
        hidden = (i >= bounds[0]) & (i < bounds[1]) | (i >= bounds[2]) & (i < bounds[3])
    given = [oar.to_tensor(t) for t in (q, k, v)]
    found = F.flashmask_attention(*given, oar.to_tensor(rows, dtype="int32"), causal=causal)
    np.testing.assert_allclose(found.numpy(), _attention(q, k, v, ~hidden), rtol=1e-9, atol=1e-12)


def test_attention_in_a_window():
    q = np.random.default_rng(0).normal(size=(1, 7, 1, 2))
    i, j = np.arange(7)[:, None], np.arange(7)
    x = oar.to_tensor(q)
    for window, causal, near in [(2, True, (j >= i - 2) & (j <= i)), ((1, 3), False, (j >= i - 1) & (j <= i + 3))]:
        found = F.flashmask_attention(x, x, x, causal=causal, window_size=window)
        np.testing.assert_allclose(found.numpy(), _attention(q, q, q, near[None, None]), rtol=1e-9)
    with pytest.raises(ValueError, match="startend_row_indices has shape"):
        F.flashmask_attention(x, x, x, oar.ones([1, 1, 7, 3], "int32"))


def test_attention_to_lists_of_keys():
    rng = np.random.default_rng(1)
    seen = rng.random((2, 2, 5, 5)) < 0.5
    seen[0, 0, 3] = False  # an empty list; the counts of heads differ, so shorter lists are followed by anything
    most = seen.sum((2, 3)).max()
    columns = np.array([[np.pad(np.nonzero(m)[1], (0, most - m.sum())) for m in head] for head in seen])
    offset = np.concatenate([np.zeros((2, 2, 1), int), np.cumsum(seen.sum(-1), -1)], -1)
    q, k, v = (rng.normal(size=(2, 2, 5, 3)) for _ in range(3))
    padding, mask = np.array([[1, 1, 1, 0, 1], [1, 1, 1, 1, 1]]), np.tri(5)
    given = [oar.to_tensor(t) for t in (q, k, v)]
    lists = [oar.to_tensor(offset, dtype="int32"), oar.to_tensor(columns, dtype="int32")]

    def wanted(seen):
        return _attention(*(t.transpose(0, 2, 1, 3) for t in (q, k, v)), seen).transpose(0, 2, 1, 3)

    np.testing.assert_allclose(F.sparse_attention(*given, *lists).numpy(), wanted(seen), rtol=1e-9, atol=1e-12)
    found = F.sparse_attention(*given, *lists, oar.to_tensor(padding, dtype="float64"), oar.to_tensor(mask))
    both = seen & (padding[:, None, None] > 0) & (mask > 0)
    np.testing.assert_allclose(found.numpy(), wanted(both), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("causal, window, softcap", [(False, (-1, -1), 0.0), (True, (-1, -1), 0.0), (False, (1, 2), 3.0),
                                                     (True, (2, -1), 0.0)])
@pytest.mark.parametrize("used", [False, True])
def test_sequences_with_windows(causal, window, softcap, used):
    rng, ends_q, ends_k = np.random.default_rng(2), [0, 3, 5, 9], [0, 5, 7, 9]  # the last has more queries than keys
    q, k, v = (rng.normal(size=(9, heads, 4)) for heads in (4, 2, 2))
    count_q, count_k = ([2, 2, 3], [4, 1, 2]) if used else ([3, 2, 4], [5, 2, 2])
    wanted, sums = np.zeros((9, 4, 4)), np.full((4, 9), -np.inf)
    for begin_q, begin_k, n, m in zip(ends_q, ends_k, count_q, count_k):
        for row, head in np.ndindex(n, 4):
            place = row + m - n
            seen = [j for j in range(m) if (window[0] < 0 or j >= place - window[0])
                    and (j <= place if causal else window[1] < 0 or j <= place + window[1])]
            if not seen:
                continue
            at = begin_k + np.array(seen)
            scores = k[at, head // 2] @ q[begin_q + row, head] / 2
            scores = softcap * np.tanh(scores / softcap) if softcap else scores
            sums[head, begin_q + row] = np.log(np.exp(scores).sum())
            wanted[begin_q + row, head] = np.exp(scores) @ v[at, head // 2] / np.exp(scores).sum()
    x, *others = (oar.to_tensor(t, stop_gradient=False) for t in (q, k, v))
    limits = [oar.to_tensor(t, dtype="int32") for t in (count_q, count_k)] if used else [None, None]
    starts = [oar.to_tensor(t, dtype="int32") for t in (ends_q, ends_k)]
    out, found = F.flash_attention_v3_varlen(x, *others, *starts, 4, 5, *limits, causal=causal, window_size=window,
                                             softcap=softcap)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.numpy(), sums, rtol=1e-9)
    out.sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and np.isfinite(others[0].grad.numpy()).all()


def test_what_windows_refuse():
    x, ends = oar.ones([4, 1, 2]), oar.to_tensor([0, 4], dtype="int32")
    with pytest.raises(NotImplementedError, match="float8, which needs a GPU"):
        F.flash_attention_v3_varlen(x, x, x, ends, ends, 4, 4, q_descale=oar.ones([1]))
    with pytest.raises(ValueError, match="1 sequences and cu_seqlens_k 2"):
        F.flash_attention_v3_varlen(x, x, x, ends, oar.to_tensor([0, 2, 4], dtype="int32"), 4, 4)
