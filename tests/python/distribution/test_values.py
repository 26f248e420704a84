"""Densities, moments, entropies and cumulative functions against SciPy."""

import numpy as np
import pytest
from distribution.cases import CASES, LOC, SCALE
from scipy import stats

import oar
from oar import distribution as D

TOLERANCES = {"float32": 2e-5, "float64": 1e-9}
EVERY = pytest.mark.parametrize("name", CASES)
DTYPES = pytest.mark.parametrize("dtype", TOLERANCES)


def assert_close(found, wanted, dtype, scale=1.0):
    assert found.dtype.name == dtype
    tolerance = scale * TOLERANCES[dtype]
    np.testing.assert_allclose(found.numpy(), np.broadcast_to(wanted, found.shape), rtol=tolerance, atol=tolerance)


@EVERY
@DTYPES
def test_density(name, dtype):
    case = CASES[name]
    distribution = case.distribution(dtype)
    points = case.column()
    value = oar.to_tensor(points, dtype=dtype)
    # The bounds of SciPy's parameters are those of float64: near 1, float32 has them elsewhere.
    scale = 20 if name in ("Bernoulli", "Geometric", "ContinuousBernoulli") else 3
    wanted = case.log_density(points)
    assert_close(distribution.log_prob(value), wanted, dtype, scale)
    assert_close(distribution.prob(value), np.exp(wanted), dtype, scale)


@EVERY
@DTYPES
def test_entropy(name, dtype):
    case = CASES[name]
    entropy = case.distribution(dtype).entropy()
    assert entropy.shape == list(case.distribution(dtype).batch_shape)
    assert_close(entropy, case.reference.entropy(), dtype, 10)


@pytest.mark.parametrize("name", [name for name in CASES if name != "Cauchy"])
@DTYPES
def test_moments(name, dtype):
    case = CASES[name]
    distribution = case.distribution(dtype)
    mean, variance = np.asarray(case.reference.mean()), np.asarray(case.reference.var())
    if name == "StudentT":  # for df up to 1 SciPy calls the mean infinite, Paddle and Oar say there is none
        assert np.isnan(distribution.mean.numpy()[:, 0]).all() and np.isnan(distribution.variance.numpy()[:, 0]).all()
        mean[..., 0] = variance[..., 0] = np.nan
    assert_close(distribution.mean, mean, dtype, 10)
    assert_close(distribution.variance, variance, dtype, 10)
    if hasattr(distribution, "stddev"):
        assert_close(distribution.stddev, np.sqrt(variance), dtype, 10)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if hasattr(case.distribution(), "cdf")])
@DTYPES
def test_cdf(name, dtype):
    case = CASES[name]
    points = case.column()
    found = case.distribution(dtype).cdf(oar.to_tensor(points, dtype=dtype))
    assert_close(found, case.reference.cdf(points), dtype, 10)


@pytest.mark.parametrize("name", ["ContinuousBernoulli", "Exponential", "Laplace"])
@DTYPES
def test_icdf(name, dtype):
    case = CASES[name]
    points = np.array([0.01, 0.3, 0.5, 0.9]).reshape([-1] + [1] * (case.column().ndim - 1))
    found = case.distribution(dtype).icdf(oar.to_tensor(points, dtype=dtype))
    np.testing.assert_allclose(found.numpy(), case.reference.ppf(points), rtol=1e-5, atol=1e-6)
    assert_close(case.distribution(dtype).cdf(found), points, dtype, 20)


def test_geometric_has_the_names_of_discrete_distributions():
    geometric = D.Geometric(oar.to_tensor([0.2, 0.7], dtype="float64"))
    for k in (0, 3, oar.to_tensor([0, 4])):
        numbers = k.numpy() if isinstance(k, oar.Tensor) else k
        np.testing.assert_allclose(geometric.pmf(k).numpy(), stats.geom([0.2, 0.7], loc=-1).pmf(numbers))
        np.testing.assert_allclose(geometric.log_pmf(k).numpy(), stats.geom([0.2, 0.7], loc=-1).logpmf(numbers))


@DTYPES
def test_dirichlet(dtype):
    concentration = np.array([[0.5, 1.0, 4.0], [2.0, 3.0, 0.7]])
    point = np.array([0.2, 0.3, 0.5])
    dirichlet = D.Dirichlet(oar.to_tensor(concentration, dtype=dtype))
    rows = [stats.dirichlet(row) for row in concentration]
    assert (dirichlet.batch_shape, dirichlet.event_shape) == ((2,), (3,))
    assert_close(dirichlet.log_prob(oar.to_tensor(point, dtype=dtype)), [row.logpdf(point) for row in rows], dtype)
    assert_close(dirichlet.entropy(), [row.entropy() for row in rows], dtype)
    assert_close(dirichlet.mean, [row.mean() for row in rows], dtype)
    assert_close(dirichlet.variance, [row.var() for row in rows], dtype)


