"""Captured functions have the densities and the random numbers of eager mode, as one program."""

import numpy as np
import pytest
from distribution.cases import CASES

import oar
from oar import distribution as D
from oar.static import InputSpec


def compare(function, *tensors):
    captured = oar.jit.to_static(function)
    for _ in range(2):  # the run that captures, and one of the program
        oar.seed(9)
        wanted = function(*tensors)
        oar.seed(9)
        found = captured(*tensors)
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6, atol=1e-7)
    assert oar.jit.capture_counts(captured) == {"captures": 1, "whole": 2, "segments": 0, "eager": 0}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_log_prob_and_entropy(name, dtype):
    case = CASES[name]
    if name == "Binomial":  # the number of outcomes is part of the program
        def make(probs):
            return D.Binomial(5, probs)

        tensors = case.tensors(dtype)[1:]
    else:
        make, tensors = case.make, case.tensors(dtype)
    value = oar.to_tensor(case.column(), dtype=dtype)
    compare(lambda value, *p: (make(*p).log_prob(value), make(*p).entropy()), value, *tensors)


@pytest.mark.parametrize("name", CASES)
def test_sample(name):
    case = CASES[name]

    def draw(*parameters):
        distribution = case.make(*parameters)
        return (distribution.sample([5]), distribution.sample(), *([distribution.rsample([2])] if case.reparametrised else []))

    compare(draw, *case.tensors("float32"))


OTHERS = {
    "Categorical": lambda x: (D.Categorical(x).sample([4]), D.Categorical(x).entropy(), D.Categorical(x).log_prob(oar.to_tensor([0, 1]))),
    "Dirichlet": lambda x: (D.Dirichlet(x).sample([4]), D.Dirichlet(x).entropy(), D.Dirichlet(x).log_prob(oar.to_tensor([0.2, 0.3, 0.5]))),
    "Multinomial": lambda x: (D.Multinomial(4, x).sample([4]), D.Multinomial(4, x).entropy()),
    "MultivariateNormal": lambda x: (D.MultivariateNormal(x, oar.eye(3) * 2 + 1).sample([4]),
                                     D.MultivariateNormal(x, precision_matrix=oar.eye(3) * 2 + 1).log_prob(oar.zeros([3]))),
    "LKJCholesky": lambda x: (D.LKJCholesky(3, x).sample([4]), D.LKJCholesky(3, x, "cvine").sample([4]),
                              D.LKJCholesky(3, x).log_prob(oar.eye(3))),
    "Independent": lambda x: (D.Independent(D.Normal(x, x), 1).sample([4]), D.Independent(D.Normal(x, x), 1).log_prob(x)),
    "TransformedDistribution": lambda x: (D.TransformedDistribution(D.Normal(x, x), [D.StickBreakingTransform()]).sample([4]),),
    "divergence": lambda x: (D.kl_divergence(D.Gamma(x, x), D.Gamma(2.0, 1.0)), D.kl_divergence(D.Beta(x, x), D.Beta(1.0, x))),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    compare(OTHERS[name], oar.to_tensor([[0.5, 1.0, 2.0], [3.0, 0.3, 1.0]]))


def test_a_captured_step_trains_through_rsample():
    def step(loc, rho):
        normal = D.Normal(loc, oar.nn.functional.softplus(rho))
        loss = (normal.rsample([8]) ** 2).mean() + D.kl_divergence(normal, D.Normal(0.0, 1.0)).mean()
        return oar.grad(loss, [loc, rho])

    tensors = [oar.to_tensor([0.5, -1.0], stop_gradient=False), oar.to_tensor([0.1, 0.2], stop_gradient=False)]
    compare(step, *tensors)


def test_open_sizes():
    def function(x):
        return D.Normal(x, 1.0).log_prob(0.5).sum(), D.Gamma(x + 3.0, 2.0).mean

    captured = oar.jit.to_static(function, input_spec=[InputSpec([None, 2])])
    for rows in (3, 5):
        x = oar.randn([rows, 2])
        for one, other in zip(captured(x), function(x)):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_transforms_of_functions():
    """vmap over a batch of parameters, and jvp."""
    def log_prob(x):
        return D.StudentT(x, 0.0, 1.0).log_prob(oar.to_tensor(0.3))

    x = oar.to_tensor([1.0, 3.0, 8.0])
    np.testing.assert_allclose(oar.func.vmap(log_prob)(x).numpy(), log_prob(x).numpy(), rtol=1e-6)
    _, tangent = oar.func.jvp(log_prob, (x,), (oar.ones([3]),))
    x.stop_gradient = False
    (gradient,) = oar.grad(log_prob(x).sum(), [x])
    np.testing.assert_allclose(tangent.numpy(), gradient.numpy(), rtol=1e-4, atol=1e-6)


def test_static_programs():
    oar.enable_static()
    try:
        main = oar.static.Program()
        with oar.static.program_guard(main):
            x = oar.static.data("x", [2, 3], "float32")
            results = [D.Normal(x, 2.0).log_prob(x + 1), D.Exponential(x).entropy(), D.Normal(x, 1.0).sample([4])]
        given = np.array([[0.5, 1.0, 2.0], [3.0, 0.3, 1.0]], "float32")
        found = oar.static.Executor().run(main, feed={"x": given}, fetch_list=results)
    finally:
        oar.disable_static()
    np.testing.assert_allclose(found[1], 1 - np.log(given), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[0], np.full([2, 3], -0.125 - np.log(2) - 0.5 * np.log(2 * np.pi)), rtol=1e-5)
    assert found[2].shape == (4, 2, 3)
