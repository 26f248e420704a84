"""Mistakes get the class of error that Paddle raises, and a text that names the parameter."""

import subprocess
import sys

import numpy as np
import pytest

import oar
from oar import distribution as D

BAD_VALUES = [
    (lambda: D.Bernoulli(1.5), "probs must be between 0 and 1, but got 1.5"), (lambda: D.Bernoulli([0.5, -0.1]), "probs"),
    (lambda: D.Beta(-1.0, 1.0), "alpha must be positive"), (lambda: D.Beta(1.0, np.array([0.0])), "beta must be positive"),
    (lambda: D.Binomial(-1, 0.5), "total_count must be nonnegative"), (lambda: D.Binomial(1.5, 0.5), "total_count must be an integer"),
    (lambda: D.Binomial(3, 1.5), "probs"), (lambda: D.Binomial(oar.ones([2]), oar.ones([3])), r"shapes \[2\] and \[3\] do not broadcast"),
    (lambda: D.Categorical(0.5), "needs? an axis"), (lambda: D.Categorical(oar.to_tensor(0.5)), "axis"),
    (lambda: D.Cauchy(0.0, -1.0), "scale must be nonnegative"),
    (lambda: D.Chi2(-1.0), "df must be positive"), (lambda: D.Chi2(oar.to_tensor([1.0, -1.0])), "df must be positive"),
    (lambda: D.ContinuousBernoulli(1.5), "probs"), (lambda: D.ContinuousBernoulli(0.5, (0.4,)), "lims must be two numbers"),
    (lambda: D.Dirichlet(oar.to_tensor(1.0)), "0-d"), (lambda: D.Dirichlet([1.0, -1.0]), "concentration must be positive"),
    (lambda: D.Exponential(0.0), "rate must be positive"), (lambda: D.Gamma(1.0, -1.0), "rate must be positive"),
    (lambda: D.Geometric(1.5), "probs"), (lambda: D.Gumbel(0.0, -1.0), "scale"), (lambda: D.Laplace(0.0, -1.0), "scale"),
    (lambda: D.LKJCholesky(1), "dim must be at least 2"), (lambda: D.LKJCholesky(3, -1.0), "concentration must be positive"),
    (lambda: D.LKJCholesky(3, oar.to_tensor([-1.0])), "concentration"), (lambda: D.LKJCholesky(3, 1.0, "vine"), "'onion' or 'cvine'"),
    (lambda: D.LogNormal(0.0, -1.0), "scale"), (lambda: D.Multinomial(0, oar.ones([2])), "total_count must be an int of at least 1"),
    (lambda: D.Multinomial(2.0, oar.ones([2])), "total_count"), (lambda: D.Multinomial(2, oar.to_tensor(1.0)), "0-d"),
    (lambda: D.Multinomial(2, [0.5, -0.5]), "probs must be nonnegative"),
    (lambda: D.MultivariateNormal(oar.zeros([2])), "exactly one of"),
    (lambda: D.MultivariateNormal(oar.zeros([2]), oar.eye(2), oar.eye(2)), "covariance_matrix and precision_matrix"),
    (lambda: D.MultivariateNormal(oar.zeros([2]), oar.ones([2])), "square"),
    (lambda: D.MultivariateNormal(oar.zeros([3]), oar.eye(2)), "loc has 3 elements"),
    (lambda: D.MultivariateNormal(oar.zeros([2]), oar.to_tensor([[1.0, 0.0], [0.0, -1.0]])), "not positive definite"),
    (lambda: D.Normal(0.0, -1.0), "scale must be nonnegative, but got -1.0"), (lambda: D.Poisson(-1.0), "rate must be nonnegative"),
    (lambda: D.Normal(oar.ones([2]), oar.ones([3])), "do not broadcast"),
    (lambda: D.StudentT(-1.0, 0.0, 1.0), "df must be positive"), (lambda: D.StudentT(1.0, 0.0, oar.to_tensor(-1.0)), "scale"),
    (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "base has 0 batch axes"), (lambda: D.Independent(D.Normal([0.0], [1.0]), 0), "from 1 to 1"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [D.StickBreakingTransform()]), "need values of 1 axes"),
    (lambda: D.Categorical([0.2, 0.8]).log_prob(oar.to_tensor([1.0])), "int32 or int64"),
    (lambda: D.Categorical(oar.ones([2, 3])).probs(oar.to_tensor(1)), "axes"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", BAD_VALUES)
def test_bad_values(call, text):
    with pytest.raises(ValueError, match=text):
        call()


BAD_TYPES = [
    *[(lambda cls=cls, rest=rest: cls("text", *rest), "is of type str. Pass a number")
      for cls, rest in [(D.Bernoulli, ()), (D.Beta, (1.0,)), (D.Binomial, (0.5,)), (D.Categorical, ()), (D.Cauchy, (1.0,)), (D.Chi2, ()),
                        (D.ContinuousBernoulli, ()), (D.Dirichlet, ()), (D.Exponential, ()), (D.Gamma, (1.0,)), (D.Geometric, ()),
                        (D.Gumbel, (1.0,)), (D.Laplace, (1.0,)), (D.LogNormal, (1.0,)), (D.MultivariateNormal, (oar.eye(1),)),
                        (D.Normal, (1.0,)), (D.Poisson, ()), (D.StudentT, (0.0, 1.0)), (D.Uniform, (1.0,))]],
    (lambda: D.Normal(0.0, None), "scale is of type NoneType"),
    (lambda: D.LKJCholesky(2.5), "dim must be an int"),
    (lambda: D.Independent(1, 1), "base must be a Distribution"),
    (lambda: D.TransformedDistribution(1, []), "base must be a Distribution"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.ExpTransform()), "sequence of transforms"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [1]), "sequence of transforms"),
    (lambda: D.Normal(0.0, 1.0).sample(3), r"For one axis pass \[3\]"),
    (lambda: D.Gamma(1.0, 1.0).rsample(3), r"For one axis pass \[3\]"),
    (lambda: D.Distribution(2), "not iterable"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", BAD_TYPES)
def test_bad_types(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_out_of_range_categories():
    with pytest.raises(IndexError):
        D.Categorical([0.2, 0.8]).probs(oar.to_tensor([5]))


def test_cauchy_has_no_moments():
    for name in ("mean", "variance", "stddev"):
        with pytest.raises(ValueError, match=f"no {name}"):
            getattr(D.Cauchy(0.0, 1.0), name)


@pytest.mark.parametrize("use", [
    lambda d: d.mean, lambda d: d.variance, lambda d: d.sample(), lambda d: d.rsample(), lambda d: d.entropy(),
    lambda d: d.log_prob(oar.zeros([])), lambda d: d.prob(oar.zeros([])), lambda d: d.probs(oar.zeros([])),
    lambda d: d.kl_divergence(d)])  # fmt: skip
@pytest.mark.parametrize("base", [D.Distribution, D.ExponentialFamily])
def test_what_a_subclass_does_not_define(base, use):
    with pytest.raises(NotImplementedError):
        use(base((2,), (3,)))


def test_modules_are_those_of_paddle():
    code = ("import paddle, paddle.distribution as D\n"
            "from paddle.distribution import constraint, variable, transform, kl, Normal, kl_divergence\n"
            "from paddle.distribution.transform import ExpTransform\n"
            "from paddle.distribution.kl import register_kl\n"
            "from paddle.distribution.constraint import positive\n"
            "from paddle.distribution.variable import Independent\n"
            "from paddle.distribution.normal import Normal as Same\n"
            "assert Same is Normal is paddle.distribution.Normal and D.ExpTransform is ExpTransform\n"
            "print(float(kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))))\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "oar.as_paddle", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0.5", done.stderr


def test_the_package_is_imported_when_it_is_asked_for():
    code = "import sys, oar; before = 'oar.distribution' in sys.modules; oar.distribution.Normal; print(before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_values_in_static_programs_are_tensors():
    oar.enable_static()
    try:
        with oar.static.program_guard(oar.static.Program()):
            for distribution in (D.Bernoulli(0.3), D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0), D.Cauchy(0.0, 1.0)):
                for value in (1, 1.0, [1.0], np.array(1.0)):
                    with pytest.raises(TypeError, match="should be a Tensor in a static program"):
                        distribution.log_prob(value)
            assert D.Laplace(0.0, 1.0).log_prob(1.0).shape == [] and D.Geometric(0.5).pmf(2).shape == []
    finally:
        oar.disable_static()
