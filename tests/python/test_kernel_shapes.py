"""Kernels that take different paths by length, layout or content: each of them, against NumPy."""

import numpy as np
import pytest

import oar
from oar.nn import functional as F

LENGTHS = [1, 2, 15, 16, 17, 23, 24, 25, 63, 64, 65, 255, 256, 257, 300, 1025]


def random(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype.startswith("int"):
        return rng.integers(-9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# ---- elementwise loops with operands that are broadcast over a row, a column or all

OPERANDS = {
    "row": lambda n: (5, n, 1, n),
    "column": lambda n: (5, n, 5, 1),
    "one": lambda n: (5, n, 1, 1),
    "outer": lambda n: (7, 1, 1, n),
    "inner": lambda n: (1, n, 7, 1),
}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_broadcast_operands(kind, n, dtype):
    a_rows, a_columns, b_rows, b_columns = OPERANDS[kind](n)
    a, b = random((a_rows, a_columns), dtype), random((b_rows, b_columns), dtype, 1)
    x, y = oar.to_tensor(a), oar.to_tensor(b)
    np.testing.assert_array_equal((x + y).numpy(), a + b)
    np.testing.assert_array_equal((y * x).numpy(), b * a)
    np.testing.assert_array_equal((x < y).numpy(), a < b)
    np.testing.assert_array_equal(oar.where(x > y, x, y).numpy(), np.where(a > b, a, b))


@pytest.mark.parametrize("n", [1, 7, 24, 40, 260])
def test_broadcast_over_several_axes(n):
    a, b = random((3, 4, 2, n)), random((4, 1, 1), seed=1)
    x, y = oar.to_tensor(a), oar.to_tensor(b)
    np.testing.assert_array_equal((x * y).numpy(), a * b)
    np.testing.assert_array_equal((x[:, ::2] + y[::2]).numpy(), a[:, ::2] + b[::2])
    np.testing.assert_array_equal((x[..., ::-1] + y).numpy(), a[..., ::-1] + b)
    np.testing.assert_array_equal(oar.lerp(x, y, x).numpy(), (a + a * (b - a)).astype("float32"))
    x += y
    np.testing.assert_array_equal(x.numpy(), a + b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 16, 25, 256, 257])
def test_broadcast_small_floats(dtype, n):
    x, y = oar.to_tensor(random((5, n))).astype(dtype), oar.to_tensor(random((5, 1), seed=1)).astype(dtype)
    expected = (x.astype("float32") + y.astype("float32")).astype(dtype)
    assert (x + y).astype("float32").tolist() == expected.astype("float32").tolist()


def test_number_on_either_side():
    a = random((3, 50))
    x = oar.to_tensor(a)
    np.testing.assert_array_equal((0.5 * x - 2).numpy(), np.float32(0.5) * a - 2)
    np.testing.assert_array_equal((2 - x).numpy(), 2 - a)
    x.stop_gradient = False
    (0.5 * x * x + 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), a, rtol=1e-6)
    assert (oar.ones([0, 3]) * 2).shape == [0, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_halves_to_even(dtype):
    halves = np.arange(-9.5, 10, 0.5)
    near = np.concatenate([np.nextafter(halves.astype(dtype), side) for side in (-np.inf, np.inf)])
    big = np.array([2.0**e + d for e in (21, 22, 23, 24, 51, 52, 53) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)])
    a = np.concatenate([halves, near, big, -big, [np.inf, -np.inf, -0.0, 0.0, 1e-40]]).astype(dtype)
    expected = np.round(a)
    made = oar.round(oar.to_tensor(a)).numpy()
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))
    assert np.isnan(oar.round(oar.to_tensor(np.array([np.nan], dtype))).item())


# ---- a number written where a mask is true

