"""Linear systems, zeros and fixed points: values against SciPy, gradients against differences, errors."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import oar
from oar import science


def double(values, **options):
    return oar.to_tensor(values, dtype="float64", **options)


def numeric(function, x, step=1e-6):
    """The gradient of a scalar function of an array, by central differences."""
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        found[i] = (function(up) - function(down)) / (2 * step)
    return found


@pytest.fixture
def system():
    rng = np.random.default_rng(5)
    general = rng.standard_normal((12, 12)) + 4 * np.eye(12)
    return general @ general.T, general, rng.standard_normal(12)


def test_cg_as_in_scipy(system):
    A, _, b = system
    found = science.cg(double(A), double(b), tol=1e-10)
    reference, info = scipy.sparse.linalg.cg(A, b, rtol=1e-10)
    assert found.converged and info == 0 and found.residual_norm <= 1e-10 * np.linalg.norm(b)
    np.testing.assert_allclose(found.x.numpy(), reference, rtol=1e-7)


def test_a_preconditioner_saves_iterations(system):
    A, _, b = system
    scale = np.diag(10.0 ** np.linspace(-2, 2, 12))
    A = scale @ A @ scale
    plain = science.cg(double(A), double(b), tol=1e-8, maxiter=2000)
    diagonal = double(1 / np.diag(A))
    better = science.cg(double(A), double(b), tol=1e-8, M=lambda v: diagonal * v)
    assert better.converged and better.iterations < plain.iterations


def test_cg_of_a_function_on_a_grid():
    def laplacian(u):
        padded = oar.nn.functional.pad(u, [1, 1, 1, 1], pad_from_left_axis=True)
        return 4 * u - padded[2:, 1:-1] - padded[:-2, 1:-1] - padded[1:-1, 2:] - padded[1:-1, :-2]

    b = oar.ones([15, 15], dtype="float64")
    found = science.cg(laplacian, b, tol=1e-10)
    assert found.converged and found.x.shape == [15, 15]
    np.testing.assert_allclose(laplacian(found.x).numpy(), b.numpy(), atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gmres_as_in_scipy(system, dtype):
    _, A, b = system
    if dtype == "complex128":
        A = A + 1j * A[::-1]
    found = science.gmres(oar.to_tensor(A), oar.to_tensor(b.astype(dtype)), tol=1e-10, restart=8, maxiter=500)
    assert found.converged
    np.testing.assert_allclose(found.x.numpy(), np.linalg.solve(A, b), rtol=1e-7)


@pytest.mark.parametrize("solver", [science.cg, science.gmres])
def test_gradients_of_linear_solves(system, solver):
    A, general, b = system
    matrix = A if solver is science.cg else general
    weights = np.arange(12.0)
    ta, tb = double(matrix, stop_gradient=False), double(b, stop_gradient=False)
    symmetric = (ta + ta.t()) / 2 if solver is science.cg else ta
    (solver(symmetric, tb, tol=1e-12).x * double(weights)).sum().backward()
    inverse = np.linalg.inv(matrix)
    adjoint = inverse.T @ weights
    np.testing.assert_allclose(tb.grad.numpy(), adjoint, rtol=1e-6)
    expected = -np.outer(adjoint, inverse @ b)
    if solver is science.cg:
        expected = (expected + expected.T) / 2
    np.testing.assert_allclose(ta.grad.numpy(), expected, rtol=1e-5, atol=1e-9)


def test_second_derivatives_of_solves_are_refused(system):
    A, _, b = system
    scale = double(2.0, stop_gradient=False)
    x = science.cg(lambda v: scale * (double(A) @ v), double(b), tol=1e-10).x
    (first,) = oar.grad(x.sum(), scale, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"\[cg\] has first derivatives only"):
        oar.grad(first, scale)


def test_mistakes_in_linear_systems(system):
    A, _, b = system
    with pytest.raises(ValueError, match="not positive definite. Use gmres"):
        science.cg(double(-A), double(b))
    with pytest.raises(ValueError, match="square matrix"):
        science.cg(oar.ones([2, 3]), oar.ones([3]))
    with pytest.raises(ValueError, match="do not fit"):
        science.gmres(double(A), oar.ones([3], dtype="float64"))
    with pytest.raises(ValueError, match="maps a tensor of shape"):
        science.gmres(lambda v: v[:2], double(b))
    with pytest.raises(ValueError, match="tol must be a finite number"):
        science.cg(double(A), double(b), tol=-1.0)
    with pytest.raises(TypeError, match="float or complex"):
        science.cg(oar.eye(2), oar.to_tensor([1, 2]))
    assert not science.cg(double(A), double(b), tol=1e-12, maxiter=2).converged


@pytest.mark.parametrize("solver", [science.bisect, science.brentq])
def test_zeros_in_brackets(solver):
    c = np.linspace(0.5, 3.0, 7)
    found = solver(lambda x: oar.exp(x) - double(c) * 2, oar.full([7], -3.0, "float64"), 4.0)
    np.testing.assert_allclose(found.numpy(), np.log(2 * c), rtol=0, atol=1e-11)
    reference = scipy.optimize.brentq(lambda x: math.cos(x) - x**3, 0, 1, xtol=1e-14)
    assert solver(lambda x: oar.cos(x) - x**3, 0.0, 1.0).item() == pytest.approx(reference, abs=1e-11)


def test_brent_needs_few_calls():
    calls = []
    science.brentq(lambda x: calls.append(1) or (x - 1) * (1 + (x - 1) ** 2), 0.0, 3.0)
    assert len(calls) < 14


@pytest.mark.parametrize("solver", [
    lambda f: science.brentq(f, 0.1, 5.0), lambda f: science.bisect(f, 0.1, 5.0),
    lambda f: science.newton(f, oar.to_tensor(1.0, dtype="float64"))])
def test_derivatives_of_zeros_up_to_the_third(solver):
    """x^2 = c: x = c^(1/2)."""
    c = double(2.0, stop_gradient=False)
    x = solver(lambda x: x * x - c)
    found = [x]
    for _ in range(3):
        found += oar.grad(found[-1], c, create_graph=True)
    expected = [2**0.5, 0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5]
    np.testing.assert_allclose([f.item() for f in found], expected, rtol=1e-9)


def test_newton_of_complex_zeros():
    start = oar.to_tensor(np.array([1.0 + 1j, -1.0 + 0.5j]))
    found = science.newton(lambda z: z**3 - 1, start).numpy()
    np.testing.assert_allclose(found**3, 1.0, atol=1e-12)


def test_mistakes_in_zeros():
    with pytest.raises(ValueError, match=r"no change of sign in the bracket.*f\(1\) = 2 and f\(3\) = 10"):
        science.brentq(lambda x: x * x + 1, 1.0, 3.0)
    with pytest.raises(ValueError, match=r"at element \(1,\)"):
        science.bisect(lambda x: x - 1, oar.to_tensor([0.0, 2.0]), 3.0)
    with pytest.raises(ValueError, match="elementwise"):
        science.brentq(lambda x: x.sum(), oar.zeros([2]), 1.0)
    with pytest.raises(RuntimeError, match="derivative of f is 0"):
        science.newton(lambda x: x * x - 1, double(0.0))
    with pytest.raises(RuntimeError, match="no zero after 50 iterations"):
        science.newton(lambda x: x * x + 1, double(0.3))
    with pytest.raises(RuntimeError, match="Raise maxiter or xtol"):
        science.brentq(lambda x: oar.tanh(10 * (x - 0.3)), -100.0, 77.0, maxiter=3)
    with pytest.raises(ValueError, match="xtol must be a number above 0"):
        science.bisect(lambda x: x, -1.0, 1.0, xtol=0.0)


def test_newton_krylov_and_its_gradient():
    """A nonlinear boundary value problem: -u'' + exp(u) = c."""
    n, h = 8, 1 / 9

    def equation(c):
        def f(u):
            padded = oar.concat([oar.zeros([1], "float64"), u, oar.zeros([1], "float64")])
            return (2 * u - padded[2:] - padded[:-2]) / h**2 + oar.exp(u) - c
        return f

    def solved(c):
        return science.newton_krylov(equation(c), oar.zeros([n], dtype="float64"), tol=1e-9)

    start = np.linspace(1.0, 3.0, n)
    c = double(start, stop_gradient=False)
    found = solved(c)
    reference = scipy.optimize.root(lambda u: equation(double(start))(double(u)).numpy(), np.zeros(n), tol=1e-12).x
    assert found.converged and found.iterations < 10
    np.testing.assert_allclose(found.x.numpy(), reference, rtol=1e-7)
    (found.x**2).sum().backward()
    expected = numeric(lambda a: (solved(double(a)).x ** 2).sum().item(), start, 1e-5)
    np.testing.assert_allclose(c.grad.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("memory", [0, 5])
def test_fixed_point_and_its_gradient(memory):
    rng = np.random.default_rng(2)
    w = rng.standard_normal((6, 6)) * 0.2
    b = rng.standard_normal(6)

    def solved(weights, bias):
        return science.fixed_point(lambda x: oar.tanh(weights @ x + bias), oar.zeros([6], dtype="float64"), tol=1e-12,
                                   memory=memory)

    tw, tb = double(w, stop_gradient=False), double(b, stop_gradient=False)
    found = solved(tw, tb)
    assert found.converged
    np.testing.assert_allclose(np.tanh(w @ found.x.numpy() + b), found.x.numpy(), atol=1e-11)
    (found.x**3).sum().backward()
    np.testing.assert_allclose(tw.grad.numpy(), numeric(lambda a: (solved(double(a), tb).x ** 3).sum().item(), w), rtol=1e-5,
                               atol=1e-8)
    np.testing.assert_allclose(tb.grad.numpy(), numeric(lambda a: (solved(tw, double(a)).x ** 3).sum().item(), b), rtol=1e-5)


def test_acceleration_saves_iterations():
    counts = [science.fixed_point(lambda x: 0.95 * oar.cos(x), oar.zeros([3], dtype="float64"), memory=m).iterations
              for m in (0, 5)]
    assert counts[1] < counts[0] / 2
    with pytest.raises(ValueError, match="keep the shape"):
        science.fixed_point(lambda x: x[:1], oar.zeros([3]))
