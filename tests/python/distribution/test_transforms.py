"""Transforms: values, inverses, log-determinants against Jacobians, shapes, and the variables they connect."""

import numpy as np
import pytest

import oar
from oar import distribution as D
from oar.distribution import constraint, variable
from oar.distribution.transform import Type


def t(value):
    return oar.to_tensor(value, dtype="float64")


def jacobian(function, x):
    """By differences, of a function of a vector."""
    step = 1e-6
    columns = []
    for i in range(len(x)):
        moved = [function(t(x + sign * step * np.eye(len(x))[i])).numpy().reshape(-1) for sign in (1, -1)]
        columns.append((moved[0] - moved[1]) / (2 * step))
    return np.stack(columns, -1)


POINT = np.array([0.3, 1.2, 0.7])
ELEMENTWISE = {
    "affine": lambda: D.AffineTransform(t(1.0), t(-2.0)),
    "affine vector": lambda: D.AffineTransform(t([1.0, 0.0, 2.0]), t([0.5, -3.0, 1.0])),
    "exp": D.ExpTransform,
    "power": lambda: D.PowerTransform(t(3.0)),
    "power vector": lambda: D.PowerTransform(t([2.0, -1.0, 0.5])),
    "sigmoid": D.SigmoidTransform,
    "tanh": D.TanhTransform,
    "chain": lambda: D.ChainTransform([D.AffineTransform(t(0.1), t(0.5)), D.ExpTransform(), D.PowerTransform(t(2.0))]),
    "stack": lambda: D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.PowerTransform(t(2.0))], -1),
}
OF_VECTORS = {
    "independent": lambda: D.IndependentTransform(D.ExpTransform(), 1),
    "independent affine": lambda: D.IndependentTransform(D.AffineTransform(t(1.0), t(2.0)), 1),
    "reshape": lambda: D.ReshapeTransform((3,), (3, 1)),
    "stick breaking": D.StickBreakingTransform,
    "chain of both": lambda: D.ChainTransform([D.AffineTransform(t(0.1), t(0.5)), D.StickBreakingTransform()]),
    "chain back": lambda: D.ChainTransform([D.StickBreakingTransform(), D.AffineTransform(t(0.1), t(0.5))]),
}