@pytest.mark.parametrize("dtype", ["bool", "int16", "int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(3,), (5, 7), (3, 1025), (2, 3, 700)])
def test_mask_assign(dtype, shape):
    a = random(shape, dtype if dtype != "complex128" else "float64").astype(dtype)
    mask = random(shape, "bool", 1)
    for layout in (lambda v: v, lambda v: v[..., ::2], lambda v: v[::-1], lambda v: v.T):
        x, expected = oar.to_tensor(a), a.copy()
        layout(x)[layout(oar.to_tensor(mask))] = 1
        layout(expected)[layout(mask)] = 1
        np.testing.assert_array_equal(x.numpy(), expected)


def test_mask_assign_leaves_the_rest():
    a = random((4, 3000))
    mask = np.zeros(a.shape, bool)
    mask[1, 5], mask[3, 2999] = True, True
    x = oar.to_tensor(a)
    x[oar.to_tensor(mask)] = float("nan")
    expected = a.copy()
    expected[mask] = np.nan
    np.testing.assert_array_equal(x.numpy(), expected)


def test_mask_that_is_written():
    a = np.arange(300) % 7 == 0
    x = oar.to_tensor(a)
    x[1:][x[:-1]] = True
    np.testing.assert_array_equal(x.numpy(), a | np.roll(a, 1) & (np.arange(300) > 0))
    x[x] = False
    assert not x.any()


# ---- transposed copies that bypass the caches

@pytest.mark.parametrize(("shape", "axes"), [((2048, 2053), (1, 0)), ((2053, 2048), (1, 0)), ((4, 48, 33, 800), (0, 2, 3, 1)),
                                             ((130, 256, 144), (2, 1, 0)), ((16, 20, 40, 512), (0, 2, 1, 3))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_transposed_copy(shape, axes, dtype):
    a = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    assert a.nbytes >= 16 << 20
    x = oar.to_tensor(a).transpose(list(axes))
    np.testing.assert_array_equal(x.contiguous().numpy(), a.transpose(axes))
    to = oar.zeros([2, *x.shape], dtype)
    to[1] = x
    np.testing.assert_array_equal(to[1].numpy(), a.transpose(axes))
    assert not to[0].any()


# ---- the k-th element, the largest one

@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 33, 256, 1023, 1024, 3000])
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "few", "equal", "special"])
def test_kthvalue(n, kind):
    if kind == "few":
        a = np.random.default_rng(0).integers(0, 3, (4, n)).astype("float32")
    elif kind == "equal":
        a = np.full((4, n), -0.0, "float32")
        a[:, ::2] = 0.0
    elif kind == "special":
        a = random((4, n))
        a[:, ::5], a[:, 1::7], a[:, 2::9], a[:, 3::11] = np.inf, -np.inf, 0.0, -0.0
        a[0, n // 2] = np.nan
    else:
        a = random((4, n), kind)
    order = np.argsort(a, -1, kind="stable")  # NaN last, equal ones by their places
    for k in {1, (n + 1) // 2, n}:
        value, place = oar.kthvalue(oar.to_tensor(a), k, axis=-1)
        np.testing.assert_array_equal(place.numpy(), order[:, k - 1])
        np.testing.assert_array_equal(value.numpy(), a[np.arange(4), order[:, k - 1]])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "few", "equal", "outliers", "wide", "float32", "float64", "float16"])
