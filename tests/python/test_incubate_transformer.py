"""Transformers with caches against a plain NumPy model that computes every sequence as a whole."""

import math

import numpy as np
import pytest

import oar
from oar import incubate
from oar.incubate.nn import functional as fused

SIZE, HEADS, HEAD, INNER, LAYERS = 8, 4, 2, 6, 2


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


ACTIVATIONS = {
    "gelu": gelu,
    "relu": lambda x: np.maximum(x, 0),
    "swiglu": lambda x: silu(x[..., :INNER]) * x[..., INNER:],
    "geglu": lambda x: gelu(x[..., :INNER]) * x[..., INNER:],
}


def weights(shared=HEADS, activation="gelu", biases=True, seed=0):
    """The arguments of the function, as arrays, by name."""
    r = np.random.default_rng(seed)
    wide = INNER * (2 if activation.endswith("glu") else 1)
    heads = [3, HEADS] if shared == HEADS else [HEADS + 2 * shared]
    shapes = {
        "ln_scales": [SIZE], "ln_biases": [SIZE], "qkv_weights": [*heads, HEAD, SIZE], "qkv_biases": [*heads, HEAD],
        "linear_weights": [SIZE, SIZE], "linear_biases": [SIZE], "ffn_ln_scales": [SIZE], "ffn_ln_biases": [SIZE],
        "ffn1_weights": [SIZE, wide], "ffn1_biases": [wide], "ffn2_weights": [INNER, SIZE], "ffn2_biases": [SIZE],
    }  # fmt: skip
    return {name: None if name.endswith("biases") and not biases else [r.normal(size=shape) for _ in range(LAYERS)]
            for name, shape in shapes.items()}


def tensors(given):
    return {name: None if value is None else [oar.to_tensor(array) for array in value] for name, value in given.items()}


def turned(x, cos, sin, neox):
    if neox:
        other = np.concatenate([-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]], -1)
    else:
        other = np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    return x * cos + other * sin


