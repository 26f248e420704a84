"""Quantised weights against NumPy."""

import numpy as np
import pytest

import oar
from oar.nn import quant


def away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def quantised(w, most, group=-1):
    """Integers [in, out] and the scales of each element."""
    group = len(w) if group < 0 else group
    scale = np.concatenate([np.repeat(np.abs(w[i:i + group]).max(0, keepdims=True) / most, len(w[i:i + group]), 0)
                            for i in range(0, len(w), group)])
    return np.clip(away(w / scale), -most, most), scale


def weight(rows=150, columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.mark.parametrize("algo, most", [("weight_only_int8", 127), ("llm.int8", 127), ("weight_only_int4", 7)])
@pytest.mark.parametrize("group", [-1, 64, 128])
def test_weights(algo, most, group):
    w = weight().astype("float32") if algo == "llm.int8" else weight()
    out, scale = quant.weight_quantize(oar.to_tensor(w), algo, group_size=group)
    wanted, scales = quantised(w, most, group)
    assert scale.shape == ([6] if group < 0 else [-(-150 // group), 6])
    assert out.dtype.name == "int8" and out.shape == [3 if most == 7 else 6, 150]
    if most == 7:
        low, high = out.numpy().astype("int16") & 15, out.numpy() >> 4
        found = np.stack([(low ^ 8) - 8, high], 1).reshape(6, 150)
    else:
        found = out.numpy()
    np.testing.assert_array_equal(found, wanted.T)
    back = quant.weight_dequantize(out, scale, algo, group_size=group)
    np.testing.assert_allclose(back.numpy(), wanted * scales, rtol=1e-6)
    assert np.abs(back.numpy() - w).max() <= scales.max() / 2 * 1.001


@pytest.mark.parametrize("dtype, most", [("int8", 127), ("int4", 7)])
@pytest.mark.parametrize("group", [-1, 64])
def test_linear_with_integer_weights(dtype, most, group):
    w, bias = weight(), np.random.default_rng(1).normal(size=6)
    out, scale = quant.weight_quantize(oar.to_tensor(w), f"weight_only_{dtype}", group_size=group)
    x = oar.to_tensor(np.random.default_rng(2).normal(size=(2, 3, 150)), stop_gradient=False)
    wanted, scales = quantised(w, most, group)
    y = quant.weight_only_linear(x, out, oar.to_tensor(bias), scale, dtype, group_size=group)
    np.testing.assert_allclose(y.numpy(), x.numpy() @ (wanted * scales) + bias, rtol=1e-10)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to((wanted * scales).sum(1), x.shape), rtol=1e-10)


def test_linear_with_outliers():
    r = np.random.default_rng(3)
    w, x = weight().astype("float32"), r.normal(size=(2, 3, 150)).astype("float32")
    x[0, 1, 7], x[1, 2, 100], x[0, 0] = -9.0, 20.0, 0.0
    out, scale = quant.weight_quantize(oar.to_tensor(w), "llm.int8")
    wanted, scales = quantised(w, 127)
    rows = x.reshape(6, 150)
    outlier = np.abs(rows).max(0) > 6
    assert outlier.nonzero()[0].tolist() == [7, 100]
    usual = np.where(outlier, 0, rows)
    highest = np.maximum(np.abs(usual).max(1, keepdims=True), 1e-30)
    y = (away(usual * 127 / highest) @ wanted) * highest / 127 * scales[0] + np.where(outlier, rows, 0) @ (wanted * scales)
    found = quant.llm_int8_linear(oar.to_tensor(x), out, None, scale).numpy()
    np.testing.assert_allclose(found, y.reshape(2, 3, 6), rtol=1e-4, atol=1e-4)
    rounding = highest / 254 * np.abs(wanted * scales).sum(0) + scales[0] / 2 * np.abs(rows).sum(1, keepdims=True)
    assert (np.abs(found.reshape(6, 6) - rows @ w) <= rounding + 1e-4).all()
    with_bias = quant.llm_int8_linear(oar.to_tensor(x), out, oar.ones([6]), scale).numpy()
    np.testing.assert_allclose(with_bias, found + 1, rtol=1e-6)


def test_half_precision_and_zeros():
    w = oar.to_tensor(weight(64, 4)).astype("float16")
    out, scale = quant.weight_quantize(w)
    assert scale.dtype.name == "float16" and quant.weight_dequantize(out, scale).dtype.name == "float16"
    assert quant.weight_quantize(w, "llm.int8")[1].dtype.name == "float32"
    assert not quant.weight_quantize(oar.zeros([4, 2]))[0].numpy().any()


def test_stub_is_an_identity():
    x = oar.to_tensor([1.0, -2.0])
    assert quant.Stub("observer")(x) is x


def test_mistakes():
    w = oar.ones([4, 3])
    with pytest.raises(ValueError, match="algo is 'int3'"):
        quant.weight_quantize(w, "int3")
    with pytest.raises(NotImplementedError, match="needs a GPU. Use 'weight_only_int4'"):
        quant.weight_quantize(w, "w4a8")
    with pytest.raises(ValueError, match="group_size is 32; it can be -1, 64 or 128"):
        quant.weight_quantize(w, group_size=32)
    with pytest.raises(ValueError, match="even number of columns"):
        quant.weight_quantize(w, "weight_only_int4")
    out, scale = quant.weight_quantize(w)
    with pytest.raises(ValueError, match="weight_scale is None"):
        quant.weight_only_linear(oar.ones([2, 4]), out)
    with pytest.raises(ValueError, match=r"the scale has shape \[2\]; .* it must be \[3\]"):
        quant.weight_only_linear(oar.ones([2, 4]), out, None, scale[:2])
    with pytest.raises(ValueError, match="it must be a matrix of int8"):
        quant.weight_dequantize(w, scale)
