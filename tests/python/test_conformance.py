"""Numbers that Paddle 3.3 gives at the edges of ops. `make test-paddle` compares with Paddle itself."""

import numpy as np
import pytest

import oar
from oar.nn import functional as F

NAN, INF = float("nan"), float("inf")


def gradient(function, *values):
    """The gradients of the sum of a function's result."""
    leaves = [oar.to_tensor(v, dtype="float64", stop_gradient=False) for v in values]
    function(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


# ---- writes whose source overlaps what is written ------------------------------------------------

SQUARE = np.arange(9.0, dtype="float32").reshape(3, 3)


WRITES = {"assign": lambda a, source: oar.assign(source, a), "set_value": lambda a, source: a.set_value(source),
          "copy_": lambda a, source: a.copy_(source), "setitem": lambda a, source: a.__setitem__(slice(None), source)}
VIEWS = {"transposed": lambda a: a.T, "flipped": lambda a: a[::-1], "rows": lambda a: a[:, ::-1],
         "first": lambda a: oar.expand(a[0], [3, 3])}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_a_write_happens_as_if_the_source_was_copied_first(write, view):
    a = oar.to_tensor(SQUARE)
    wanted = view(a).numpy().copy()
    write(a, view(a))
    np.testing.assert_array_equal(a.numpy(), wanted)


def test_a_shifted_part_is_written_whole():
    a = oar.arange(10)
    a[1:] = a[:-1]
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    b = oar.arange(10)
    oar.assign(b[1:], b[:-1])
    assert b.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]


def test_an_overlapping_write_counts_one_version():
    a = oar.to_tensor(SQUARE)
    before = a.inplace_version
    oar.assign(a.T, a)
    assert a.inplace_version == before + 1


# ---- writes between an op and its gradient ----------------------------------------------------------

@pytest.mark.parametrize("op", [lambda x: oar.pow(x, x), lambda x: oar.pow(x, 2.0), oar.tan, lambda x: oar.ldexp(x, x)],
                         ids=["pow", "pow of a number", "tan", "ldexp"])
def test_a_result_that_the_gradient_does_not_need_may_be_written(op):
    (wanted,) = gradient(op, [0.5, 1.5])
    x = oar.to_tensor([0.5, 1.5], dtype="float64", stop_gradient=False)
    out = op(x)
    out.add_(oar.ones_like(out))
    out.sum().backward()
    assert x.grad.tolist() == wanted


@pytest.mark.parametrize("op", [F.relu6, F.hardsigmoid, F.selu, F.relu, oar.nansum], ids=lambda f: f.__name__)
def test_an_operand_that_the_gradient_does_not_need_may_be_written(op):
    (wanted,) = gradient(op, [-0.5, 1.5])
    x = oar.to_tensor([-0.5, 1.5], dtype="float64", stop_gradient=False)
    copy = oar.assign(x)
    out = op(copy)
    copy.add_(oar.ones_like(copy))
    out.sum().backward()
    assert x.grad.tolist() == wanted


# ---- gradients where there is no one derivative -------------------------------------------------------

def test_equal_operands_of_an_extreme_share_the_gradient():
    for op, first in ((oar.maximum, 1.0), (oar.minimum, 0.0)):
        dx, dy = gradient(op, [1.0, 3.0, NAN, 0.0], [1.0, 2.0, 1.0, -0.0])
        assert dx == [0.5, first, 0.0, 0.5] and dy == [0.5, 1 - first, 0.0, 0.5]


def test_an_element_on_a_bound_of_clip_passes_its_gradient():
    x = [-2.0, -1.0, 0.0, 1.0, 2.0, NAN]
    assert gradient(lambda x: oar.clip(x, -1.0, 1.0), x) == [[0.0, 1.0, 1.0, 1.0, 0.0, 0.0]]
    assert gradient(lambda x: oar.clip(x, min=-1.0), [-1.0, INF]) == [[1.0, 1.0]]
    assert gradient(lambda x: oar.clip(x.astype("float16"), -1.0, 1.0), x[:5]) == [[0.0, 1.0, 1.0, 1.0, 0.0]]


def test_an_element_on_a_bound_of_a_hard_activation_passes_none():
    assert gradient(F.hardtanh, [-1.0, 0.5, 1.0]) == [[0.0, 1.0, 0.0]]
    assert gradient(F.relu6, [0.0, 0.5, 6.0]) == [[0.0, 1.0, 0.0]]
    assert gradient(lambda x: F.hardsigmoid(x, slope=0.25, offset=0.5), [-2.0, 1.0, 2.0]) == [[0.0, 0.25, 0.0]]


def test_the_exponent_of_zero_has_a_gradient_below_zero_only():
    _, found = gradient(oar.pow, [0.0, 0.0, 0.0, 2.0], [-1.0, 0.0, 2.0, 1.0])
    np.testing.assert_allclose(found, [-INF, 0.0, 0.0, 2 * np.log(2)])