@DTYPES
def test_multinomial(dtype):
    weights = np.array([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0]])
    value = np.array([2.0, 4.0, 0.0])
    multinomial = D.Multinomial(6, oar.to_tensor(weights, dtype=dtype))
    rows = [stats.multinomial(6, row / row.sum()) for row in weights]
    assert (multinomial.batch_shape, multinomial.event_shape) == ((2,), (3,))
    assert_close(multinomial.log_prob(oar.to_tensor(value, dtype=dtype)), [row.logpmf(value) for row in rows], dtype)
    assert_close(multinomial.prob(oar.to_tensor(value, dtype=dtype)), [row.pmf(value) for row in rows], dtype)
    assert_close(multinomial.entropy(), [row.entropy() for row in rows], dtype, 10)
    assert_close(multinomial.mean, [row.n * row.p for row in rows], dtype)
    assert_close(multinomial.variance, [np.diag(row.cov()) for row in rows], dtype)


def test_categorical():
    logits = np.array([[1.0, 3.0, 0.5], [2.0, 2.0, 4.0]])
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    categorical = D.Categorical(oar.to_tensor(logits, dtype="float64"))
    assert categorical.batch_shape == (2,)
    np.testing.assert_allclose(categorical.entropy().numpy(), stats.entropy(softmax, axis=-1))
    shares = logits / logits.sum(-1, keepdims=True)
    np.testing.assert_allclose(categorical.probs(oar.to_tensor([0, 2])).numpy(), shares[:, [0, 2]])
    np.testing.assert_allclose(categorical.log_prob(oar.to_tensor([[1], [0]])).numpy()[:, 0], np.log(shares[[0, 1], [1, 0]]))
    one = D.Categorical(oar.to_tensor(logits[0], dtype="float64"))
    np.testing.assert_allclose(one.prob(oar.to_tensor([[0, 1], [2, 2]])).numpy(), shares[0][[[0, 1], [2, 2]]])
    assert one.prob(oar.to_tensor(1)).shape == []


MATRIX = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 0.7]])


@pytest.mark.parametrize("given", ["covariance_matrix", "precision_matrix", "scale_tril"])
@DTYPES
def test_multivariate_normal(given, dtype):
    covariance = np.stack([MATRIX, 2 * MATRIX])
    matrix = {"covariance_matrix": covariance, "precision_matrix": np.linalg.inv(covariance),
              "scale_tril": np.linalg.cholesky(covariance)}[given]  # fmt: skip
    loc = np.array([0.5, 1.0, -2.0])
    normal = D.MultivariateNormal(oar.to_tensor(loc, dtype=dtype), **{given: oar.to_tensor(matrix, dtype=dtype)})
    assert (normal.batch_shape, normal.event_shape) == ((2,), (3,))
    rows = [stats.multivariate_normal(loc, each) for each in covariance]
    points = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 2.0]])
    value = oar.to_tensor(points, dtype=dtype).unsqueeze(1)
    assert_close(normal.log_prob(value), np.stack([row.logpdf(points) for row in rows], -1), dtype, 20)
    assert_close(normal.entropy(), [row.entropy() for row in rows], dtype, 5)
    assert_close(normal.mean, np.stack([loc, loc]), dtype)
    assert_close(normal.variance, np.diagonal(covariance, 0, 1, 2), dtype, 5)
    assert getattr(normal, given).shape == [2, 3, 3]


def test_lkj_density_has_a_total_of_1():
    """A factor of two rows is (r, sqrt(1 - r^2)); of three, the integral is over the rows' balls."""
    r = np.linspace(-1, 1, 20001)[1:-1]
    factor = np.zeros([len(r), 2, 2])
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, r, np.sqrt(1 - r * r)
    for concentration in (1.0, 1.5, 4.0):
        density = D.LKJCholesky(2, oar.to_tensor(concentration, dtype="float64")).prob(oar.to_tensor(factor))
        assert np.trapezoid(density.numpy(), r) == pytest.approx(1, abs=1e-4)
    x, y = np.meshgrid(np.linspace(-1, 1, 801), np.linspace(-1, 1, 801))
    inside = x * x + y * y < 1
    third = np.sqrt(1 - x[inside] ** 2 - y[inside] ** 2)
    factor = np.zeros([inside.sum(), 3, 3])
    factor[:, 0, 0], factor[:, 1, 1] = 1, 1  # the middle row at r = 0, where its own density is known
    factor[:, 2, 0], factor[:, 2, 1], factor[:, 2, 2] = x[inside], y[inside], third
    concentration = 2.0
    density = D.LKJCholesky(3, oar.to_tensor(concentration, dtype="float64")).prob(oar.to_tensor(factor)).numpy()
    middle = stats.beta(concentration + 0.5, concentration + 0.5, loc=-1, scale=2).pdf(0)
    assert density.sum() * (2 / 800) ** 2 == pytest.approx(middle, rel=1e-3)


