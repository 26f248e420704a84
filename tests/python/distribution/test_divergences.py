"""The divergence of Kullback and Leibler against sums and integrals."""

import numpy as np
import pytest
from scipy import integrate

import oar
from oar import distribution as D


def t(value):
    return oar.to_tensor(value, dtype="float64")


def density(distribution):
    return lambda x: float(distribution.log_prob(t(x)))


def by_integral(p, q, low, high):
    log_p, log_q = density(p), density(q)
    return integrate.quad(lambda x: np.exp(log_p(x)) * (log_p(x) - log_q(x)), low, high, limit=200)[0]


CONTINUOUS = {
    "Beta": (lambda: (D.Beta(t(2.0), t(1.5)), D.Beta(t(1.2), t(3.0))), (0, 1)),
    "Cauchy": (lambda: (D.Cauchy(t(0.5), t(1.0)), D.Cauchy(t(-1.0), t(2.5))), (-np.inf, np.inf)),
    "Chi2": (lambda: (D.Chi2(t(3.0)), D.Chi2(t(5.0))), (0, np.inf)),
    "Chi2 and Gamma": (lambda: (D.Chi2(t(3.0)), D.Gamma(t(2.0), t(1.5))), (0, np.inf)),
    "ContinuousBernoulli": (lambda: (D.ContinuousBernoulli(t(0.2)), D.ContinuousBernoulli(t(0.7))), (0, 1)),
    "ContinuousBernoulli half": (lambda: (D.ContinuousBernoulli(t(0.5)), D.ContinuousBernoulli(t(0.7))), (0, 1)),
    "Exponential": (lambda: (D.Exponential(t(0.7)), D.Exponential(t(2.0))), (0, np.inf)),
    "Gamma": (lambda: (D.Gamma(t(2.0), t(0.7)), D.Gamma(t(3.5), t(2.0))), (0, np.inf)),
    "Laplace": (lambda: (D.Laplace(t(0.5), t(1.0)), D.Laplace(t(-1.0), t(2.5))), (-30, 30)),
    "LogNormal": (lambda: (D.LogNormal(t(0.5), t(0.6)), D.LogNormal(t(-0.2), t(1.0))), (1e-9, 60)),
    "Normal": (lambda: (D.Normal(t(0.5), t(1.0)), D.Normal(t(-1.0), t(2.5))), (-15, 15)),
    "Uniform": (lambda: (D.Uniform(t(0.5), t(1.0)), D.Uniform(t(-1.0), t(2.5))), (0.5, 1.0)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    make, support = CONTINUOUS[name]
    p, q = make()
    wanted = by_integral(p, q, *support)
    assert float(D.kl_divergence(p, q)) == pytest.approx(wanted, rel=1e-5)
    assert float(p.kl_divergence(q)) == pytest.approx(wanted, rel=1e-5)
    assert float(D.kl_divergence(p, p)) == pytest.approx(0, abs=1e-12)


DISCRETE = {
    "Bernoulli": lambda: (D.Bernoulli(t(0.2)), D.Bernoulli(t(0.7)), 2),
    "Binomial": lambda: (D.Binomial(4, t(0.3)), D.Binomial(6, t(0.5)), 5),
    "Binomial of tensors": lambda: (D.Binomial(t(4.0), t(0.3)), D.Binomial(t(4.0), t(0.5)), 5),
    "Geometric": lambda: (D.Geometric(t(0.3)), D.Geometric(t(0.5)), 300),
    "Poisson": lambda: (D.Poisson(t(2.0)), D.Poisson(t(3.5)), 80),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    p, q, count = DISCRETE[name]()
    k = t(np.arange(count))
    wanted = float((p.prob(k) * (p.log_prob(k) - q.log_prob(k))).sum())
    assert float(D.kl_divergence(p, q)) == pytest.approx(wanted, rel=1e-9)
    assert float(p.kl_divergence(q)) == pytest.approx(wanted, rel=1e-9)


def test_what_the_other_cannot_give_is_infinitely_far():
    assert float(D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0))) == np.inf
    assert float(D.kl_divergence(D.Binomial(5, 0.5), D.Binomial(4, 0.5))) == np.inf
    counts = D.Binomial(oar.to_tensor([2.0, 5.0]), 0.5).kl_divergence(D.Binomial(5, 0.5)).numpy()
    assert np.isfinite(counts).all() and counts[1] == pytest.approx(0, abs=1e-6)


def test_categorical():
    p, q = np.array([[1.0, 2.0, 0.5], [0.1, 0.2, 0.3]]), np.array([0.3, 1.0, 2.0])
    def softmax(x):
        return np.exp(x) / np.exp(x).sum(-1, keepdims=True)

    wanted = (softmax(p) * np.log(softmax(p) / softmax(q))).sum(-1, keepdims=True)
    np.testing.assert_allclose(D.kl_divergence(D.Categorical(t(p)), D.Categorical(t(q))).numpy(), wanted)


def test_dirichlet():
    """Of two categories it is a beta distribution."""
    found = D.kl_divergence(D.Dirichlet(t([2.0, 1.5])), D.Dirichlet(t([1.2, 3.0])))
    assert float(found) == pytest.approx(float(D.kl_divergence(D.Beta(t(2.0), t(1.5)), D.Beta(t(1.2), t(3.0)))))


def test_multivariate_normal():
    """Of one element it is a normal one; with a diagonal, the divergences add up."""
    loc, scale, other = t([0.5, -1.0]), np.array([1.0, 2.0]), np.array([0.7, 3.0])
    p = D.MultivariateNormal(loc, t(np.diag(scale**2)))
    q = D.MultivariateNormal(loc + 1, precision_matrix=t(np.diag(other**-2)))
    parts = D.Normal(loc, t(scale)).kl_divergence(D.Normal(loc + 1, t(other)))
    assert float(p.kl_divergence(q)) == pytest.approx(float(parts.sum()))
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned = [D.MultivariateNormal(t(rotation @ d.loc.numpy()), t(rotation @ np.diag(s**2) @ rotation.T))
              for d, s in ((p, scale), (q, other))]  # fmt: skip
    assert float(D.kl_divergence(*turned)) == pytest.approx(float(parts.sum()))


@pytest.mark.parametrize("p, q", [
    (D.Beta(t([2.0, 1.0]), t(1.5)), D.Beta(t(1.2), t(3.0))),
    (D.Exponential(t([0.7, 2.0])), D.Exponential(t(1.0))),
    (D.Gamma(t([2.0, 0.5]), t(0.7)), D.Gamma(t(3.5), t(2.0))),
    (D.Bernoulli(t([0.2, 0.6])), D.Bernoulli(t(0.7))),
    (D.Dirichlet(t([[2.0, 1.5, 0.4]])), D.Dirichlet(t([1.0, 3.0, 2.0])))])  # fmt: skip
def test_exponential_families_agree_with_closed_forms(p, q):
    from oar.distribution.kl import _kl_of_one_family

    np.testing.assert_allclose(_kl_of_one_family(p, q).numpy(), D.kl_divergence(p, q).numpy(), rtol=1e-9)
    if not isinstance(p, (D.Beta, D.Dirichlet, D.Gamma)):  # those have a carrier, which an entropy needs and a divergence does not
        np.testing.assert_allclose(D.ExponentialFamily.entropy(p).numpy(), p.entropy().numpy(), rtol=1e-9)


def test_families_have_gradients():
    rate = oar.to_tensor([0.7, 2.0], dtype="float64", stop_gradient=False)
    (found,) = oar.grad(D.ExponentialFamily.entropy(D.Exponential(rate)).sum(), [rate])
    np.testing.assert_allclose(found.numpy(), -1 / rate.numpy())


def test_batches_broadcast():
    p, q = D.Normal(oar.zeros([3, 1]), 1.0), D.Normal(oar.ones([4]), 2.0)
    assert D.kl_divergence(p, q).shape == [3, 4]


def test_the_nearest_classes_decide():
    class Special(D.Normal):
        pass

    @D.register_kl(Special, D.Normal)
    def special(p, q):
        return 7

    p, plain = Special(0.0, 1.0), D.Normal(0.0, 1.0)
    assert D.kl_divergence(p, plain) == D.kl_divergence(p, p) == 7
    assert float(D.kl_divergence(plain, p)) == 0

    @D.register_kl(D.Normal, Special)
    def other(p, q):
        return 8

    with pytest.warns(RuntimeWarning, match="ambiguous"):
        assert D.kl_divergence(p, p) == 7
    assert D.kl_divergence(plain, p) == 8


def test_errors():
    normal, uniform = D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0)
    for p, q in ((normal, uniform), (D.Beta(1.0, 2.0), D.Gamma(1.0, 2.0)), (D.Gumbel(0.0, 1.0), D.Gumbel(0.0, 1.0)), (1, 2)):
        with pytest.raises(NotImplementedError, match="register_kl"):
            D.kl_divergence(p, q)
    with pytest.raises(TypeError, match="must be of the class Normal, but got Uniform"):
        normal.kl_divergence(uniform)
    for wrong in ((1, 2), (D.Normal, int)):
        with pytest.raises(TypeError, match="subclasses of Distribution"):
            D.register_kl(*wrong)
    with pytest.raises(ValueError, match="2 and 3 elements"):
        D.MultivariateNormal(oar.zeros([2]), oar.eye(2)).kl_divergence(D.MultivariateNormal(oar.zeros([3]), oar.eye(3)))
