"""TFLite's models: operators against NumPy, quantised tensors, files that are wrong."""

import random as chances

import numpy as np
import pytest
from tflite_files import model, tensor

import oar
from oar import _C

SAME, VALID = 0, 1
RELU, RELU6 = 1, 3


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def loaded(content):
    return oar.interop.GraphModel(_C.tflite_model(content))


def one(code, inputs, options=None, out=(), outputs=1, dtype="float32"):
    """What a model of one operator computes. Arrays that are not the first one are constants."""
    tensors = [tensor("x", inputs[0].shape, inputs[0].dtype.name), *inputs[1:], *(tensor(f"y{i}", out, dtype) for i in range(outputs))]
    places = list(range(len(inputs)))
    results = [len(inputs) + i for i in range(outputs)]
    made = loaded(model([(code, places, results, options or {})], tensors, [0], results))(inputs[0])
    return made[0].numpy() if outputs == 1 else [m.numpy() for m in made]


def padded_windows(x, kernel, stride, same, fill=0.0):
    """Windows of an image [n, h, w, c], as [n, y, x, kh, kw, c]."""
    pads = [(0, 0)]
    for size, k, s in zip(x.shape[1:3], kernel, stride):
        total = max((-(-size // s) - 1) * s + k - size, 0) if same else 0
        pads.append((total // 2, total - total // 2))
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))[:, ::stride[0], ::stride[1]]
    return np.moveaxis(view, 3, -1)


@pytest.mark.parametrize("padding, stride", [(SAME, (1, 1)), (SAME, (2, 2)), (VALID, (1, 2))])
def test_convolutions(padding, stride):
    x, w, b = random(2, 7, 6, 3), random(4, 3, 2, 3, seed=1), random(4, seed=2)
    windows = padded_windows(x, (3, 2), stride, padding == SAME)
    wanted = np.maximum(np.einsum("nyxhwc,ohwc->nyxo", windows, w) + b, 0)
    got = one(3, [x, w, b], {0: padding, 1: stride[1], 2: stride[0], 3: RELU, 4: 1, 5: 1}, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    w = random(1, 3, 2, 6, seed=3)
    wanted = np.einsum("nyxhwc,hwcm->nyxcm", windows, w[0].reshape(3, 2, 3, 2)).reshape(*windows.shape[:3], 6)
    got = one(4, [x, w], {0: padding, 1: stride[1], 2: stride[0], 3: 2, 5: 1, 6: 1}, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", [SAME, VALID])
def test_pooling(padding):
    x = random(1, 7, 5, 2)
    options = {0: padding, 1: 2, 2: 2, 3: 3, 4: 2}
    holes = padded_windows(x, (2, 3), (2, 2), padding == SAME, np.nan)
    np.testing.assert_allclose(one(17, [x], options), np.nanmax(holes, (3, 4)), rtol=1e-6)
    np.testing.assert_allclose(one(1, [x], options), np.nanmean(holes, (3, 4)), rtol=1e-5, atol=1e-6)


def test_transposed_convolution():
    x, w = random(1, 3, 3, 2), random(1, 2, 2, 2, seed=1)
    wanted = np.zeros((1, 6, 6, 1), "float32")
    for i in range(3):
        for j in range(3):
            wanted[0, 2 * i:2 * i + 2, 2 * j:2 * j + 2, 0] += np.einsum("hwc,c->hw", w[0], x[0, i, j])
    tensors = [np.int32([1, 6, 6, 1]), w, tensor("x", x.shape), tensor("y", wanted.shape)]
    got = loaded(model([(67, [0, 1, 2], [3], {0: SAME, 1: 2, 2: 2})], tensors, [2], [3]))(x)[0].numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


X = random(2, 3, 4)
CASES = {
    "fully connected": (9, [X.reshape(6, 4), random(5, 4), random(5, seed=1)], {0: RELU6},
                        np.clip(X.reshape(6, 4) @ random(5, 4).T + random(5, seed=1), 0, 6)),
    "add": (0, [X, random(4)], {}, X + random(4)), "div": (42, [X, random(4)], {}, X / random(4)),
    "prelu": (54, [X, random(4)], {}, np.where(X > 0, X, X * random(4))), "leaky": (98, [X], {0: 0.5}, np.where(X > 0, X, X / 2)),
    "hard swish": (117, [X], {}, X * np.clip(X + 3, 0, 6) / 6), "softmax": (25, [X], {0: 2.0}, np.exp(2 * X) / np.exp(2 * X).sum(-1, keepdims=True)),
    "mean": (40, [X, np.int32([1])], {0: 1}, X.mean(1, keepdims=True)), "max": (82, [X, np.int32([0, -1])], {}, X.max((0, 2))),
    "reshape": (22, [X, np.int32([4, -1])], {}, X.reshape(4, 6)), "reshape by option": (22, [X], {0: np.int32([6, 4])}, X.reshape(6, 4)),
    "transpose": (39, [X, np.int32([2, 0, 1])], {}, X.transpose(2, 0, 1)), "expand": (70, [X, np.int32([1])], {}, X[:, None]),
    "pad": (34, [X, np.int32([[0, 0], [1, 2], [0, 1]])], {}, np.pad(X, [(0, 0), (1, 2), (0, 1)])),
    "mirror": (100, [X, np.int32([[0, 0], [2, 1], [1, 3]])], {0: 0}, np.pad(X, [(0, 0), (2, 1), (1, 3)], "reflect")),
    "symmetric": (100, [X, np.int32([[1, 2], [0, 0], [4, 0]])], {0: 1}, np.pad(X, [(1, 2), (0, 0), (4, 0)], "symmetric")),
    "slice": (65, [X, np.int32([0, 1, 1]), np.int32([-1, 2, 2])], {}, X[:, 1:3, 1:3]),
    "strided": (45, [X, np.int32([0, -1, 3]), np.int32([9, 0, -9]), np.int32([1, 1, -2])], {0: 1, 1: 5, 4: 2}, X[:, -1, 3::-2]),
    "strided with a new axis": (45, [X, np.int32([0, 0, 1]), np.int32([0, 0, 3]), np.int32([1, 1, 2])], {2: 1, 3: 2}, X[:, :, None, 1:3:2]),
    "gather": (36, [X, np.int32([[2, 0], [1, 1]])], {0: 1}, X[:, [[2, 0], [1, 1]]]),
    "tile": (69, [X, np.int32([1, 2, 1])], {}, np.tile(X, (1, 2, 1))), "cumsum": (128, [X, np.int32(1)], {}, X.cumsum(1)),
    "depth to space": (5, [np.arange(16, dtype="float32").reshape(1, 1, 2, 8)], {0: 2},
                       np.arange(16, dtype="float32").reshape(1, 1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 4, 2)),
    "resize nearest": (97, [random(1, 2, 3, 1), np.int32([4, 6])], {}, random(1, 2, 3, 1).repeat(2, 1).repeat(2, 2)),
    "product": (126, [X, random(2, 5, 4)], {1: 1}, X @ random(2, 5, 4).transpose(0, 2, 1)),
    "l2": (11, [X], {}, X / np.sqrt((X * X).sum(-1, keepdims=True))), "squared difference": (99, [X, random(4)], {}, (X - random(4)) ** 2),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name):
    code, inputs, options, wanted = CASES[name]
    got = one(code, inputs, options, wanted.shape)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_several_outputs_and_indices():
    x = random(2, 6)
    tensors = [np.int32(1), tensor("x", x.shape), *(tensor(f"y{i}", (2, 2)) for i in range(3))]
    parts = loaded(model([(49, [0, 1], [2, 3, 4], {0: 3})], tensors, [1], [2, 3, 4]))(x)
    for got, wanted in zip(parts, np.split(x, 3, 1), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)
    np.testing.assert_array_equal(one(56, [x, np.int32(-1)], {}, (2,), dtype="int32"), x.argmax(1))


def test_sizes_are_constants():
    """A shape that is computed from the shape of an open input."""
    tensors = [tensor("x", (-1, 4)), tensor("s", (2,), "int32"), np.int32([0]), np.int32([1]), np.int32([1]), tensor("n", (), "int32"),
               np.int32(2), tensor("t", (2,), "int32"), tensor("y", (-1, 2))]
    ops = [(77, [0], [1], {}), (45, [1, 2, 3, 4], [5], {4: 1}), (83, [5, 6], [7], {0: 2}), (22, [0, 7], [8], {})]
    ops[2] = (83, [5, 5], [7], {0: 2})
    m = loaded(model(ops, tensors, [0], [8]))
    assert m.shapes == {"x": ["x_0", 4]}
    assert list(m(random(4, 4))[0].shape) == [4, 4]
    with pytest.raises(ValueError):
        m(random(2, 4))  # two rows of four are no two by two


def test_quantised_numbers():
    """A convolution by 1 of uint8 images with int8 weights, as integers would compute it."""
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 3, 2)).astype("uint8")
    w = np.int8([[[[64, -100]]], [[[127, 3]]]])
    b = np.int32([500, -700])
    scales = np.float32([0.01, 0.02])
    tensors = [tensor("x", x.shape, "uint8", scale=0.05, zero=128), (w, {"scale": scales, "zero": [0, 0], "axis": 0}),
               (b, {"scale": scales * np.float32(0.05), "zero": [0, 0], "axis": 0}), tensor("y", (1, 3, 3, 2), "int8", scale=0.1, zero=-3)]
    content = model([(3, [0, 1, 2], [3], {0: SAME, 1: 1, 2: 1, 3: RELU, 4: 1, 5: 1})], tensors, [0], [3])
    got = loaded(content)(x)[0].numpy()
    real = np.maximum(((x.astype("float64") - 128) @ w[:, 0, 0].T.astype("float64") + b) * scales * 0.05, 0)
    wanted = np.clip(np.round(real / np.float32(0.1)) - 3, -128, 127)
    assert got.dtype == np.int8
    assert np.abs(got - wanted).max() <= 1 and (got == wanted).mean() > 0.9


def test_half_precision_weights():
    w = random(3).astype("float16")
    tensors = [tensor("x", (3,)), w, tensor("v", (3,)), tensor("y", (3,))]
    got = loaded(model([(6, [1], [2], {}), (18, [0, 2], [3], {})], tensors, [0], [3]))(random(3, seed=1))[0].numpy()
    np.testing.assert_allclose(got, random(3, seed=1) * w.astype("float32"), rtol=1e-6)


GOOD = model([(0, [0, 1], [2], {0: RELU}), (39, [2, 3], [4], {})], [tensor("x", (2, 3)), random(3), tensor("s", (2, 3)), np.int32([1, 0]),
                                                                 tensor("y", (3, 2))], [0], [4])


def test_files_that_are_wrong(tmp_path):
    assert list(loaded(GOOD)(random(2, 3))[0].shape) == [3, 2]
    with pytest.raises(ValueError, match="the mark 'TFL3' is missing"):
        loaded(b"nothing like it")
    with pytest.raises(NotImplementedError, match="cannot import yet: IF, LSTM"):
        loaded(model([(16, [0], [1], {}), (118, [0], [1], {})], [tensor("x", (1,)), tensor("y", (1,))], [0], [1]))
    with pytest.raises(ValueError, match="has 3 bytes of data"):
        loaded(model([(0, [0, 1], [2], {})], [tensor("x", (1,)), tensor("c", (2,), "float32", 1), tensor("y", (2,)),
                                              np.uint8([1, 2, 3])], [0], [2]))(random(1))
    with pytest.raises(ValueError, match="refers to the tensor 7 of 2"):
        loaded(model([(0, [0, 7], [1], {})], [tensor("x", (1,)), tensor("y", (2,))], [0], [1]))
    with pytest.raises(NotImplementedError, match="must be a constant"):
        loaded(model([(22, [0, 1], [2], {})], [tensor("x", (1,)), tensor("s", (1,), "int32"), tensor("y", (1,))], [0, 1], [2]))(
            random(1), np.int32([1]))
    with pytest.raises(FileNotFoundError):
        oar.interop.load_tflite(tmp_path / "nowhere.tflite")


def test_damaged_files_are_errors():
    chance = chances.Random(0)
    for _ in range(2000):
        broken = bytearray(GOOD)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.choice([0, 1, 2, 127, 255, chance.randrange(256)])
        if chance.random() < 0.2:
            del broken[chance.randrange(len(broken)):]
        try:
            made = loaded(bytes(broken))
            if made.shapes.get("x") == [2, 3] and made.dtypes["x"] == "float32":
                made(random(2, 3))
        except (ValueError, NotImplementedError, RuntimeError, IndexError, MemoryError, TypeError) as error:
            assert "internal" not in str(error).lower(), error
