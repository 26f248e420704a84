"""Fused functions against their parts."""

import numpy as np
import pytest

import oar
from oar import incubate, nn
from oar.incubate.nn import functional as fused
from oar.nn import functional as F


def rand(*shape, seed=0):
    return oar.to_tensor(np.random.default_rng(seed).normal(size=shape))


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy() if hasattr(b, "numpy") else b, rtol=1e-9, atol=1e-12)


def test_norms():
    x, residual, bias, weight = rand(2, 3, 4), rand(2, 3, 4, seed=1), rand(4, seed=2), rand(4, seed=3)
    total = x + bias + residual
    out, kept = fused.fused_rms_norm(x, weight, None, 1e-6, 2, bias, residual)
    close(out, total.numpy() / np.sqrt((total.numpy() ** 2).mean(-1, keepdims=True) + 1e-6) * weight.numpy())
    close(kept, total)
    whole = rand(12, seed=4)
    out, kept = fused.fused_rms_norm(x, whole, None, 0.0, 1)
    flat = x.numpy().reshape(2, 12)
    close(out.reshape([2, 12]), flat / np.sqrt((flat**2).mean(-1, keepdims=True)) * whole.numpy())
    assert kept is None
    out, kept = fused.fused_layer_norm(x, weight, bias, 1e-6, 0.5, 2, bias, residual)
    close(out, F.layer_norm(x + bias + residual * 0.5, [4], weight, bias, 1e-6))
    out, mean, inverse = fused.fast_ln(x, weight, bias)
    close(out, F.layer_norm(x, [4], weight, bias))
    close(mean, x.numpy().mean(-1).ravel())
    close(inverse, 1 / np.sqrt(x.numpy().var(-1).ravel() + 1e-5))
    close(fused.fast_rms_norm(x, weight)[0], fused.fused_rms_norm(x, weight, None, 1e-5, 2)[0])
    assert fused.fused_rms_norm_ext(x, weight)[1].shape == [2, 3]
    with pytest.raises(ValueError, match="begin_norm_axis is 3"):
        fused.fused_rms_norm(x, weight, None, 1e-6, 3)


def test_quantised_results():
    x = oar.to_tensor([[-3.0, 0.5, 1.5, 9.0]])
    out = fused.fused_bias_act(x, act_method="relu", quant_scale=0.01, quant_max_bound=127.0, quant_min_bound=-127.0)
    assert out.dtype.name == "int8" and out.tolist() == [[0, 1, 2, 11]]


@pytest.mark.parametrize("neox", [True, False])
def test_rotary_positions(neox):
    q, positions = rand(2, 3, 2, 4), np.array([[0, 1, 2], [4, 2, 0]])
    angles = np.random.default_rng(5).normal(size=(5, 2))
    angles = np.repeat(angles, 2, 1) if neox else np.tile(angles, 2)
    sin, cos = oar.to_tensor(np.sin(angles)), oar.to_tensor(np.cos(angles))
    out, none, _ = fused.fused_rotary_position_embedding(
        q, sin=sin, cos=cos, position_ids=oar.to_tensor(positions), use_neox_rotary_style=neox)
    assert none is None
    pairs = [(0, 1), (2, 3)] if neox else [(0, 2), (1, 3)]
    wanted, x = np.zeros(q.shape), q.numpy()
    for b, s in np.ndindex(2, 3):
        for i, j in pairs:
            c, d = np.cos(angles[positions[b, s], i]), np.sin(angles[positions[b, s], i])
            wanted[b, s, :, i], wanted[b, s, :, j] = (x[b, s, :, i] * c - x[b, s, :, j] * d,
                                                      x[b, s, :, j] * c + x[b, s, :, i] * d)
    close(out, wanted)
    major = fused.fused_rotary_position_embedding(
        q.transpose([1, 0, 2, 3]), sin=sin, cos=cos, position_ids=oar.to_tensor(positions), use_neox_rotary_style=neox,
        time_major=True)[0]
    close(major.transpose([1, 0, 2, 3]), wanted)


def test_rotary_angles_of_their_own():
    q = rand(1, 5, 1, 4)
    turns = np.arange(5)[:, None] * 10000.0 ** (-np.array([0, 0, 2, 2]) / 4)
    sin, cos = oar.to_tensor(np.sin(turns)), oar.to_tensor(np.cos(turns))
    own, given = fused.fused_rotary_position_embedding(q)[0], fused.fused_rotary_position_embedding(q, sin=sin, cos=cos)[0]
    np.testing.assert_allclose(own.numpy(), given.numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="need sin and cos"):
        fused.fused_rotary_position_embedding(q, use_neox_rotary_style=False)


