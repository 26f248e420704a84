"""Attention over blocks of caches against attention over whole sequences."""

import numpy as np
import pytest

import oar
from oar.incubate.nn import functional as fused

SIZE, BLOCK = 4, 3


def whole(q, k, v, mask):
    """Attention of [length, heads, size] to [keys, shared heads, size]."""
    k, v = (np.repeat(t, q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(SIZE) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hnm,mhd->nhd", weights / weights.sum(-1, keepdims=True), v)


def causal(start, rows):
    return np.where(np.arange(start + rows) <= start + np.arange(rows)[:, None], 0.0, -np.inf)


def turned(x, cos, sin, neox):
    other = (np.concatenate([-x[..., SIZE // 2:], x[..., :SIZE // 2]], -1) if neox
             else np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape))
    return x * cos[:, None] + other * sin[:, None]


def ints(*numbers):
    return oar.to_tensor(numbers, dtype="int32")


class Sequences:
    """Two sequences of 9 tokens with their blocks, and the whole keys and values that attention should see."""

    def __init__(self, heads=4, shared=4, rope=None, neox=False):
        r = np.random.default_rng(0)
        self.heads, self.shared, self.neox = heads, shared, neox
        self.qkv = r.normal(size=(2, 9, heads + 2 * shared, SIZE))
        self.keys, self.values = (oar.zeros([11, shared, BLOCK, SIZE], dtype="float64") for _ in range(2))
        self.tables = np.array([[7, 2, 9, 0, -1], [4, 1, 10, 3, 8]])
        self.q, self.k, self.v = np.split(self.qkv, [heads, heads + shared], 2)
        self.rope = None
        if rope is not None:
            angles = r.normal(size=(2 if rope == "each" else 1, 9, SIZE // 2))
            self.rope = oar.to_tensor(np.stack([np.cos(angles), np.sin(angles)])[:, :, :, None])
            full = np.broadcast_to(np.tile(angles, 2) if neox else np.repeat(angles, 2, -1), (2, 9, SIZE))
            self.q, self.k = (np.stack([turned(t[b], np.cos(full[b]), np.sin(full[b]), neox) for b in range(2)])
                              for t in (self.q, self.k))

    def call(self, parts, **options):
        """parts has (start, end) of each sequence; end is exclusive."""
        counts = [end - start for start, end in parts]
        begins = np.cumsum([0, *counts])
        rows = np.concatenate([self.qkv[b, start:end] for b, (start, end) in enumerate(parts)]).reshape(sum(counts), -1)
        self.prompts = [n if start == 0 else 0 for n, (start, _) in zip(counts, parts)]
        return fused.block_multihead_attention(
            options.pop("qkv", oar.to_tensor(rows)), self.keys, self.values, ints(*self.prompts),
            ints(*(start for start, _ in parts)), ints(*counts), ints(*[0] * len(rows)), ints(0, 0), ints(*begins),
            ints(*begins), oar.to_tensor(self.tables), rope_emb=self.rope, block_size=BLOCK, use_neox_style=self.neox,
            **options)

    def wanted(self, parts, masks=None):
        rows = []
        for b, (start, end) in enumerate(parts):
            mask = causal(start, end - start) if masks is None else masks[b]
            if end > start:
                rows.append(whole(self.q[b, start:end], self.k[b, :end], self.v[b, :end], mask))
        return np.concatenate(rows).reshape(-1, self.heads * SIZE)


@pytest.mark.parametrize("heads, shared", [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("rope, neox", [(None, False), ("each", False), ("each", True), ("all", False)])
def test_prompts_and_steps(heads, shared, rope, neox):
    s = Sequences(heads, shared, rope, neox)
    # prompts; a step of both; the first alone, the second rests; several positions at once
    for parts in ([(0, 5), (0, 2)], [(5, 6), (2, 3)], [(6, 7), (3, 3)], [(7, 8), (3, 6)]):
        out, _, keys, values = s.call(parts)
        np.testing.assert_allclose(out.numpy(), s.wanted(parts), rtol=1e-9, atol=1e-12)
        assert keys is s.keys and values is s.values
    for cache, array in ((s.keys.numpy(), s.k), (s.values.numpy(), s.v)):
        for b, length in ((0, 8), (1, 6)):
            for p in range(length):
                np.testing.assert_allclose(cache[s.tables[b, p // BLOCK], :, p % BLOCK], array[b, p])
        assert not cache[[5, 6]].any()


def test_a_prompt_beside_a_step():
    s = Sequences()
    s.call([(0, 4), (0, 0)])
    parts = [(4, 5), (0, 3)]
    np.testing.assert_allclose(s.call(parts)[0].numpy(), s.wanted(parts), rtol=1e-9)


def test_masks():
    s, r = Sequences(), np.random.default_rng(1)
    mask, step = r.normal(size=(2, 1, 5, 5)), r.normal(size=(2, 4, 1, 8))
    parts = [(0, 5), (0, 4)]
    out = s.call(parts, mask=oar.to_tensor(mask))[0]
    np.testing.assert_allclose(out.numpy(), s.wanted(parts, [mask[0, :, :5, :5], mask[1, :, :4, :4]]), rtol=1e-9)
    parts = [(5, 6), (4, 5)]
    out = s.call(parts, tgt_mask=oar.to_tensor(step))[0]
    np.testing.assert_allclose(out.numpy(), s.wanted(parts, [step[0, :, :, :6], step[1, :, :, :5]]), rtol=1e-9)


def test_prefix():
    s, r = Sequences(), np.random.default_rng(2)
    prefix = r.normal(size=(2, 2, 4, 2, SIZE))
    given = {"pre_key_cache": oar.to_tensor(prefix[0]), "pre_value_cache": oar.to_tensor(prefix[1])}
    for parts in ([(0, 4), (0, 2)], [(4, 5), (2, 3)]):
        out = s.call(parts, **given)[0]
        rows = [whole(s.q[b, i:j], np.concatenate([prefix[0, b].swapaxes(0, 1), s.k[b, :j]]),
                      np.concatenate([prefix[1, b].swapaxes(0, 1), s.v[b, :j]]), causal(2 + i, j - i)).reshape(j - i, -1)
                for b, (i, j) in enumerate(parts)]
        np.testing.assert_allclose(out.numpy(), np.concatenate(rows), rtol=1e-9)


def test_quantised_input_and_result():
    s, r = Sequences(), np.random.default_rng(3)
    parts = [(0, 2), (0, 3)]
    whole_numbers, bias = r.integers(-50, 50, size=(5, 48)).astype("int32"), r.normal(size=48).astype("float32")
    scale = np.full(48, 0.02, "float32")
    plain = s.call(parts, qkv=oar.to_tensor((whole_numbers * scale + bias).astype("float32")))[0]
    options = {"qkv": oar.to_tensor(whole_numbers), "qkv_out_scale": oar.to_tensor(scale), "qkv_bias": oar.to_tensor(bias),
               "compute_dtype": "fp32"}
    np.testing.assert_allclose(s.call(parts, **options)[0].numpy(), plain.numpy(), rtol=1e-4, atol=1e-5)
    shift, smooth = oar.to_tensor(r.normal(size=16).astype("float32")), oar.full([16], 2.0)
    small = s.call(parts, **options, out_shift=shift, out_smooth=smooth, out_scale=0.1)[0]
    assert small.dtype.name == "int8"
    steps = np.clip((plain.numpy() + shift.numpy()) * 2 * 0.1 * 127, -127, 127)
    np.testing.assert_allclose(small.numpy(), steps, atol=0.51)


def test_mistakes():
    s = Sequences()
    with pytest.raises(NotImplementedError, match="cache_k_quant_scales is for quantised computation, which needs a GPU"):
        s.call([(0, 2), (0, 2)], cache_k_quant_scales=oar.ones([4]))
    s.tables[0, 1] = -1
    with pytest.raises(ValueError, match="sequence 0 has 4 positions and needs 2 blocks"):
        s.call([(0, 4), (0, 2)])
    with pytest.raises(ValueError, match="qkv_out_scale is for qkv of int32"):
        s.call([(0, 2), (0, 2)], qkv_out_scale=oar.ones([48]))
    with pytest.raises(ValueError, match="does not fit caches with 4 heads of size 4"):
        s.call([(0, 2), (0, 2)], qkv=oar.ones([4, 30]))
    with pytest.raises(ValueError, match="only one of pre_key_cache"):
        s.call([(0, 2), (0, 2)], pre_key_cache=oar.ones([2, 4, 1, 4]))
    with pytest.raises(ValueError, match="must be its running sum"):
        s.call([(0, 2), (0, 2)], qkv=oar.ones([5, 48]))
