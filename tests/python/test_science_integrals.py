"""Integrals and interpolation: values against SciPy, gradients against differences, errors."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate

import oar
from oar import science


def double(values, **options):
    return oar.to_tensor(values, dtype="float64", **options)


@pytest.mark.parametrize("f, g, a, b", [
    (lambda x: oar.exp(-x) * oar.sin(5 * x), lambda x: math.exp(-x) * math.sin(5 * x), 0.0, 4.0),
    (lambda x: 1 / (1e-3 + x * x), lambda x: 1 / (1e-3 + x * x), -1.0, 2.0),
    (lambda x: oar.sqrt(oar.abs(x)), lambda x: math.sqrt(abs(x)), -1.0, 1.0),
    (lambda x: oar.exp(-x * x), lambda x: math.exp(-x * x), -math.inf, math.inf),
    (lambda x: 1 / (1 + x * x), lambda x: 1 / (1 + x * x), 1.0, math.inf),
    (lambda x: oar.exp(2 * x), lambda x: math.exp(2 * x), -math.inf, 0.5),
    (lambda x: oar.exp(-x), lambda x: math.exp(-x), math.inf, 0.0),
])
def test_quad_as_in_scipy(f, g, a, b):
    value, error = science.quad(f, a, b)
    reference = scipy.integrate.quad(g, a, b, epsabs=1e-12, epsrel=1e-12, limit=500)[0]
    assert value.item() == pytest.approx(reference, rel=1e-9, abs=1e-10)
    assert abs(value.item() - reference) <= error + 1e-9


def test_the_kronrod_rule_is_exact_for_polynomials():
    from oar.science.quadrature import _rule

    nodes, kronrod, gauss = _rule()
    for k in range(0, 32):
        exact = 0.0 if k % 2 else 2 / (k + 1)
        assert abs(kronrod @ nodes**k - exact) < 1e-14
        if k < 20:
            assert abs(gauss @ nodes**k - exact) < 1e-14


def test_integrals_of_tensors_and_complex_numbers():
    value, _ = science.quad(lambda x: oar.stack([x, x * x, oar.sin(x)], 1), 0.0, 2.0)
    np.testing.assert_allclose(value.numpy(), [2.0, 8 / 3, 1 - math.cos(2)], rtol=1e-12)
    wave, _ = science.quad(lambda x: oar.exp(oar.complex(oar.zeros_like(x), 3 * x)), 0.0, 1.0)
    np.testing.assert_allclose(wave.numpy(), (np.exp(3j) - 1) / 3j, rtol=1e-12)


def test_gradients_of_integrals():
    k, a, b = (double(v, stop_gradient=False) for v in (1.5, 0.2, 2.0))
    value, _ = science.quad(lambda x: oar.exp(-k * x), a, b)
    value.backward()
    e = math.exp
    expected = [(e(-3.0) * (1 + 3.0) - e(-0.3) * (1 + 0.3)) / 2.25, -e(-0.3), e(-3.0)]
    np.testing.assert_allclose([k.grad.item(), a.grad.item(), b.grad.item()], expected, rtol=1e-9)


def test_fixed_quad():
    reference = scipy.integrate.fixed_quad(np.cos, 0.0, 2.0, n=4)[0]
    assert science.fixed_quad(oar.cos, 0.0, 2.0, n=4).item() == pytest.approx(reference, rel=1e-13)
    b = double(2.0, stop_gradient=False)
    science.fixed_quad(oar.cos, 0.0, b, n=12).backward()
    assert b.grad.item() == pytest.approx(math.cos(2.0), rel=1e-10)
    captured = oar.jit.to_static(lambda b: science.fixed_quad(oar.cos, 0.0, b, n=12))
    assert captured(double(2.0)).item() == pytest.approx(math.sin(2.0), rel=1e-12)


def test_mistakes_in_integrals():
    with pytest.raises(RuntimeError, match="intervals were not enough"):
        science.quad(lambda x: oar.sin(1 / x), 1e-9, 1.0, limit=20)
    with pytest.raises(ValueError, match="not finite"):
        science.quad(lambda x: 1 / (x - 0.5), 0.0, 1.0)
    with pytest.raises(ValueError, match="along axis 0, but returned shape"):
        science.quad(lambda x: x.sum(), 0.0, 1.0)
    with pytest.raises(ValueError, match="a is NaN"):
        science.quad(lambda x: x, math.nan, 1.0)
    with pytest.raises(ValueError, match="one must be above 0"):
        science.quad(lambda x: x, 0.0, 1.0, epsabs=0.0, epsrel=0.0)
    with pytest.raises(ValueError, match="Use quad for infinite limits"):
        science.fixed_quad(lambda x: x, 0.0, math.inf)
    with pytest.raises(ValueError, match="n must be an integer"):
        science.fixed_quad(lambda x: x, 0.0, 1.0, n=0)


KNOTS = np.array([0.0, 0.7, 1.1, 2.0, 3.5, 4.0])
VALUES = np.array([0.0, 1.0, 0.8, 2.0, 2.5, 0.0])


def test_linear_interpolation():
    x = np.linspace(-1.0, 5.0, 31).reshape(31, 1)
    np.testing.assert_allclose(science.interp(double(x), KNOTS, double(VALUES)).numpy(), np.interp(x, KNOTS, VALUES), atol=1e-14)
    np.testing.assert_allclose(science.interp(double(x), KNOTS, double(VALUES), left=-7.0, right=9.0).numpy(),
                               np.interp(x, KNOTS, VALUES, left=-7.0, right=9.0), atol=1e-14)


@pytest.mark.parametrize("bc_type", ["not-a-knot", "natural", "clamped", "periodic"])
def test_splines_as_in_scipy(bc_type):
    x = np.linspace(-0.5, 4.5, 41)
    columns = np.stack([VALUES, VALUES**2], 1)
    curve, reference = science.CubicSpline(KNOTS, double(columns), bc_type), scipy.interpolate.CubicSpline(KNOTS, columns,
                                                                                                          bc_type=bc_type)
    for nu in range(4):
        np.testing.assert_allclose(curve(x, nu).numpy(), reference(x, nu), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(curve.integrate(0.3, 3.7).numpy(), reference.integrate(0.3, 3.7), rtol=1e-10)


def test_monotone_interpolation_as_in_scipy():
    x = np.linspace(0.0, 4.0, 41)
    curve, reference = science.PchipInterpolator(KNOTS, double(VALUES)), scipy.interpolate.PchipInterpolator(KNOTS, VALUES)
    for nu in (0, 1):
        np.testing.assert_allclose(curve(x, nu).numpy(), reference(x, nu), rtol=1e-10, atol=1e-12)


def test_complex_spline():
    curve = science.CubicSpline(KNOTS, oar.to_tensor(VALUES + 1j * VALUES[::-1]))
    reference = scipy.interpolate.CubicSpline(KNOTS, VALUES + 1j * VALUES[::-1])
    np.testing.assert_allclose(curve(1.7).numpy(), reference(1.7), rtol=1e-10)


@pytest.mark.parametrize("made", [
    lambda x, y: science.CubicSpline(x, y)(double([0.4, 1.9, 3.6])), lambda x, y: science.PchipInterpolator(x, y)(double([0.4, 1.9])),
    lambda x, y: science.interp(double([0.4, 1.9, 3.6]), x, y), lambda x, y: science.CubicSpline(x, y, "natural").integrate(0.5, 3.0)])
def test_gradients_of_interpolation(made):
    x, y = double(KNOTS, stop_gradient=False), double(VALUES, stop_gradient=False)
    (made(x, y) ** 2).sum().backward()

    def loss(a, b):
        return (made(double(a), double(b)) ** 2).sum().item()

    for tensor, at in ((x, 0), (y, 1)):
        for i in range(len(KNOTS)):
            shift = np.zeros(len(KNOTS))
            shift[i] = 1e-6
            up, down = [KNOTS, VALUES], [KNOTS, VALUES]
            up[at], down[at] = up[at] + shift, down[at] - shift
            assert tensor.grad[i].item() == pytest.approx((loss(*up) - loss(*down)) / 2e-6, rel=1e-5, abs=1e-6)


def test_mistakes_in_interpolation():
    with pytest.raises(ValueError, match="strictly increasing"):
        science.CubicSpline([0.0, 0.0, 1.0, 2.0], oar.ones([4]))
    with pytest.raises(ValueError, match="at least 4 points"):
        science.CubicSpline([0.0, 1.0], oar.ones([2]))
    with pytest.raises(ValueError, match="bc_type is 'free'"):
        science.CubicSpline([0.0, 1.0], oar.ones([2]), "free")
    with pytest.raises(ValueError, match="first and the last value must be equal"):
        science.CubicSpline(KNOTS, double(VALUES + KNOTS), "periodic")
    with pytest.raises(ValueError, match=r"shapes are \[3\] and \[4\]"):
        science.interp(oar.ones([1]), [0.0, 1.0, 2.0], oar.ones([4]))
    with pytest.raises(TypeError, match="complex values have no order"):
        science.PchipInterpolator([0.0, 1.0], oar.to_tensor([1j, 2j]))
    with pytest.raises(ValueError, match="not within the points"):
        science.CubicSpline(KNOTS, double(VALUES)).integrate(-1.0, 2.0)
    assert math.isnan(science.CubicSpline(KNOTS, double(VALUES), extrapolate=False)(9.0).item())


@pytest.mark.parametrize("make, reference", [
    (lambda x, xp, fp: science.interp(x, xp, fp), lambda x, xp, fp: np.interp(x, xp, fp)),
    (lambda x, xp, fp: science.CubicSpline(xp, fp)(x), lambda x, xp, fp: scipy.interpolate.CubicSpline(xp, fp)(x)),
    (lambda x, xp, fp: science.CubicSpline(xp, fp, "natural").integrate(1.0, 2.0) + x,
     lambda x, xp, fp: scipy.interpolate.CubicSpline(xp, fp, bc_type="natural").integrate(1.0, 2.0) + x),
    (lambda x, xp, fp: science.PchipInterpolator(xp, fp)(x), lambda x, xp, fp: scipy.interpolate.PchipInterpolator(xp, fp)(x)),
    (lambda x, xp, fp: science.fixed_quad(lambda s: s[:, None] ** 3 * x, xp[0], fp[1], n=6),
     lambda x, xp, fp: (fp[1]**4 - xp[0]**4) / 4 * x),
], ids=["interp", "spline", "natural spline", "pchip", "fixed_quad"])
def test_captured_as_one_program_and_mapped(make, reference):
    rng = np.random.default_rng(0)
    xp, fp = np.cumsum(rng.uniform(0.3, 0.6, (3, 7)), axis=1), rng.standard_normal((3, 7))
    x = np.array([1.1, 1.7, 2.0])
    expected = np.stack([reference(x, a, b) for a, b in zip(xp, fp)])
    captured = oar.jit.to_static(make)
    for a, b, values in zip(xp, fp, expected):
        np.testing.assert_allclose(captured(oar.to_tensor(x), oar.to_tensor(a), oar.to_tensor(b)).numpy(), values, atol=1e-12)
    counts = oar.jit.capture_counts(captured)
    assert (counts["captures"], counts["whole"], counts["segments"]) == (1, 3, 0)
    mapped = oar.func.vmap(lambda a, b: make(oar.to_tensor(x), a, b))(oar.to_tensor(xp), oar.to_tensor(fp))
    np.testing.assert_allclose(mapped.numpy(), expected, atol=1e-12)
