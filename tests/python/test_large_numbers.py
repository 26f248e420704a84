"""Arguments that are large numbers, NaN or infinite, and paths of hsigmoid_loss that end early: values as NumPy computes them."""

import numpy as np
import pytest

import oar
import oar.nn.functional as F


@pytest.mark.parametrize("index_num, nshards", [(20, 3), (21, 3), (2**63 - 1, 2), (2**63 - 1, 2**62), (2**63 - 1, 2**63 - 1)])
def test_shard_index(index_num, nshards):
    size = -(-index_num // nshards)
    indices = [0, 1, size - 1, size, size + 1, 2 * size - 1, index_num - 1]
    indices = sorted({i for i in indices if 0 <= i < index_num})
    for shard in {0, 1, nshards - 1}:
        if shard * size >= 2**63:
            continue
        expected = [i - shard * size if i // size == shard else -1 for i in indices]
        got = oar.shard_index(oar.to_tensor(indices, dtype="int64").reshape([-1, 1]), index_num, nshards, shard)
        np.testing.assert_array_equal(got.numpy()[:, 0], expected)


def test_shard_index_of_a_shard_beyond_the_largest_number():
    indices = oar.to_tensor([[1], [5]], dtype="int64")
    with pytest.raises(ValueError, match=r"\[shard_index\] .*overflow"):  # its first index would be 2 ** 63
        oar.shard_index(indices, 2**63 - 1, 2**63 - 2, 2**62)


def loss_along(x, weight, bias, nodes, codes):
    """What one row costs: its path ends at the first negative node, and each missing step costs log 2."""
    total = 0.0
    for place, node in enumerate(nodes):
        if node < 0:
            return total + (len(nodes) - place) * np.log(2)
        score = weight[node] @ x + bias[node]
        total += np.logaddexp(0, score) - codes[place] * score
    return total


def padded_paths():
    random = np.random.default_rng(3)
    paths = np.array([[0, 2, 3, 1], [0, 1, -1, -1], [3, -1, 2, 1], [-1, -1, -1, -1]], "int64")
    codes = np.array([[1, 0, 1, 1], [0, 1, -1, -1], [1, -1, 1, 1], [-1, -1, -1, -1]], "int64")
    return random.standard_normal((4, 3)), random.standard_normal((5, 3)), random.standard_normal(5), paths, codes


def test_hsigmoid_loss_of_padded_paths():
    x, weight, bias, paths, codes = padded_paths()
    expected = [[loss_along(*row)] for row in zip(x, [weight] * 4, [bias] * 4, paths, codes)]
    tensors = [oar.to_tensor(value, stop_gradient=value.dtype == np.int64) for value in (x, weight, bias, paths, codes)]
    got = F.hsigmoid_loss(tensors[0], oar.zeros([4, 1], "int64"), 6, *tensors[1:3], *tensors[3:])
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)
    got.sum().backward()
    for tensor, values, flat in zip(tensors, (x, weight, bias), range(3)):
        slopes = np.empty(values.size)
        for k in range(values.size):
            moved = []
            for step in (1e-6, -1e-6):
                given = [x, weight, bias]
                given[flat] = values + step * (np.arange(values.size) == k).reshape(values.shape)
                moved.append(sum(loss_along(given[0][i], *given[1:], paths[i], codes[i]) for i in range(4)))
            slopes[k] = (moved[0] - moved[1]) / 2e-6
        np.testing.assert_allclose(tensor.grad.numpy().ravel(), slopes, rtol=1e-6, atol=1e-8)


def test_hsigmoid_loss_of_too_many_classes():
    x, weight = oar.ones([2, 3]), oar.ones([4, 3])
    for count in (1, 2**31, 2**63 - 1):
        with pytest.raises(ValueError, match=rf"\[hsigmoid_loss\] num_classes is {count}"):
            F.hsigmoid_loss(x, oar.zeros([2, 1], "int64"), count, weight)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_sums_and_products_of_integers_wrap(dtype):
    most = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 5], dtype)
    few = np.array([3, 2, 7], dtype)
    with np.errstate(over="ignore"):
        product, total = np.kron(most, few), most.copy()
        np.add.at(total, [0, 0, 1], few)
    np.testing.assert_array_equal(oar.kron(oar.to_tensor(most), oar.to_tensor(few)).numpy(), product)
    at = oar.to_tensor([0, 0, 1])
    np.testing.assert_array_equal(oar.index_add(oar.to_tensor(most), at, 0, oar.to_tensor(few)).numpy(), total)