def test_parameters_may_be_numbers_lists_arrays_and_tensors():
    wanted = stats.norm(LOC, SCALE).logpdf(0.3)
    for loc, scale in ((LOC, SCALE), (LOC.tolist(), SCALE.tolist()), (oar.to_tensor(LOC), oar.to_tensor(SCALE)),
                       (oar.to_tensor(LOC), SCALE.tolist()), (LOC, oar.to_tensor(SCALE))):  # fmt: skip
        normal = D.Normal(loc, scale)
        assert normal.batch_shape == (2, 3)
        np.testing.assert_allclose(normal.log_prob(0.3).numpy(), wanted, rtol=1e-5)
    assert D.Normal(0, 1).log_prob(oar.to_tensor(0.5)).shape == []
    assert D.Gamma(2, oar.to_tensor([1.0, 2.0], dtype="float64")).mean.dtype == oar.float64
    assert D.Normal(LOC, SCALE).loc.dtype == oar.float64
    assert D.Bernoulli(np.array([0.2, 0.3])).probs.dtype == oar.float32
    assert D.Poisson(2.0).batch_shape == D.ContinuousBernoulli(0.3).batch_shape == (1,)


def test_complex_normal():
    normal = D.Normal(1 + 2j, 2.0)
    value = 0.5 - 1j
    wanted = stats.norm(1, np.sqrt(2)).logpdf(0.5) + stats.norm(2, np.sqrt(2)).logpdf(-1)
    assert float(normal.log_prob(oar.to_tensor(value))) == pytest.approx(wanted, rel=1e-5)
    assert float(normal.entropy()) == pytest.approx(2 * stats.norm(0, np.sqrt(2)).entropy(), rel=1e-5)
    oar.seed(3)
    drawn = normal.sample([20000]).numpy()
    assert abs(drawn.mean() - (1 + 2j)) < 5 * 2 / np.sqrt(20000)
    assert stats.kstest(drawn.imag, stats.norm(2, np.sqrt(2)).cdf).pvalue > 1e-4


def test_independent_sums_over_batch_axes():
    base = D.Normal(oar.to_tensor(LOC), oar.to_tensor(SCALE))
    independent = D.Independent(base, 1)
    assert (independent.batch_shape, independent.event_shape) == ((2,), (3,))
    value = oar.to_tensor([0.1, 0.2, 0.3], dtype="float64")
    np.testing.assert_allclose(independent.log_prob(value).numpy(), base.log_prob(value).numpy().sum(-1))
    np.testing.assert_allclose(independent.entropy().numpy(), base.entropy().numpy().sum(-1))
    np.testing.assert_allclose(independent.prob(value).numpy(), base.prob(value).numpy().prod(-1))
    assert independent.sample([4]).shape == independent.rsample([4]).shape == [4, 2, 3]
    np.testing.assert_array_equal(independent.mean.numpy(), base.mean.numpy())


def test_complex_arrays_and_lists_make_complex_normals():
    loc, scale = np.complex64([1 + 2j, -0.5j]), np.float32([0.5, 2.0])
    value = np.complex64([0.5 + 1j, 1.0])
    away = np.abs(value - loc) / scale
    wanted = -(away**2) - 2 * np.log(scale) - np.log(np.pi)
    for given, dtype in ((loc, "complex64"), (loc.tolist(), "complex64"), (loc.astype("complex128"), "complex128")):
        normal = D.Normal(given, scale)
        assert normal.dtype.name == dtype and normal.sample([3]).dtype.name == dtype
        np.testing.assert_allclose(normal.log_prob(oar.to_tensor(value)).numpy(), wanted, rtol=1e-5)


def test_the_mean_decides_the_dtype_of_a_multivariate_normal():
    loc, covariance = oar.zeros([2], "float32"), oar.eye(2, dtype="float64") * 4
    normal = D.MultivariateNormal(loc, covariance)
    assert normal.sample().dtype == normal.entropy().dtype == normal.variance.dtype == oar.float32
    np.testing.assert_allclose(normal.variance.numpy(), [4, 4])


def test_a_uniform_distribution_whose_ends_are_the_wrong_way_round():
    """As in Paddle: NaN, and no density."""
    uniform = D.Uniform(2.0, 1.0)
    assert np.isnan(uniform.log_prob(oar.to_tensor(1.5)).item()) and uniform.prob(oar.to_tensor(1.5)).item() == 0
    assert np.isnan(uniform.entropy().item())
