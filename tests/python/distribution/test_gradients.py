"""Gradients of densities and of reparametrised numbers, against differences and known means."""

import numpy as np
import pytest
from distribution.cases import CASES
from scipy import stats

import oar
from oar import distribution as D

STEP = 1e-5


def differences(function, parameters, which):
    """The derivative of each element of a function by all elements of one parameter together."""
    def at(step):
        moved = [np.asarray(p) + step if i == which else p for i, p in enumerate(parameters)]
        return function(*[oar.to_tensor(np.asarray(p, "float64")) for p in moved]).numpy()

    return (at(STEP) - at(-STEP)) / (2 * STEP)


def assert_gradients(function, parameters, tolerance=1e-5):
    tensors = [oar.to_tensor(np.asarray(p, "float64"), stop_gradient=False) for p in parameters]
    result = function(*tensors)
    assert not result.stop_gradient
    # Weights that are all different tell elements apart that would otherwise add up.
    weights = np.linspace(1, 2, result.numpy().size).reshape(result.shape)
    found = oar.grad((result * oar.to_tensor(weights)).sum(), tensors, allow_unused=True)
    for which in range(len(parameters)):
        wanted = (weights * differences(function, parameters, which)).sum()
        total = 0.0 if found[which] is None else float(found[which].sum())
        assert total == pytest.approx(wanted, rel=tolerance, abs=tolerance)


# Trials are counted in whole numbers.
BY_DENSITY = [name for name in CASES if name not in ("Binomial", "Uniform")]


@pytest.mark.parametrize("name", BY_DENSITY)
def test_log_prob_by_parameters(name):
    case = CASES[name]
    points = case.column()
    inside = np.isfinite(case.log_density(points)).all(axis=tuple(range(1, points.ndim)))
    value = oar.to_tensor(points[inside])
    parameters = case.parameters
    if name == "Bernoulli":  # at 0.999 differences of the second order are too coarse
        parameters = (np.array([[0.1, 0.5], [0.75, 0.9]]),)
    elif name == "Geometric":
        parameters = (np.array([[0.1, 0.5], [0.75, 0.9]]),)
    elif name == "Poisson":
        parameters = (np.array([0.3, 4.0, 63.0]),)
    elif name.endswith("of 1"):  # the edges of the support, where densities at other parameters are 0 or infinite
        value = oar.to_tensor([0.5], dtype="float64")
    assert_gradients(lambda *p: case.make(*p).log_prob(value), parameters)


@pytest.mark.parametrize("name", ["Beta", "Cauchy", "Exponential", "Gamma", "Gumbel", "LogNormal", "Normal", "StudentT"])
def test_log_prob_by_value(name):
    case = CASES[name]
    points = np.array([0.13, 0.4, 0.77]).reshape([-1] + [1] * (case.column().ndim - 1))
    assert_gradients(lambda value: case.distribution().log_prob(value), [points])


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].distribution().__class__ is not D.Bernoulli])
def test_entropy_by_parameters(name):
    case = CASES[name]
    parameters = case.parameters
    if name == "Binomial":
        assert_gradients(lambda probs: D.Binomial(5, probs).entropy(), parameters[1:])
        return
    if name == "Geometric":
        parameters = (np.array([[0.1, 0.5], [0.75, 0.9]]),)
    elif name == "Poisson":
        parameters = (np.array([0.3, 4.0, 60.0, 70.0]),)
    assert_gradients(lambda *p: case.make(*p).entropy(), parameters)


# Their numbers are functions of the parameters and of noise that does not depend on them.
PATHWISE = ["Cauchy", "ContinuousBernoulli", "Exponential", "Gumbel", "Laplace", "LogNormal", "Normal", "Normal 0-d", "Uniform"]


@pytest.mark.parametrize("name", PATHWISE)
def test_rsample(name):
    case = CASES[name]

    def draw(*parameters):
        oar.seed(11)
        return case.make(*parameters).rsample([4])

    assert_gradients(draw, case.parameters)


def test_relaxed_bernoulli():
    def draw(probs):
        oar.seed(11)
        return D.Bernoulli(probs).rsample([4], 0.5)

    assert_gradients(draw, [np.array([0.2, 0.7])])