def test_sizes_that_the_content_of_a_tensor_names():
    largest = 2**63 - 1
    with pytest.raises(ValueError, match=r"\[repeat_interleave\] .* overflow 64 bits"):
        oar.repeat_interleave(oar.ones([3]), oar.to_tensor([largest, largest, 3], dtype="int64"))
    with pytest.raises(ValueError, match=r"\[bincount\] .* overflow 64 bits"):
        oar.bincount(oar.to_tensor([1, largest], dtype="int64"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradient_of_mish_of_large_numbers(dtype):
    x = np.array([30.0, 100.0, 6e4, np.inf, -30.0, -100.0, -6e4, -np.inf])
    if dtype == "float64":
        x = np.append(x, [1e38, 1e300, -1e300])
    t = oar.to_tensor(x, dtype=dtype, stop_gradient=False)
    F.mish(t).sum().backward()
    wanted = np.where(x > 0, 1.0, 0.0)
    np.testing.assert_allclose(t.grad.astype("float64").numpy(), wanted, atol=1e-9)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_means_of_integers_that_are_put_along_an_axis(dtype):
    """Neither the sum nor the number of the elements fits int8; float32 does not hold the larger ones."""
    rng = np.random.default_rng(0)
    most = min(np.iinfo(dtype).max, 2**54)
    values = rng.integers(-most, most, (2, 200)).astype(dtype)
    index = rng.integers(0, 3, (2, 200))
    found = oar.put_along_axis(oar.zeros([2, 3], dtype), oar.to_tensor(index), oar.to_tensor(values), 1, "mean", include_self=False)
    wanted = [[s // n for s, n in
               ((int(v[i == k].astype("int64").sum()), int((i == k).sum())) for k in range(3))] for v, i in zip(values, index)]
    assert found.dtype == getattr(oar, dtype) and found.numpy().tolist() == wanted


def test_means_of_16_bit_floats_that_are_put_along_an_axis():
    values = np.full((1, 5000), 1.5, "float16")
    found = oar.put_along_axis(oar.zeros([1, 1], "float16"), oar.zeros([1, 5000], "int64"), oar.to_tensor(values), 1, "mean",
                               include_self=False)
    assert found.item() == 1.5


@pytest.mark.parametrize("x, wanted", [(complex(np.nan, 1), None), (complex(-4, np.nan), None), (complex(4, np.nan), None),
                                       (-3 - 0.5j, (-3 - 0.5j) * -0.5j / 6), (-4 + 2j, 0), (3 + 2j, 3 + 2j)])
def test_hardswish_of_complex_numbers(x, wanted):
    """NaN stays NaN. On the lower bound the imaginary part counts, as in Paddle."""
    found = F.hardswish(oar.to_tensor([x], dtype="complex128")).numpy()[0]
    assert np.isnan(found) if wanted is None else found == pytest.approx(wanted)


def test_gradient_of_hardswish():
    x = oar.to_tensor(np.float32([np.nan, 0, -3, 3]), stop_gradient=False)
    (found,) = oar.grad(F.hardswish(x), x, oar.to_tensor(np.float32([1, 3e38, 3e38, 3e38])))
    np.testing.assert_allclose(found.numpy(), np.float32([np.nan, 1.5e38, 0, 3e38]))


@pytest.mark.parametrize("size", [2**41, 2**63 - 2])
def test_sparse_convolution_over_an_axis_that_is_too_long(size):
    with pytest.raises(ValueError, match=r"axis 1 of size \d+ is negative or too large"):
        oar._C.ops.conv_rules(oar.zeros([3, 4], "int64"), [4, size], [3, 3], [1, 1], [0, 1], [1, 1])


def test_coefficients_that_are_infinite():
    """What rounding a coefficient leaves out is nothing, not infinity less infinity."""
    x = oar.to_tensor([-1.0, 2.0, -3.0])
    assert F.selu(x, float("inf")).tolist() == [-np.inf, np.inf, -np.inf]
    assert oar.stanh(x, 0.5, float("inf")).tolist() == [-np.inf, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_gradient_of_0_stays_0_in_the_slope_of_sigmoid(dtype):
    out, grad = oar.to_tensor([-1e30, 1e30, 0.25], dtype=dtype), oar.to_tensor([0.0, 0.0, 2.0], dtype=dtype)
    assert oar._C.ops.sigmoid_grad(out, grad).astype("float32").tolist() == [0, 0, 0.375]


@pytest.mark.parametrize("dtype, scale", [("float32", 1e30), ("float32", 1e-30), ("float64", 1e300), ("float64", 1e-300),
                                          ("complex64", 1e30), ("bfloat16", 2.0 ** 100)])
def test_norms_whose_squares_leave_the_range(dtype, scale):
    x = oar.to_tensor(np.array([[3.0, 0.0, -4.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]) * scale, dtype=dtype)
    for axis, wanted in ((1, [5.0, 0.0, 3.0]), (0, [10**0.5, 2.0, 20**0.5])):
        found = oar.linalg.norm(x, 2.0, axis).astype("float64").numpy()
        np.testing.assert_allclose(found / scale, wanted, rtol=4e-3 if dtype == "bfloat16" else 1e-6)


def test_norms_keep_infinity_and_nan():
    x = oar.to_tensor([[np.inf, 1.0], [np.nan, np.inf], [3.0, 4.0], [1e30, 0.0]])
    np.testing.assert_array_equal(oar.linalg.norm(x, 2.0, 1).numpy(), np.array([np.inf, np.nan, 5.0, 1e30], "float32"))


@pytest.mark.parametrize("numbers", [[0.0, 1000.0, -30000.0], [1e-4, -1e-4, 2e-4]])
def test_deviations_of_float16_whose_variance_is_none(numbers):
    x = np.array(numbers, "float16")
    np.testing.assert_allclose(oar.std(oar.to_tensor(x)).numpy(), np.std(x.astype("float64"), ddof=1), rtol=1e-3)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_solutions_of_float16_round_once(upper):
    rng = np.random.default_rng(0)
    factor = (np.tril(rng.standard_normal((8, 8))) + 3 * np.eye(8)).astype("float16")
    y = oar.to_tensor(factor.T.copy() if upper else factor)
    right = (rng.standard_normal((8, 2)) * 1e4).astype("float16")
    lower = factor.astype("float64")
    np.testing.assert_allclose(oar.linalg.cholesky_solve(oar.to_tensor(right), y, upper).numpy(),
                               np.linalg.solve(lower @ lower.T, right.astype("float64")), rtol=1e-3, atol=0.01)


def test_gradient_of_ctc_for_large_scores():
    """Of one path alone the gradient is exactly 1 per step, whatever its likelihood is."""
    scores = oar.to_tensor(np.float32([[[-1376.2, 895.3, -9.9]], [[-96.98, -2342.3, 1245.8]], [[-980.15, 1463.0, 146.6]]]))
    scores.stop_gradient = False
    steps = [oar.to_tensor([n], dtype="int64") for n in (3, 3)]
    found, = oar.grad(oar._C.ops.ctc(scores, oar.to_tensor([[1, 2, 1]], dtype="int64"), *steps).sum(), [scores])
    np.testing.assert_array_equal(found.numpy()[:, 0], -np.eye(3, dtype="float32")[[1, 2, 1]])


@pytest.mark.parametrize("dtype, length", [("float16", 300.0), ("bfloat16", 1e18), ("float32", 1e15), ("float64", 1e120)])
def test_cosine_similarity_of_long_vectors(dtype, length):
    """The product of their squared lengths is no number of the dtype."""
    random = np.random.default_rng(4)
    x, y = (oar.to_tensor(random.standard_normal((5, 16)) * length).astype(dtype) for _ in range(2))
    p, q = (t.astype("float64").numpy() / length for t in (x, y))
    expected = (p * q).sum(1) / np.linalg.norm(p, axis=1) / np.linalg.norm(q, axis=1)
    got = F.cosine_similarity(x, y, axis=1)
    assert got.dtype == getattr(oar, dtype)
    room = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6)
    np.testing.assert_allclose(got.astype("float64").numpy(), expected, rtol=room, atol=room)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_weighted_cross_entropy_of_halves(reduction):
    """A loss times its weight is no float16; their weighted mean is one."""
    scores, weight = np.array([[90.0, -90.0], [-1.0, 1.0]]), np.array([2000.0, 3000.0])
    labels = np.array([1, 1])
    losses = np.logaddexp.reduce(scores, 1) - scores[[0, 1], labels]
    expected = (losses * 3000.0).sum() / (6000.0 if reduction == "mean" else 1)
    got = F.cross_entropy(oar.to_tensor(scores, dtype="float16"), oar.to_tensor(labels),
                          oar.to_tensor(weight, dtype="float16"), reduction=reduction)
    assert got.dtype == oar.float16
    np.testing.assert_allclose(float(got), expected if expected < 65504 else np.inf, rtol=1e-3)


def test_integer_weights_of_a_bin_wrap_around():
    high = np.iinfo(np.int64).max
    sums = oar.bincount(oar.to_tensor([1, 1, 2]), weights=oar.to_tensor(np.array([high, 2, 5])))
    assert sums.tolist() == [0, -high, 5]
