"""Random numbers against the distributions of SciPy, and their independence of the number of threads."""

import numpy as np
import pytest
from scipy import stats

import oar
from oar._C import ops

N = 40_000
# With a fixed seed a test either always passes or never; the bound leaves room for other seeds.
ALPHA = 1e-4


def fresh(shape=N, dtype="float64"):
    return oar.zeros([shape] if isinstance(shape, int) else shape, dtype)


CONTINUOUS = {
    "uniform": (lambda: oar.uniform([N], "float64", -1.0, 3.0), stats.uniform(-1, 4)),
    "uniform32": (lambda: oar.rand([N], "float32"), stats.uniform()),
    "normal": (lambda: oar.randn([N], "float64"), stats.norm()),
    "normal32": (lambda: oar.randn([N], "float32"), stats.norm()),
    "normal_scaled": (lambda: oar.normal(2.0, 3.0, [N]), stats.norm(2, 3)),
    "exponential_": (lambda: fresh().exponential_(2.0), stats.expon(scale=0.5)),
    "exponential32": (lambda: fresh(dtype="float32").exponential_(), stats.expon()),
    "cauchy_": (lambda: fresh().cauchy_(1.0, 2.0), stats.cauchy(1, 2)),
    "log_normal": (lambda: oar.log_normal(0.5, 0.7, [N]), stats.lognorm(0.7, scale=np.exp(0.5))),
    "log_normal_": (lambda: fresh().log_normal_(0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "uniform_": (lambda: fresh().uniform_(2.0, 5.0), stats.uniform(2, 3)),
    "normal_": (lambda: fresh().normal_(1.0, 2.0), stats.norm(1, 2)),
    "gamma_small": (lambda: oar.standard_gamma(fresh() + 0.3), stats.gamma(0.3)),
    "gamma": (lambda: oar.standard_gamma(fresh() + 1.0), stats.gamma(1.0)),
    "gamma_large": (lambda: oar.standard_gamma(fresh() + 20.5), stats.gamma(20.5)),
    "truncated": (lambda: ops.truncated_normal([N], 0.0, 1.0, -2.0, 2.0, "float64"), stats.truncnorm(-2, 2)),
    "truncated_tail": (lambda: ops.truncated_normal([N], 1.0, 2.0, 1.0, 6.0, "float64"), stats.truncnorm(1, 6, 1, 2)),
    "dirichlet": (lambda: ops.dirichlet(fresh([N, 3]) + 2.0)[:, 0], stats.beta(2, 4)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_follow_their_distribution(name):
    draw, distribution = CONTINUOUS[name]
    oar.seed(11)
    assert stats.kstest(draw().numpy().astype("float64"), distribution.cdf).pvalue > ALPHA


DISCRETE = {
    "bernoulli": (lambda: oar.bernoulli(fresh() + 0.3), stats.bernoulli(0.3)),
    "bernoulli_": (lambda: fresh().bernoulli_(0.7), stats.bernoulli(0.7)),
    "poisson_small": (lambda: oar.poisson(fresh() + 2.5), stats.poisson(2.5)),
    "poisson_large": (lambda: oar.poisson(fresh() + 60), stats.poisson(60)),
    "binomial_few": (lambda: oar.binomial(fresh(dtype="int64") + 20, fresh() + 0.2), stats.binom(20, 0.2)),
    "binomial_many": (lambda: oar.binomial(fresh(dtype="int64") + 100, fresh() + 0.4), stats.binom(100, 0.4)),
    "binomial_likely": (lambda: oar.binomial(fresh(dtype="int64") + 100, fresh() + 0.85), stats.binom(100, 0.85)),
    "geometric_": (lambda: fresh().geometric_(0.3), stats.geom(0.3)),
    "randint": (lambda: oar.randint(3, 9, [N]), stats.randint(3, 9)),
    "multinomial": (
        lambda: oar.multinomial(oar.to_tensor([1.0, 2.0, 3.0, 4.0]), N, True),
        stats.rv_discrete(values=([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4])),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_follow_their_distribution(name):
    draw, distribution = DISCRETE[name]
    oar.seed(12)
    drawn = draw().numpy().astype("int64")
    values = np.arange(drawn.min(), drawn.max() + 1)
    expected = distribution.pmf(values) * N
    seen = np.array([(drawn == v).sum() for v in values])
    common = expected > 10
    # The rare values together are one more cell.
    cells = np.append(seen[common], N - seen[common].sum())
    shares = np.append(expected[common], N - expected[common].sum())
    keep = shares > 1e-9 * N
    assert cells[~keep].sum() == 0
    chance = stats.chisquare(cells[keep], shares[keep] * cells[keep].sum() / shares[keep].sum()).pvalue
    assert chance > ALPHA


def test_numbers_do_not_depend_on_the_number_of_threads():
    def draw():
        oar.seed(5)
        shapes = oar.full([70_000], 0.7)
        return [
            oar.randn([70_001]).numpy(), fresh(70_001, "float32").exponential_().numpy(),
            oar.standard_gamma(shapes).numpy(), ops.truncated_normal([70_003]).numpy(),
            oar.binomial(oar.full([70_000], 30, "int64"), shapes).numpy(),
            oar.nn.functional.alpha_dropout(oar.ones([300, 301]), 0.3).numpy(),
        ]  # fmt: skip

    before = oar.get_num_threads()
    try:
        oar.set_num_threads(1)
        one = draw()
        oar.set_num_threads(3)
        many = draw()
    finally:
        oar.set_num_threads(before)
    for a, b in zip(one, many):
        np.testing.assert_array_equal(a, b)


def test_in_place_forms_return_the_tensor_and_take_tensors():
    x = oar.zeros([3, 4])
    assert x.normal_(oar.full([3, 1], 100.0), 0.5) is x
    assert (x > 90).all()
    assert x.bernoulli_(oar.full([4], 1.0)) is x
    assert (x == 1).all()
    assert float(x.geometric_(oar.to_tensor(0.5)).min()) >= 1


def test_parameters_out_of_range_are_refused():
    with pytest.raises(ValueError, match="lam is -1"):
        oar.zeros([3]).exponential_(-1.0)
    with pytest.raises(ValueError, match="prob holds 1.5"):
        oar.binomial(oar.full([2], 3, "int64"), oar.full([2], 1.5))
    with pytest.raises(ValueError, match="must be below b"):
        ops.truncated_normal([3], 0.0, 1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match="shape of a gamma"):
        oar.standard_gamma(oar.full([2], -1.0))


class TestDropout:
    def test_channels_are_dropped_together(self):
        oar.seed(3)
        x = oar.ones([8, 6, 5, 5])
        out = oar.nn.functional.dropout2d(x, 0.5).numpy()
        assert set(np.unique(out)) == {0.0, 2.0}
        assert (out.max((2, 3)) == out.min((2, 3))).all()
        out = oar.nn.Dropout3D(0.5, "NDHWC")(oar.ones([8, 2, 3, 2, 6])).numpy()
        assert (out.max((1, 2, 3)) == out.min((1, 2, 3))).all()

    @pytest.mark.parametrize("function", ["alpha_dropout", "feature_alpha_dropout"])
    def test_alpha_dropout_keeps_mean_and_variance(self, function):
        oar.seed(4)
        out = getattr(oar.nn.functional, function)(oar.randn([400, 500]), 0.4).numpy()
        assert abs(out.mean()) < 0.02
        assert abs(out.std() - 1) < 0.02

    def test_evaluation_changes_nothing(self):
        x = oar.randn([4, 3, 2, 2])
        for layer in (oar.nn.Dropout2D(), oar.nn.AlphaDropout(), oar.nn.FeatureAlphaDropout()):
            layer.eval()
            np.testing.assert_array_equal(layer(x).numpy(), x.numpy())

    def test_wrong_layouts_are_refused(self):
        with pytest.raises(ValueError, match="4 axes"):
            oar.nn.functional.dropout2d(oar.ones([2, 3]))
        with pytest.raises(ValueError, match="data_format"):
            oar.nn.functional.dropout2d(oar.ones([2, 3, 4, 4]), data_format="CHWN")


class TestGumbelSoftmax:
    def test_draws_in_proportion(self):
        oar.seed(6)
        scores = oar.log(oar.to_tensor([[0.1, 0.2, 0.7]]))
        drawn = oar.nn.functional.gumbel_softmax(oar.expand(scores, [20_000, 3]), hard=True).numpy()
        assert set(np.unique(np.round(drawn, 6))) == {0.0, 1.0}
        np.testing.assert_allclose(drawn.mean(0), [0.1, 0.2, 0.7], atol=0.015)

    def test_hard_samples_have_the_gradient_of_soft_ones(self):
        grads = []
        for hard in (False, True):
            oar.seed(8)
            x = oar.to_tensor([[0.3, -0.2, 0.5]], stop_gradient=False)
            (oar.nn.functional.gumbel_softmax(x, 0.7, hard) * oar.to_tensor([1.0, 2.0, 3.0])).sum().backward()
            grads.append(x.grad.numpy())
        np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5)
