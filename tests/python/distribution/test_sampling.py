"""Random numbers against the distributions that they come from, and the shapes of samples.

Every test of a distribution rejects right numbers with probability 1e-4 at most; there are some 80 of them. The seed is fixed,
so a test either always passes or never.
"""

import numpy as np
import pytest
from distribution.cases import CASES
from scipy import stats

import oar
from oar import distribution as D

N = 20_000
ALPHA = 1e-4


@pytest.fixture(autouse=True)
def _seed():
    oar.seed(2024)


def assert_counts_fit(drawn, pmf):
    """Pearson's test, with the outcomes that are expected less than 10 times as one."""
    outcomes, found = np.unique(drawn, return_counts=True)
    expected = N * pmf(outcomes)
    often = expected >= 10
    found = [*found[often], N - found[often].sum()]
    expected = [*expected[often], N - expected[often].sum()]
    if expected[-1] < 10:  # too rare to test, but it must be rare
        assert found[-1] <= expected[-1] + 30
        found, expected = found[:-1], expected[:-1]
        expected = np.array(expected) * sum(found) / sum(expected)
    if len(found) > 1:
        assert stats.chisquare(found, expected).pvalue > ALPHA


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_sample(name, dtype):
    case = CASES[name]
    distribution = case.distribution(dtype)
    drawn = distribution.sample([N])
    assert drawn.shape == [N, *distribution.batch_shape] and drawn.dtype.name == dtype and drawn.stop_gradient
    parameters = np.broadcast_arrays(*case.parameters)
    flat = drawn.numpy().reshape(N, -1)
    assert np.isfinite(flat).all()
    for column in range(flat.shape[1]):
        if case.discrete:
            grid = np.arange(flat[:, column].max() + 1).reshape([-1] + [1] * parameters[0].ndim)
            table = np.asarray(case.reference.pmf(grid)).reshape(len(grid), -1)[:, column]
            assert_counts_fit(flat[:, column], lambda k, table=table: table[k.astype(int)])
        else:
            rank = parameters[0].ndim
            # Of the sorted numbers, every 20th: the largest gap of these is no more than that of all.
            points = np.sort(flat[:, column]).astype("float64")[::20]
            reached = np.asarray(case.reference.cdf(points.reshape([-1] + [1] * rank))).reshape(len(points), -1)[:, column]
            gap = np.abs(reached - np.arange(N)[::20] / N).max()
            assert stats.kstwo.sf(gap, N) > ALPHA


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.reparametrised])
def test_rsample_draws_from_the_same_distribution(name):
    case = CASES[name]
    oar.seed(5)
    once = case.distribution().sample([7])
    oar.seed(5)
    np.testing.assert_array_equal(once.numpy(), case.distribution().rsample([7]).numpy())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(), [], (2,), [2, 3], [0], (1, 1)])
def test_shapes(name, shape):
    distribution = CASES[name].distribution("float32")
    wanted = [*shape, *distribution.batch_shape, *distribution.event_shape]
    assert distribution.sample(shape).shape == wanted
    if CASES[name].reparametrised:
        assert distribution.rsample(shape).shape == wanted
    if not shape:
        assert distribution.sample().shape == wanted


def test_shapes_may_be_tensors():
    assert D.Normal(0.0, oar.ones([4])).sample(oar.to_tensor([2, 3])).shape == [2, 3, 4]