def test_multivariate_normal():
    loc, lower = np.array([0.5, -1.0]), np.array([[1.5, 0.0], [0.4, 0.8]])
    value = oar.to_tensor([[0.1, 0.2], [1.0, -3.0]], dtype="float64")
    names = ("covariance_matrix", "precision_matrix", "scale_tril")
    for name, matrix in zip(names, (lower @ lower.T, lower @ lower.T, lower)):
        def make(mean, matrix, name=name):
            return D.MultivariateNormal(mean, **{name: matrix})

        def draw(mean, matrix, make=make):
            oar.seed(11)
            return make(mean, matrix).rsample([3])

        assert_gradients(lambda mean, matrix, make=make: make(mean, matrix).log_prob(value), [loc, matrix])
        assert_gradients(draw, [loc, matrix])
    covariance = oar.to_tensor(lower @ lower.T, stop_gradient=False)
    D.MultivariateNormal(oar.to_tensor(loc), covariance).log_prob(value).sum().backward()
    np.testing.assert_allclose(covariance.grad.numpy(), covariance.grad.numpy().T)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-3), ("float64", 1e-6)])
def test_gamma_numbers_move_with_their_quantile(dtype, tolerance):
    """A number that keeps its quantile as the concentration changes moves along SciPy's ppf."""
    shapes = np.array([0.3, 1.0, 2.5, 30.0])
    concentration = oar.to_tensor(shapes, dtype=dtype, stop_gradient=False)
    oar.seed(4)
    drawn = D.Gamma(concentration, oar.to_tensor(1.0, dtype=dtype)).rsample([50])
    (found,) = oar.grad(drawn.sum(0), [concentration])
    quantiles = stats.gamma(shapes).cdf(drawn.numpy())
    middle = (quantiles > 1e-3) & (quantiles < 0.999)
    moved = (stats.gamma(shapes + 1e-4).ppf(quantiles) - stats.gamma(shapes - 1e-4).ppf(quantiles)) / 2e-4
    assert middle.all(0).sum() >= 2
    for column in np.flatnonzero(middle.all(0)):
        assert found.numpy()[column] == pytest.approx(moved[:, column].sum(), rel=tolerance)


def test_gradient_of_means_of_numbers_from_gamma_numbers():
    """The mean of the gradients is the gradient of the mean, within 5 standard errors."""
    n = 20_000
    oar.seed(8)

    def check(make, parameters, function, wanted):
        tensors = [oar.to_tensor(p, dtype="float64", stop_gradient=False) for p in parameters]
        repeated = [oar.broadcast_to(t, [n, *t.shape]) for t in tensors]
        gradients = oar.grad(function(make(*repeated).rsample()).sum(), repeated)
        for gradient, right in zip(gradients, wanted):
            error = 5 * gradient.numpy().std(0) / np.sqrt(n)
            assert (np.abs(gradient.numpy().mean(0) - right) < error).all()

    a, b = 0.8, 2.5
    check(D.Beta, [a, b], lambda z: z, [b / (a + b) ** 2, -a / (a + b) ** 2])
    alpha = np.array([0.5, 2.0, 1.0])
    check(D.Dirichlet, [alpha], lambda z: z[..., 0], [(np.array([3.5, 0, 0]) - 0.5) / 3.5**2])
    df = 12.0
    check(lambda df: D.StudentT(df, 0.0, 1.0), [df], lambda z: z.square(), [1 / (df - 2) - df / (df - 2) ** 2])


def test_samples_that_cannot_be_differentiated_say_so():
    for make in (lambda: D.Poisson(2.0), lambda: D.Binomial(3, 0.5), lambda: D.Multinomial(3, oar.ones([2])), lambda: D.LKJCholesky()):
        with pytest.raises(NotImplementedError, match="Use sample"):
            make().rsample()


def test_sample_has_no_gradient():
    parameter = oar.to_tensor([2.0], stop_gradient=False)
    for distribution in (D.Gamma(parameter, parameter), D.Laplace(parameter, parameter), D.Exponential(parameter),
                         D.Gumbel(parameter, 1.0), D.Beta(parameter, parameter), D.StudentT(parameter, 0.0, 1.0)):
        assert distribution.sample([3]).stop_gradient and not distribution.rsample([3]).stop_gradient
    # As in Paddle, these two are functions of their parameters in sample() too.
    assert not D.Normal(parameter, 1.0).sample([3]).stop_gradient and not D.Uniform(0.0, parameter).sample([3]).stop_gradient