@pytest.mark.parametrize("before", [True, False])
def test_an_encoder_layer_is_the_plain_one(before):
    plain = nn.TransformerEncoderLayer(8, 2, 16, 0.0, normalize_before=before)
    layer = incubate.nn.FusedTransformerEncoderLayer(8, 2, 16, 0.0, normalize_before=before)
    attention, a = layer.fused_attn, plain.self_attn
    weights = [p.weight.T.reshape([2, 4, 8]) for p in (a.q_proj, a.k_proj, a.v_proj)]
    attention.qkv_weight.set_value(oar.stack(weights))
    attention.qkv_bias.set_value(oar.stack([p.bias.reshape([2, 4]) for p in (a.q_proj, a.k_proj, a.v_proj)]))
    attention.linear_weight.set_value(a.out_proj.weight)
    attention.linear_bias.set_value(a.out_proj.bias)
    layer.ffn._linear1_weight.set_value(plain.linear1.weight)
    layer.ffn._linear2_weight.set_value(plain.linear2.weight)
    x = oar.to_tensor(rand(2, 5, 8).numpy(), dtype="float32")
    mask = oar.to_tensor(np.tri(5)[None, None], dtype="bool")
    np.testing.assert_allclose(layer(x, mask).numpy(), plain(x, mask).numpy(), atol=2e-6)
    layer(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_attention_in_a_cache_is_that_of_the_whole():
    x, weight, linear = rand(1, 4, 6), rand(3, 2, 3, 6, seed=1), rand(6, 6, seed=2)
    mask = oar.to_tensor(np.tri(4)[None, None] > 0)
    whole = fused.fused_multi_head_attention(x, weight, linear, attn_mask=mask, training=False)
    cache, rows = oar.zeros([2, 1, 2, 0, 3], "float64"), []
    for i in range(4):
        row, cache = fused.fused_multi_head_attention(x[:, i:i + 1], weight, linear, cache_kv=cache, training=False)
        rows.append(row)
    close(oar.concat(rows, 1), whole)


def test_masked_attention_step_by_step():
    qkv = rand(4, 2, 3, 2, 3)  # positions, batch, q k v, heads, size
    cache = oar.zeros([2, 2, 2, 5, 3], "float64")
    for i in range(4):
        out, cache = fused.masked_multihead_attention(
            qkv[i].reshape([2, 18]), cache, sequence_lengths=oar.full([2, 1], i, "int32"))
        q, k, v = (qkv.numpy()[:i + 1, :, j].transpose(1, 2, 0, 3) for j in range(3))
        scores = np.einsum("bhd,bhkd->bhk", q[:, :, i], k) / np.sqrt(3)
        share = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        close(out, np.einsum("bhk,bhkd->bhd", share, v).reshape(2, 6))
    with pytest.raises(NotImplementedError, match="needs a GPU"):
        fused.masked_multihead_attention(qkv[0].reshape([2, 18]), cache, out_shift=oar.ones([1]))


def test_attention_of_different_lengths():
    q, k, v = rand(2, 4, 3, 2), rand(2, 2, 5, 2, seed=1), rand(2, 2, 5, 2, seed=2)
    lengths, keys = oar.to_tensor([[3], [1]]), oar.to_tensor([[5], [2]])
    out = fused.variable_length_memory_efficient_attention(q, k, v, lengths, keys, causal=True).numpy()
    for b, h, s in np.ndindex(2, 4, 3):
        seen = min(s + 1, int(keys[b, 0]))
        scores = k.numpy()[b, h // 2, :seen] @ q.numpy()[b, h, s] / np.sqrt(2)
        share = np.exp(scores) / np.exp(scores).sum()
        wanted = share @ v.numpy()[b, h // 2, :seen] if s < int(lengths[b, 0]) else np.zeros(2)
        np.testing.assert_allclose(out[b, h, s], wanted, rtol=1e-9, atol=1e-12)


def test_experts():
    x, gate, first, second = rand(2, 3, 4), rand(4, 5, seed=1), rand(5, 4, 6, seed=2), rand(5, 3, 4, seed=3)
    bias = rand(5, 1, 6, seed=4)
    out = fused.fused_moe(x, gate, first, second, bias, moe_topk=2).numpy().reshape(6, 4)
    for t, token in enumerate(x.numpy().reshape(6, 4)):
        chance = np.exp(token @ gate.numpy())
        best = np.argsort(-chance)[:2]
        share = chance[best] / chance[best].sum()
        inner = [token @ first.numpy()[e] + bias.numpy()[e, 0] for e in best]
        parts = [(a[:3] / (1 + np.exp(-a[:3])) * a[3:]) @ second.numpy()[e] for e, a in zip(best, inner)]
        np.testing.assert_allclose(out[t], share @ parts, rtol=1e-9)
    assert fused.int_bincount(oar.to_tensor([[0, 3], [3, 9]]), 0, 5, "int32").tolist() == [1, 0, 0, 2, 0]


def test_products():
    x, y, bias = rand(3, 4), rand(5, 4, seed=1), rand(5, seed=2)
    close(fused.fused_matmul_bias(x, y, bias, transpose_y=True), x @ y.T + bias)
    close(fused.fused_linear_activation(x, y, bias, trans_y=True, activation="gelu"), F.gelu(x @ y.T + bias))
    first, second = (x[:, :2], x[:, 2:])
    close(fused.fused_bias_act(x, act_method="geglu"), F.gelu(first) * second)
    close(fused.swiglu(x), F.silu(first) * second)
    with pytest.raises(ValueError, match="activation is 'tanh'"):
        fused.fused_linear_activation(x, y, bias, trans_y=True, activation="tanh")


def test_what_only_gpus_do_says_so():
    with pytest.raises(NotImplementedError, match="blocks of float8, which only GPUs do"):
        fused.fp8_quant_blockwise(oar.ones([128, 128]))