@pytest.mark.parametrize("name", [*ELEMENTWISE, *OF_VECTORS])
def test_inverse(name):
    transform = {**ELEMENTWISE, **OF_VECTORS}[name]()
    y = transform.forward(t(POINT))
    np.testing.assert_allclose(transform.inverse(y).numpy(), POINT)
    np.testing.assert_allclose(transform(t(POINT)).numpy(), y.numpy())
    assert tuple(y.shape) == tuple(transform.forward_shape((3,)))
    assert tuple(transform.inverse_shape(tuple(y.shape))) == (3,)
    batch = transform.forward(t(np.stack([POINT, POINT])))
    np.testing.assert_allclose(batch.numpy(), np.stack([y.numpy(), y.numpy()]))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_derivative_of_elements(name):
    transform = ELEMENTWISE[name]()
    wanted = np.log(np.abs(np.diagonal(jacobian(transform.forward, POINT))))
    found = np.broadcast_to(transform.forward_log_det_jacobian(t(POINT)).numpy(), [3])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    back = transform.inverse_log_det_jacobian(transform.forward(t(POINT))).numpy()
    np.testing.assert_allclose(np.broadcast_to(back, [3]), -wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", OF_VECTORS)
def test_derivative_of_vectors(name):
    transform = OF_VECTORS[name]()
    # The last share of a stick follows from the others.
    full = jacobian(transform.forward, POINT)
    wanted = np.linalg.slogdet(full[:3])[1]
    if name == "chain back":  # the dependent share is scaled too
        wanted += np.log(0.5)
    found = transform.forward_log_det_jacobian(t(POINT))
    assert found.shape == []
    assert float(found) == pytest.approx(wanted, rel=1e-6, abs=1e-8)
    assert float(transform.inverse_log_det_jacobian(transform.forward(t(POINT)))) == pytest.approx(-wanted, rel=1e-6, abs=1e-8)
    assert transform.forward_log_det_jacobian(t(np.stack([POINT, POINT]))).shape == [2]


def test_derivatives_far_from_0_keep_their_digits():
    x = t([-400.0, -30.0, 30.0, 400.0])
    np.testing.assert_allclose(D.TanhTransform().forward_log_det_jacobian(x).numpy(), 2 * np.log(2) - 2 * np.abs(x.numpy()))
    np.testing.assert_allclose(D.SigmoidTransform().forward_log_det_jacobian(x).numpy(), -np.abs(x.numpy()))


def test_abs():
    absolute = D.AbsTransform()
    np.testing.assert_array_equal(absolute.forward(t([-1.0, 2.0])).numpy(), [1, 2])
    below, above = absolute.inverse(t([1.0, 2.0]))
    np.testing.assert_array_equal([below.numpy(), above.numpy()], [[-1, -2], [1, 2]])
    assert [float(each) for each in absolute.inverse_log_det_jacobian(t([1.0, 2.0]))] == [0, 0]
    with pytest.raises(NotImplementedError, match="not injective"):
        absolute.forward_log_det_jacobian(t(1.0))


def test_softmax():
    softmax = D.SoftmaxTransform()
    y = softmax.forward(t([[1.0, 2.0], [3.0, -1.0]]))
    np.testing.assert_allclose(y.numpy().sum(-1), 1)
    np.testing.assert_allclose(softmax.forward(softmax.inverse(y)).numpy(), y.numpy())
    assert softmax.forward_shape((4, 2)) == softmax.inverse_shape((4, 2)) == (4, 2)
    for call in (softmax.forward_log_det_jacobian, softmax.inverse_log_det_jacobian):
        with pytest.raises(NotImplementedError):
            call(y)


def test_zeros_break_a_stick_evenly():
    np.testing.assert_allclose(D.StickBreakingTransform().forward(t(np.zeros([2, 4]))).numpy(), np.full([2, 5], 0.2))


def test_a_call_composes():
    chain = D.ExpTransform()(D.TanhTransform())
    np.testing.assert_allclose(chain.forward(t(POINT)).numpy(), np.tanh(np.exp(POINT)))
    transformed = D.ExpTransform()(D.Normal(t(0.0), t(1.0)))
    assert isinstance(transformed, D.TransformedDistribution)
    log_normal = D.LogNormal(t(0.0), t(1.0))
    np.testing.assert_allclose(transformed.log_prob(t(POINT)).numpy(), log_normal.log_prob(t(POINT)).numpy())


def test_transformed_shapes_and_densities():
    base = D.Normal(t(np.zeros([4, 3])), t(1.0))
    stick = D.TransformedDistribution(base, [D.StickBreakingTransform()])
    assert (stick.batch_shape, stick.event_shape) == ((4,), (4,))
    value = stick.sample([2])
    assert value.shape == [2, 4, 4] and stick.log_prob(value).shape == [2, 4]
    back = D.StickBreakingTransform().inverse(value)
    wanted = base.log_prob(back).sum(-1) - D.StickBreakingTransform().forward_log_det_jacobian(back)
    np.testing.assert_allclose(stick.log_prob(value).numpy(), wanted.numpy())
    # A scale for all elements of a vector counts once for each.
    affine = D.AffineTransform(t(1.0), t(2.0))
    vectors = D.TransformedDistribution(D.Independent(base, 1), [affine])
    assert (vectors.batch_shape, vectors.event_shape) == ((4,), (3,))
    exact = D.Independent(D.Normal(t(np.ones([4, 3])), t(2.0)), 1)
    np.testing.assert_allclose(vectors.log_prob(t(POINT)).numpy(), exact.log_prob(t(POINT)).numpy())
    reshaped = D.TransformedDistribution(base, [D.ReshapeTransform((3,), (3, 1))])
    assert (reshaped.batch_shape, reshaped.event_shape) == ((4,), (3, 1))
    nothing = D.TransformedDistribution(base, [])
    np.testing.assert_array_equal(nothing.log_prob(t(POINT)).numpy(), base.log_prob(t(POINT)).numpy())


def test_gradients_flow_through_transforms():
    loc = oar.to_tensor(0.5, dtype="float64", stop_gradient=False)
    transformed = D.TransformedDistribution(D.Normal(loc, 1.0), [D.TanhTransform()])
    oar.seed(1)
    drawn = transformed.rsample([10])
    (found,) = oar.grad(drawn.sum(), [loc])
    assert float(found) == pytest.approx((1 - drawn.numpy() ** 2).sum())


@pytest.mark.parametrize("transform, domain, codomain, kind", [
    (D.AbsTransform(), 0, 0, Type.SURJECTION), (D.ExpTransform(), 0, 0, Type.BIJECTION), (D.SoftmaxTransform(), 1, 1, Type.OTHER),
    (D.StickBreakingTransform(), 1, 1, Type.BIJECTION), (D.ReshapeTransform((2, 3), (6,)), 2, 1, Type.BIJECTION),
    (D.IndependentTransform(D.ExpTransform(), 2), 2, 2, Type.INJECTION),
    (D.ChainTransform([D.ExpTransform(), D.StickBreakingTransform()]), 1, 1, Type.INJECTION),
    (D.ChainTransform([D.ReshapeTransform((6,), (2, 3)), D.StickBreakingTransform()]), 1, 2, Type.INJECTION),
    (D.StackTransform([D.ExpTransform(), D.TanhTransform()], -1), 1, 1, Type.INJECTION)])  # fmt: skip
def test_ranks_and_kinds(transform, domain, codomain, kind):
    assert (transform._domain.event_rank, transform._codomain.event_rank) == (domain, codomain)
    assert transform._type is kind
    assert not transform._domain.is_discrete


@pytest.mark.parametrize("call, error", [
    (lambda: D.AffineTransform(1.0, t(2.0)), TypeError), (lambda: D.AffineTransform(t(1.0), 2.0), TypeError),
    (lambda: D.PowerTransform(2.0), TypeError), (lambda: D.ChainTransform(D.ExpTransform()), TypeError),
    (lambda: D.ChainTransform([1]), TypeError), (lambda: D.IndependentTransform(1, 1), TypeError),
    (lambda: D.IndependentTransform(D.ExpTransform(), 0), ValueError), (lambda: D.ReshapeTransform(2, (2,)), TypeError),
    (lambda: D.ReshapeTransform((2,), (3,)), ValueError), (lambda: D.StackTransform([]), TypeError),
    (lambda: D.StackTransform([1]), TypeError), (lambda: D.StackTransform([D.ExpTransform()], "x"), TypeError),
    (lambda: D.ExpTransform().forward(1.0), TypeError), (lambda: D.ExpTransform().inverse([1.0]), TypeError),
    (lambda: D.ExpTransform().forward_log_det_jacobian(1.0), TypeError), (lambda: D.ExpTransform().forward_shape(2), TypeError),
    (lambda: D.ExpTransform().inverse_shape("ab"), TypeError), (lambda: D.SoftmaxTransform().forward(t(1.0)), ValueError),
    (lambda: D.StickBreakingTransform().forward_shape(()), ValueError),
    (lambda: D.ReshapeTransform((2,), (1, 2)).forward(t([1.0, 2.0, 3.0])), ValueError),
    (lambda: D.ReshapeTransform((2,), (1, 2)).inverse_shape((2, 2)), ValueError),
    (lambda: D.StackTransform([D.ExpTransform()]).forward(t([1.0, 2.0])), ValueError),
    (lambda: D.StackTransform([D.ExpTransform()], 1).forward(t([1.0])), ValueError),
    (lambda: D.StackTransform([D.AbsTransform()]).inverse(t([1.0])), ValueError),
    (lambda: D.AffineTransform(t([1.0, 2.0]), t(1.0)).forward_shape((3,)), ValueError),
    (lambda: D.Transform().forward(t(1.0)), NotImplementedError), (lambda: D.Transform().inverse(t(1.0)), NotImplementedError),
    (lambda: D.Transform().forward_log_det_jacobian(t(1.0)), NotImplementedError),
    (lambda: D.Transform().inverse_log_det_jacobian(t(1.0)), NotImplementedError)])  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_a_transform_may_know_only_the_derivative_of_its_inverse():
    class Half(D.Transform):
        def _forward(self, x):
            return x / 2

        def _inverse(self, y):
            return 2 * y

        def _inverse_log_det_jacobian(self, y):
            return oar.full_like(y, np.log(2))

    np.testing.assert_allclose(Half().forward_log_det_jacobian(t(POINT)).numpy(), -np.log(2))


def test_constraints():
    value = t([-1.0, 0.0, 2.0, np.nan])
    np.testing.assert_array_equal(constraint.real(value).numpy(), [True, True, True, False])
    np.testing.assert_array_equal(constraint.positive.check(value).numpy(), [False, True, True, False])
    np.testing.assert_array_equal(constraint.Range(-1.0, 1.0)(value).numpy(), [True, True, False, False])
    np.testing.assert_array_equal(constraint.simplex(t([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]])).numpy(), [True, False, False])
    with pytest.raises(NotImplementedError):
        constraint.Constraint()(value)


def test_variables():
    assert (variable.real.event_rank, variable.Positive(1).event_rank) == (0, 1)
    independent = variable.Independent(variable.positive, 1)
    assert independent.event_rank == 1
    np.testing.assert_array_equal(independent.constraint(t([[1.0, -1.0], [1.0, 2.0]])).numpy(), [False, True])
    stack = variable.Stack([variable.real, variable.positive])
    np.testing.assert_array_equal(stack.constraint(t([[-1.0, -1.0], [-1.0, 2.0]])).numpy(), [[True, True], [False, True]])
    assert variable.Stack([variable.real, variable.Variable(True)]).is_discrete
    with pytest.raises(AssertionError, match="no constraint"):
        variable.Variable().constraint(t(1.0))
    with pytest.raises(ValueError, match="axis 1"):
        variable.Stack([variable.real], 1).constraint(t([1.0]))
    with pytest.raises(ValueError, match="axes of its own"):
        independent.constraint(t(1.0))