def plain(x, w, mask=None, pre_norm=True, alpha=1.0, activation="gelu", norm_type="layernorm", rotary=None, neox=False,
          prefix=None):
    """One batch without a cache; mask is added to the scores, prefix has keys and values of each layer."""

    def norm(t, scale, bias):
        centred = t - t.mean(-1, keepdims=True) if norm_type == "layernorm" else t
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def of(name, i):
        return 0.0 if w[name] is None else w[name][i]

    caches = []
    for i in range(LAYERS):
        inner = norm(x, of("ln_scales", i), of("ln_biases", i)) if pre_norm else x
        weight = w["qkv_weights"][i]
        qkv = inner @ weight.reshape(-1, SIZE).T + (0 if w["qkv_biases"] is None else w["qkv_biases"][i].ravel())
        qkv = qkv.reshape(*x.shape[:2], -1, HEAD).transpose(0, 2, 1, 3)
        shared = (qkv.shape[1] - HEADS) // 2
        q, k, v = qkv[:, :HEADS], qkv[:, HEADS:HEADS + shared], qkv[:, HEADS + shared:]
        if rotary is not None:
            q, k = (turned(t, *rotary, neox) for t in (q, k))
        if prefix is not None:
            k, v = (np.concatenate([prefix[i][j], t], 2) for j, t in enumerate((k, v)))
        caches.append(np.stack([k, v]))
        k, v = (np.repeat(t, HEADS // shared, 1) for t in (k, v))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(HEAD) + (0 if mask is None else mask)
        out = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(*x.shape)
        x = alpha * x + out @ w["linear_weights"][i] + of("linear_biases", i)
        x = x if pre_norm else norm(x, of("ln_scales", i), of("ln_biases", i))
        inner = norm(x, of("ffn_ln_scales", i), of("ffn_ln_biases", i)) if pre_norm else x
        inner = ACTIVATIONS[activation](inner @ w["ffn1_weights"][i] + of("ffn1_biases", i))
        x = alpha * x + inner @ w["ffn2_weights"][i] + of("ffn2_biases", i)
        x = x if pre_norm else norm(x, of("ffn_ln_scales", i), of("ffn_ln_biases", i))
    return x, caches


def causal(rows, before=0):
    return np.where(np.arange(before + rows) <= np.arange(rows)[:, None] + before, 0.0, -np.inf)


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_type, biases, alpha", [("layernorm", True, 1.0), ("rmsnorm", False, 0.5)])
def test_layers(pre_norm, activation, norm_type, biases, alpha):
    x, w = np.random.default_rng(1).normal(size=(2, 5, SIZE)), weights(activation=activation, biases=biases)
    mask = np.random.default_rng(2).normal(size=(2, 1, 5, 5))
    out = fused.fused_multi_transformer(oar.to_tensor(x), **tensors(w), pre_layer_norm=pre_norm, residual_alpha=alpha,
                                        attn_mask=oar.to_tensor(mask), activation=activation, norm_type=norm_type)
    close(out, plain(x, w, mask, pre_norm, alpha, activation, norm_type)[0])


def test_untransposed_weights_and_gradients():
    x, w = oar.to_tensor(np.random.default_rng(1).normal(size=(2, 5, SIZE)), stop_gradient=False), tensors(weights())
    out = fused.fused_multi_transformer(x, **w)
    other = {**w, "qkv_weights": [t.transpose([3, 0, 1, 2]) for t in w["qkv_weights"]]}
    close(fused.fused_multi_transformer(x, **other, trans_qkvw=False), out.numpy())
    slope = oar.grad((out * out).sum(), [x])[0].numpy()
    step = np.zeros(x.shape)
    step[1, 2, 3] = 1e-6
    higher, lower = ((plain(x.numpy() + s, weights())[0] ** 2).sum() for s in (step, -step))
    assert slope[1, 2, 3] == pytest.approx((higher - lower) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("shared", [HEADS, 2, 1])
@pytest.mark.parametrize("neox", [False, True])
def test_generation(shared, neox):
    """A prompt and three more positions, one by one, are the whole sequence."""
    r = np.random.default_rng(3)
    x, w = r.normal(size=(2, 7, SIZE)), weights(shared)
    angles = r.normal(size=(2, 1, 7, HEAD // 2))
    angles = np.concatenate([angles, angles], -1) if neox else np.repeat(angles, 2, -1)
    rotary = np.cos(angles), np.sin(angles)
    wanted, caches = plain(x, w, causal(7), rotary=rotary, neox=neox)
    options = {**tensors(w), "gqa_group_size": -1 if shared == HEADS else shared, "rotary_emb_dims": 1,
               "use_neox_rotary_style": neox}
    kept = [oar.zeros([2, 2, shared, 9, HEAD], dtype="float64") for _ in range(LAYERS)]
    table = oar.to_tensor(np.stack(rotary))
    out, kept = fused.fused_multi_transformer(oar.to_tensor(x[:, :4]), **options, cache_kvs=kept,
                                              rotary_embs=table[:, :, :, :4])
    close(out, wanted[:, :4])
    for t in range(4, 7):
        out, kept = fused.fused_multi_transformer(
            oar.to_tensor(x[:, t:t + 1]), **options, cache_kvs=kept, rotary_embs=table[:, :, :, t:t + 1],
            time_step=oar.to_tensor([t], dtype="int32"))
        close(out, wanted[:, t:t + 1])
    for cache, array in zip(kept, caches):
        close(cache[:, :, :, :7], array)
        assert not cache[:, :, :, 7:].numpy().any()


def test_two_parts_of_a_head():
    """With two elements per part, the halves of a part are neighbours."""
    r = np.random.default_rng(4)
    w = tensors({**weights(), "qkv_weights": [r.normal(size=(3, 2, 4, SIZE)) for _ in range(LAYERS)], "qkv_biases": None})
    angles = np.repeat(r.normal(size=(1, 1, 3, 2)), 2, -1)
    options = {"x": oar.to_tensor(r.normal(size=(1, 3, SIZE))), **w,
               "rotary_embs": oar.to_tensor(np.stack([np.cos(angles), np.sin(angles)]))}
    parts = fused.fused_multi_transformer(**options, rotary_emb_dims=2, use_neox_rotary_style=True)
    close(parts, fused.fused_multi_transformer(**options, rotary_emb_dims=1).numpy())
    whole = fused.fused_multi_transformer(**options, rotary_emb_dims=1, use_neox_rotary_style=True)
    assert np.abs(whole.numpy() - parts.numpy()).max() > 1e-3


def test_prefix_and_lengths():
    r = np.random.default_rng(5)
    x, w = r.normal(size=(2, 4, SIZE)), weights()
    prefix = r.normal(size=(LAYERS, 2, 2, HEADS, 3, HEAD))
    kept = [oar.zeros([2, 2, HEADS, 9, HEAD], dtype="float64") for _ in range(LAYERS)]
    wanted, caches = plain(x, w, causal(4, 3), prefix=prefix)
    out, _ = fused.fused_multi_transformer(oar.to_tensor(x), **tensors(w), cache_kvs=kept,
                                           pre_caches=[oar.to_tensor(p) for p in prefix])
    close(out, wanted)
    close(kept[1][:, :, :, :7], caches[1])

    lengths = oar.to_tensor([2, 4], dtype="int32")
    empty = [oar.zeros([2, 2, HEADS, 6, HEAD], dtype="float64") for _ in range(LAYERS)]
    out, kept = fused.fused_multi_transformer(oar.to_tensor(x), **tensors(w), cache_kvs=empty, seq_lens=lengths)
    new = r.normal(size=(2, 1, SIZE))
    step, _ = fused.fused_multi_transformer(oar.to_tensor(new), **tensors(w), cache_kvs=kept, seq_lens=lengths,
                                            time_step=4)
    for b, n in enumerate((2, 4)):
        alone, _ = plain(np.concatenate([x[b:b + 1, :n], new[b:b + 1]], 1), w, causal(n + 1))
        close(out[b, :n], alone[0, :n])
        close(step[b], alone[0, n:])
    assert not out[0, 2:].numpy().any()


def test_layer_of_transformers():
    attr = oar.ParamAttr(initializer=oar.nn.initializer.Normal())
    layers = incubate.nn.FusedMultiTransformer(SIZE, HEADS, INNER, qkv_bias_attrs=attr, num_layers=LAYERS)
    assert len(layers.parameters()) == 7 * LAYERS and layers.ln_biases is None
    w = {name: None if getattr(layers, name) is None else [t.numpy() for t in getattr(layers, name)] for name in weights()}
    x = np.random.default_rng(6).normal(size=(2, 5, SIZE)).astype("float32")
    np.testing.assert_allclose(layers(oar.to_tensor(x)).numpy(), plain(x, w)[0], rtol=1e-4, atol=1e-4)
    other = incubate.nn.FusedMultiTransformer(SIZE, HEADS, INNER, activation="swiglu", num_layers=1, gqa_group_size=2,
                                              trans_qkvw=False)
    assert other.qkv_weights[0].shape == [SIZE, HEADS + 4, HEAD] and other.ffn1_weights[0].shape == [SIZE, 2 * INNER]
    assert other(oar.to_tensor(x)).shape == [2, 5, SIZE]
    with pytest.raises(ValueError, match="num_layers is -1"):
        incubate.nn.FusedMultiTransformer(SIZE, HEADS, INNER)


def test_mistakes_of_transformers():
    x, w = oar.ones([1, 2, SIZE], dtype="float64"), tensors(weights())
    with pytest.raises(ValueError, match="norm_type is 'batch'"):
        fused.fused_multi_transformer(x, **w, norm_type="batch")
    with pytest.raises(ValueError, match="for 2 layers"):
        fused.fused_multi_transformer(x, **w, cache_kvs=[])
    with pytest.raises(ValueError, match="x must have length 1, not 2"):
        fused.fused_multi_transformer(x, **w, time_step=1)
    with pytest.raises(ValueError, match="room for 1 positions"):
        fused.fused_multi_transformer(x, **w, cache_kvs=[oar.zeros([2, 1, HEADS, 1, HEAD])] * 2)
    with pytest.raises(ValueError, match="room for 3 positions, but position 3"):
        fused.fused_multi_transformer(x[:, :1], **w, cache_kvs=[oar.zeros([2, 1, HEADS, 3, HEAD])] * 2, time_step=3)
    with pytest.raises(ValueError, match="does not fit size 8"):
        fused.fused_multi_transformer(x, **w, gqa_group_size=2)
    with pytest.raises(NotImplementedError, match="index_select"):
        fused.fused_multi_transformer(x, **w, beam_offset=oar.ones([1]))