def test_categorical():
    logits = np.array([[1.0, 2.0, -1.0], [0.0, 0.0, 3.0]])
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    drawn = D.Categorical(oar.to_tensor(logits)).sample([N])
    assert drawn.shape == [N, 2] and drawn.dtype == oar.int64
    for row in range(2):
        assert_counts_fit(drawn.numpy()[:, row], lambda k, row=row: softmax[row][k])
    # The rows are drawn on their own: the pairs have the products as probabilities.
    pairs = drawn.numpy()[:, 0] * 3 + drawn.numpy()[:, 1]
    assert_counts_fit(pairs, lambda k: softmax[0][k // 3] * softmax[1][k % 3])
    assert D.Categorical([0.2, 0.8]).sample().shape == []
    assert D.Categorical([0.2, 0.8]).sample([3, 0]).shape == [3, 0]
    assert D.Categorical([0.2, 0.8]).sample(5).shape == [5]


def test_dirichlet():
    drawn = D.Dirichlet(oar.to_tensor([0.5, 1.0, 4.0], dtype="float64")).sample([N])
    np.testing.assert_allclose(drawn.numpy().sum(-1), 1)
    for column, alpha in enumerate((0.5, 1.0, 4.0)):
        assert stats.kstest(drawn.numpy()[:, column], stats.beta(alpha, 5.5 - alpha).cdf).pvalue > ALPHA


@pytest.mark.parametrize("make", [lambda: D.Beta(1e-3, 1e-3), lambda: D.Dirichlet(oar.full([3], 1e-3))])
def test_tiny_concentrations_give_numbers(make):
    """All gamma numbers underflow to 0 in float32 then, and 0 / 0 is NaN."""
    drawn = make().sample([N]).numpy()
    assert np.isfinite(drawn).all() and abs(drawn.reshape(N, -1)[:, 0].mean() - make().mean.numpy().reshape(-1)[0]) < 0.02


def test_multinomial():
    weights = np.array([1.0, 3.0, 0.0, 4.0])
    drawn = D.Multinomial(5, oar.to_tensor(weights, dtype="float64")).sample([N]).numpy()
    assert (drawn.sum(-1) == 5).all() and (drawn[:, 2] == 0).all() and drawn.dtype == np.float64
    reference = stats.multinomial(5, weights / 8)
    code = drawn @ [36, 6, 0, 1]

    def pmf(codes):
        digits = np.stack([codes // 36, codes // 6 % 6, 0 * codes, codes % 6], -1)
        return reference.pmf(digits)

    assert_counts_fit(code, pmf)
    assert D.Multinomial(3, oar.ones([2, 4])).sample([5]).shape == [5, 2, 4]


def test_multivariate_normal():
    covariance = np.array([[2.0, 0.9], [0.9, 1.0]])
    drawn = D.MultivariateNormal(oar.to_tensor([1.0, -1.0], dtype="float64"), oar.to_tensor(covariance)).sample([N]).numpy()
    independent = np.linalg.solve(np.linalg.cholesky(covariance), (drawn - [1.0, -1.0]).T)
    for row in independent:
        assert stats.kstest(row, stats.norm.cdf).pvalue > ALPHA
    assert stats.pearsonr(*independent).pvalue > ALPHA


@pytest.mark.parametrize("method", ["onion", "cvine"])
@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("concentration", [0.7, 3.0])
def test_lkj_correlations(method, dim, concentration):
    """Every correlation of a matrix of n rows is 2 * Beta(c - 1 + n / 2, the same) - 1, and products of rows are 1."""
    factors = D.LKJCholesky(dim, oar.to_tensor(concentration, dtype="float64"), method).sample([N])
    assert factors.shape == [N, dim, dim]
    lower = factors.numpy()
    assert (np.triu(lower, 1) == 0).all() and (np.diagonal(lower, 0, 1, 2) >= 0).all()
    correlations = lower @ lower.transpose(0, 2, 1)
    np.testing.assert_allclose(np.diagonal(correlations, 0, 1, 2), 1)
    half = concentration - 1 + dim / 2
    for row in range(dim):
        for column in range(row):
            assert stats.kstest(correlations[:, row, column], stats.beta(half, half, loc=-1, scale=2).cdf).pvalue > ALPHA


def test_lkj_shapes():
    for method in ("onion", "cvine"):
        lkj = D.LKJCholesky(3, oar.to_tensor([1.0, 2.0]), method)
        assert lkj.sample((4,)).shape == [4, 2, 3, 3] and lkj.sample().shape == [2, 3, 3]
        assert lkj.log_prob(lkj.sample((4,))).shape == [4, 2]


def test_relaxed_bernoulli_leans_to_both_ends():
    bernoulli = D.Bernoulli(oar.to_tensor(0.3, dtype="float64"))
    for temperature in (0.1, 1.0):
        logits = bernoulli.rsample([N], temperature)
        drawn = oar.nn.functional.sigmoid(logits).numpy()
        # Logistic noise around the logit of the probability.
        assert stats.kstest(logits.numpy() * temperature, stats.logistic(np.log(0.3 / 0.7)).cdf).pvalue > ALPHA
        # More than one half comes up as often as 1 does, at any temperature.
        assert stats.binomtest(int((drawn > 0.5).sum()), N, 0.3).pvalue > ALPHA
    assert (np.minimum(drawn, 1 - drawn) > 0.1).mean() > 0.5


def test_a_seed_of_the_call_repeats_the_numbers():
    for make in (lambda: D.Normal(0.0, 1.0), lambda: D.Uniform(0.0, 1.0)):
        np.testing.assert_array_equal(make().sample([5], seed=3).numpy(), make().sample([5], seed=3).numpy())


def test_transformed():
    transformed = D.TransformedDistribution(
        D.Normal(oar.to_tensor(0.5, dtype="float64"), 2.0), [D.AffineTransform(oar.to_tensor(1.0), oar.to_tensor(3.0)), D.ExpTransform()])
    drawn = transformed.sample([N]).numpy()
    assert stats.kstest(drawn, stats.lognorm(6, scale=np.exp(2.5)).cdf).pvalue > ALPHA