def test_sort_of_a_long_line(kind, threads):
    rng = np.random.default_rng(0)
    n = 70001
    a = {"bool": lambda: rng.random(n) < 0.3, "int8": lambda: rng.integers(-128, 128, n).astype("int8"),
         "few": lambda: rng.integers(0, 3, n), "equal": lambda: np.full(n, 7), "outliers": lambda: rng.integers(0, 50, n),
         "int64": lambda: rng.integers(-10**6, 10**6, n),
         "wide": lambda: rng.integers(-2**63, 2**63 - 1, n)}.get(kind, lambda: rng.standard_normal(n).astype(kind))()
    if kind == "outliers":
        a[3], a[n - 5] = 2**62, -2**62
    if a.dtype.kind == "f":
        a[::5], a[1::7], a[2], a[n - 1], a[4], a[6] = 0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf
    before = oar.get_flags("num_threads")
    try:
        oar.set_num_threads(threads)
        places = oar.argsort(oar.to_tensor(a)).numpy()
        values = oar.sort(oar.to_tensor(a)).numpy()
        down = oar.argsort(oar.to_tensor(a), descending=True).numpy()
        most, _ = oar.topk(oar.to_tensor(a.astype("float64")), n - 20000, largest=False)
    finally:
        oar.set_flags(before)
    np.testing.assert_array_equal(places, np.argsort(a, kind="stable"))
    assert values.tobytes() == a[places].tobytes()  # signs of zeros and of NaNs too
    np.testing.assert_array_equal(most.numpy(), a[places][:n - 20000].astype("float64"))
    numbers = down[~np.isnan(a[down].astype("float64"))]
    backwards = numbers.size - 1 - np.argsort(a[np.sort(numbers)][::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(numbers, np.sort(numbers)[backwards])  # equal ones by their places here too


@pytest.mark.parametrize("n", LENGTHS)
def test_argmax_is_the_first(n):
    for a in (random((6, n)), random((6, n), "int32"), np.zeros((6, n), "float64")):
        np.testing.assert_array_equal(oar.argmax(oar.to_tensor(a), axis=-1).numpy(), a.argmax(-1))
        np.testing.assert_array_equal(oar.argmin(oar.to_tensor(a), axis=-1).numpy(), a.argmin(-1))
    a = random((6, n))
    a[:, n // 2], a[:, n - 1] = np.nan, np.nan
    np.testing.assert_array_equal(oar.argmax(oar.to_tensor(a), axis=-1).numpy(), a.argmax(-1))


# ---- rows of tables, paddings, products

@pytest.mark.parametrize("width", [1, 3, 4, 8, 9, 16, 17, 200])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_widths(width, padding):
    table, rows = random((11, width)), np.random.default_rng(1).integers(0, 11, (6, 5))
    made = F.embedding(oar.to_tensor(rows), oar.to_tensor(table), padding_idx=padding)
    expected = table[rows]
    if padding is not None:
        expected[rows == padding] = 0
    np.testing.assert_array_equal(made.numpy(), expected)
    np.testing.assert_array_equal(oar.gather(oar.to_tensor(table), oar.to_tensor(rows[0])).numpy(), table[rows[0]])


NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY_MODES)
@pytest.mark.parametrize("shape, numbers", [((2, 3, 9), [2, 1]), ((2, 3, 4, 17), [3, 0, 1, 2]),
                                            ((2, 2, 5, 4, 3), [1, 1, 0, 2, 2, 1]), ((1, 1, 300, 40), (2, 2, 2, 2))])
def test_pad(mode, shape, numbers):
    a = random(shape)
    pairs = [(0, 0)] * 2 + [tuple(numbers[i:i + 2]) for i in range(len(numbers) - 2, -1, -2)]
    expected = np.pad(a, pairs, NUMPY_MODES[mode])
    x = oar.to_tensor(a)
    np.testing.assert_array_equal(F.pad(x, numbers, mode=mode).numpy(), expected)
    np.testing.assert_array_equal(F.pad(x, oar.to_tensor(list(numbers)), mode=mode).numpy(), expected)
    last = list(range(2, len(shape)))
    turned = oar.to_tensor(np.moveaxis(a, 1, -1)).transpose([0, len(shape) - 1, *[i - 1 for i in last]])
    np.testing.assert_array_equal(F.pad(turned, list(numbers), mode=mode).numpy(), expected)
    channels_last = {3: "NLC", 4: "NHWC", 5: "NDHWC"}[len(shape)]
    moved = oar.to_tensor(np.ascontiguousarray(np.moveaxis(a, 1, -1)))
    made = F.pad(moved, list(numbers), mode=mode, data_format=channels_last)
    np.testing.assert_array_equal(made.numpy(), np.moveaxis(expected, 1, -1))


def test_pad_of_tensors_and_one_axis():
    x = oar.arange(3, dtype="float32")
    assert F.pad(x, [oar.to_tensor(1), 2]).tolist() == [0, 0, 1, 2, 0, 0]
    assert F.pad(x, [-1, 1], value=7).tolist() == [1, 2, 7]
    assert F.pad(x, [1]).tolist() == [0, 0, 1, 2]  # as in Paddle, the other side of a pair is 0
    assert F.pad(oar.ones([2, 3, 4, 5]), [0, 1, 2]).shape == [2, 3, 6, 6]


@pytest.mark.parametrize("kind", ["ordinary", "zero", "zeros", "tiny", "huge", "nan"])
@pytest.mark.parametrize("n", [1, 5, 64, 301])
def test_gradient_of_a_product(kind, n):
    a = np.random.default_rng(0).uniform(0.9, 1.1, (9, n)).astype("float32")
    if kind == "zero":
        a[4, n // 2] = 0
    if kind == "zeros":
        a[3, 0], a[3, n - 1], a[8, n // 3] = 0, 0, 0
    if kind in ("tiny", "huge"):
        a[2] *= np.float32(1e-20 if kind == "tiny" else 1e20)
    if kind == "nan":
        a[5, n // 4] = np.nan
    x = oar.to_tensor(a, stop_gradient=False)
    oar.prod(x, axis=-1).sum().backward()
    wide = a.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        others = np.stack([np.prod(np.delete(wide, i, -1), -1) for i in range(n)], -1).astype("float32")
    fits = (np.abs(others) < 1e38) & ((np.abs(others) > 1e-37) | (others == 0)) | np.isnan(others)
    assert fits.any()
    np.testing.assert_allclose(x.grad.numpy()[fits], others[fits], rtol=2e-5)


# ---- integers of a range

@pytest.mark.parametrize("low, high", [(0, 2), (-5, 60), (0, 1 << 16), (0, (1 << 16) + 1), (10, 1 << 40),
                                       (-(1 << 61), 1 << 61)])
def test_randint_is_even(low, high):
    oar.seed(3)
    a = oar.randint(low, high, [50_000]).numpy()
    assert a.min() >= low and a.max() < high
    unit = (a.astype(np.float64) - low) / (float(high) - low)
    expected = 0.5 - 0.5 / (float(high) - low)
    assert abs(unit.mean() - expected) < 0.01
    counts, _ = np.histogram(unit, 2, (0, 1))
    assert abs(counts[0] - counts[1]) < 1500
    if high - low <= 100:
        assert set(a.tolist()) == set(range(low, high))
