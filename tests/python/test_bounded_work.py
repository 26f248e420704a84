"""Arguments that would need endless work: a right result in bounded time, or an error that says what is wrong."""

import time

import numpy as np
import pytest

import oar


@pytest.fixture(autouse=True)
def soon():
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("n", [1, 2, 5, 60, 99, 100, 101, 160])
def test_polygamma_of_high_orders(n):
    special = pytest.importorskip("scipy.special")
    x = np.array([0.3, 1.0, 2.5, 40.0])
    got = oar.polygamma(oar.to_tensor(x), n).numpy()
    np.testing.assert_allclose(got, special.polygamma(n, x), rtol=1e-10)
    # n! is beyond a double, or the power below it, but not their product: n! / ((n - 1 or so) x^n) far from zero
    far = oar.polygamma(oar.to_tensor([1e5], dtype="float64"), n).numpy()[0]
    leading = (-1) ** (n + 1) * np.exp(special.gammaln(n) - n * np.log(1e5))
    np.testing.assert_allclose(far, leading, rtol=n * 1e-5)


@pytest.mark.parametrize("n", [19, 20, 21, 98, 101, 150])
def test_polygamma_of_high_orders_below_zero(n):
    from math import factorial

    x = np.array([-0.3, -0.5, -1.25, -7.9])
    poles = x[:, None] + np.arange(40)
    with np.errstate(over="ignore"):
        expected = (-1.0) ** (n + 1) * float(factorial(n)) * (poles ** -(n + 1.0)).sum(1)
    got = oar.polygamma(oar.to_tensor(x), n).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert not np.isnan(got).any()


@pytest.mark.parametrize("n", [2 ** 31, 2 ** 31 + 1, 2 ** 53])
def test_polygamma_of_orders_without_end(n):
    x = oar.to_tensor([-0.5, -0.3, 0.5, 1e300], dtype="float64", stop_gradient=False)
    got = oar.polygamma(x, n)
    assert not np.isnan(got.numpy()).any() and np.isinf(got.numpy()[1:3]).all()
    with pytest.raises(ValueError, match=r"\[polygamma\] n is 9007199254740993"):
        oar.polygamma(x, 2 ** 53 + 1)


@pytest.mark.parametrize("split", [oar.split, oar.chunk, oar.tensor_split])
def test_parts_of_an_empty_axis(split):
    x = oar.zeros([0, 3])
    with pytest.raises(ValueError, match="from 1 to 1048576, not 1099511627776"):
        split(x, 2 ** 40)
    assert len(split(x, 5)) == 5


A = np.array([0.5, 1.0, 30.0, 1e3, 2e6, 3e9, 1e16, 1e200])


@pytest.mark.parametrize("ratio", [0.5, 0.999, 1.0, 1.001, 2.0, 1e8])
def test_gammainc_and_its_derivatives_anywhere(ratio):
    special = pytest.importorskip("scipy.special")
    a, x = oar.to_tensor(A), oar.to_tensor(A * ratio)
    for function, expected in ((oar.gammainc, special.gammainc), (oar.gammaincc, special.gammaincc)):
        np.testing.assert_allclose(function(a, x).numpy()[:6], expected(A, A * ratio)[:6], rtol=1e-7, atol=1e-13)
        value, derivative = oar.func.jvp(lambda b, f=function: f(b, x), a, oar.ones_like(a))
        again = oar.func.jvp(lambda b, f=function: oar.func.jvp(lambda c: f(c, x), b, oar.ones_like(a))[1],
                             a, oar.ones_like(a))[1]
        assert np.isfinite(value.numpy()).all() and np.isfinite(derivative.numpy()).all()
        assert np.isfinite(again.numpy()).all()


def test_derivative_of_gammainc_by_its_first_operand_where_it_is_large():
    special = pytest.importorskip("scipy.special")
    a = np.array([5e5, 2e6, 2e6, 1e8])
    x = a + np.sqrt(a) * np.array([0.5, -1.0, 2.0, 0.3])
    h = 0.05 * np.sqrt(a)
    weights = [4 / 5, -1 / 5, 4 / 105, -1 / 280]
    expected = sum(w * (special.gammainc(a + k * h, x) - special.gammainc(a - k * h, x))
                   for k, w in enumerate(weights, 1)) / h
    got = oar.func.jvp(lambda b: oar.gammainc(b, oar.to_tensor(x)), oar.to_tensor(a), oar.ones([4], "float64"))[1]
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 63, 64, 65, 200])
def test_multigammaln(p):
    special = pytest.importorskip("scipy.special")
    x = np.array([100.5, 130.0, 250.25])
    np.testing.assert_allclose(oar.multigammaln(oar.to_tensor(x), p).numpy(), special.multigammaln(x, p), rtol=1e-12)


def test_multigammaln_of_many_dimensions_is_a_short_program():
    program = oar.jit.capture(lambda x: oar.multigammaln(x, 60000), [oar.static.InputSpec([4], "float64")])
    x = oar.to_tensor([31000.0] * 4, dtype="float64")
    np.testing.assert_allclose(program(x).numpy(), oar.multigammaln(x, 60000).numpy(), rtol=1e-12)
    assert str(program).count("\n") < 8000  # a call for each dimension would be 180,000
    with pytest.raises(ValueError, match="p is 65537"):
        oar.multigammaln(x, 65537)


def test_local_response_norm_of_slices():
    x = oar.randn([2, 3, 4, 5, 6])
    for data_format in ("NHWC", "NCHW"):
        def norm(a, data_format=data_format):
            return oar.nn.functional.local_response_norm(a, 3, data_format=data_format)

        for axis in range(5):
            made = oar.func.vmap(norm, in_axes=axis, out_axes=0)(x)
            slices = [norm(s) for s in oar.unbind(x, axis)]
            np.testing.assert_allclose(made.numpy(), oar.stack(slices).numpy(), rtol=1e-5)


def test_a_tensor_in_the_place_of_a_bool():
    x = oar.ones([2, 3])
    assert oar.sum(x, 1, keepdim=oar.to_tensor(True)).shape == [2, 1]
    with pytest.raises(ValueError):
        oar.sum(x, 1, keepdim=oar.to_tensor([True, False]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "complex128", "float16"])
def test_arrays_that_are_not_aligned(dtype):
    values = np.arange(1, 7).astype(dtype)
    raw = np.zeros(values.nbytes + 1, "uint8")
    raw[1:] = values.view("uint8")
    array = raw[1:].view(dtype).reshape(2, 3)
    for given in (array, array[:, ::2], array.T):
        made = oar.to_tensor(given)
        np.testing.assert_array_equal(made.numpy(), given)
    half = np.frombuffer(bytes(8) + values.tobytes(), dtype=dtype, offset=8)
    np.testing.assert_array_equal(oar.to_tensor(half).numpy(), values)