def test_logit_has_no_derivative_outside_of_its_domain():
    (found,) = gradient(oar.logit, [-0.5, 0.5, 1.5])
    np.testing.assert_equal(found, [NAN, 4.0, NAN])


# ---- values --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_round_takes_halves_to_even(dtype):
    x = oar.to_tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 3.0] * 5, dtype="float64").astype(dtype)
    wanted = np.round(x.astype("float64").numpy())
    found = oar.round(x).astype("float64").numpy()
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    assert oar.round(oar.to_tensor([15.0, 25.0, -25.0]), -1).tolist() == [20.0, 20.0, -20.0]
    assert oar.round(oar.to_tensor([15, 25, 26, -25]), -1).tolist() == [20, 20, 30, -20]


def test_cummax_gives_the_place_of_the_last_nan():
    values, places = oar.cummax(oar.to_tensor([1.0, NAN, 5.0, NAN, 2.0]))
    assert places.tolist() == [0, 1, 1, 3, 3]
    np.testing.assert_equal(values.tolist(), [1.0, NAN, NAN, NAN, NAN])
    assert oar.cummin(oar.to_tensor([[1.0], [NAN], [NAN]]), 0)[1].tolist() == [[0], [1], [2]]


def test_a_place_that_is_nan_reads_as_nan_between_pixels():
    image = oar.arange(16, dtype="float32").reshape([1, 1, 4, 4])
    image.stop_gradient = False
    grid = oar.to_tensor([[[[NAN, 0.0], [0.0, NAN], [INF, 0.0], [0.3, -0.2]]]])
    for padding, far in (("zeros", 0.0), ("border", 9.0)):
        found = F.grid_sample(image, grid, padding_mode=padding)
        np.testing.assert_allclose(found.flatten().tolist(), [NAN, NAN, far, 6.75], rtol=1e-6)
        (slope,) = oar.grad(found.sum(), [image])
        assert np.isfinite(slope.numpy()).all()
    assert F.grid_sample(image, grid, mode="nearest").flatten().tolist() == [0.0, 0.0, 0.0, 6.0]


def test_a_negative_end_of_a_backward_slice_counts_from_the_end():
    x = oar.arange(7)
    assert oar.strided_slice(x, [0], [5], [-1], [-2]).tolist() == []
    assert oar.strided_slice(x, [0], [5], [-8], [-2]).tolist() == [5, 3, 1]


def test_the_median_of_nothing_is_nan():
    for median in (oar.median, oar.nanmedian):
        assert np.isnan(median(oar.zeros([0, 3])).item())
        assert np.isnan(median(oar.zeros([3, 0]), axis=1).numpy()).all()
        assert median(oar.zeros([0, 3]), axis=1, keepdim=True).shape == [0, 1]


# ---- dtypes ----------------------------------------------------------------------------------------------

def test_types_of_python_are_dtypes():
    wanted = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}
    for kind, name in wanted.items():
        assert oar.ones([2], dtype=kind).dtype.name == name
        assert oar.zeros_like(oar.ones([2]), dtype=kind).dtype.name == name
        assert oar.to_tensor([1, 0], dtype=kind).dtype.name == name
        assert oar.ones([2]).astype(kind).dtype.name == name
        assert oar.arange(2, dtype=kind if kind in (float, int) else None).dtype.name == (
            name if kind in (float, int) else "int64")


def test_names_of_python_types_are_dtypes():
    for name, wanted in {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}.items():
        assert oar.ones([2], dtype=name).dtype.name == wanted


def test_full_takes_the_dtype_of_a_bool_or_a_complex_number():
    dtypes = [oar.full([1], value).dtype.name for value in (True, 3, 1.5, 1 + 2j)]
    assert dtypes == ["bool", "float32", "float32", "complex128"]


def test_integers_become_floats_between_floats():
    x = oar.to_tensor([-3, 0, 3], dtype="int32")
    assert oar.clip(x, 0.5, 2.5).tolist() == [0.5, 0.5, 2.5] and oar.clip(x, 0.5, 2.5).dtype == oar.float32
    assert oar.clip(x, -1, 1).dtype == oar.int32
    assert x.clip_(0.5, 2.5).tolist() == [0, 0, 2] and x.dtype == oar.int32


def test_sums_of_integers_are_int64():
    x = oar.ones([2, 3], dtype="int32")
    assert oar.reduce_as(x, oar.ones([3], dtype="int32")).dtype == oar.int64
    assert oar.nansum(x).dtype == oar.int64 and oar.nansum(x).item() == 6
    assert oar.nanmean(x).dtype == oar.float32


# ---- creating tensors --------------------------------------------------------------------------------------

def test_more_numbers_than_a_tensor_can_hold_are_an_error():
    with pytest.raises(ValueError, match="more than a tensor can hold"):
        oar.arange(1e30)


def test_linspace_of_no_numbers_is_empty():
    assert oar.linspace(0, 1, 0).shape == [0]
    with pytest.raises(ValueError, match="must not be negative"):
        oar.linspace(0, 1, -1)
