"""Quasi-Newton minimisation under Paddle's names, LookAhead and ModelAverage."""

import numpy as np
import pytest
import scipy.optimize

import oar
from oar import nn
from oar.incubate.optimizer import LBFGS, LookAhead, ModelAverage
from oar.incubate.optimizer.functional import minimize_bfgs, minimize_lbfgs


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("minimize", [minimize_bfgs, minimize_lbfgs])
@pytest.mark.parametrize("size", [2, 10])
def test_rosenbrock(minimize, size):
    start = np.full(size, -1.0)
    found = minimize(rosenbrock, oar.to_tensor(start), max_iters=200, tolerance_grad=1e-8, dtype="float64")
    converged, calls, x, value, gradient = found[:5]
    assert converged.item() and converged.shape == [1] and calls.dtype == oar.int64
    reference = scipy.optimize.minimize(scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, tol=1e-10).x
    np.testing.assert_allclose(x.numpy(), reference, atol=1e-6)
    assert value.item() < 1e-12 and np.abs(gradient.numpy()).max() < 1e-6


def test_the_estimate_becomes_the_inverse_hessian():
    hessian = np.array([[4.0, 1.0], [1.0, 3.0]])
    matrix = oar.to_tensor(hessian)
    found = minimize_bfgs(lambda x: (x @ (matrix @ x)) / 2, oar.to_tensor([3.0, -2.0], dtype="float64"), dtype="float64")
    np.testing.assert_allclose(found[5].numpy(), np.linalg.inv(hessian), rtol=1e-3, atol=1e-3)
    better = minimize_bfgs(lambda x: (x @ (matrix @ x)) / 2, oar.to_tensor([3.0, -2.0], dtype="float64"), dtype="float64",
                           initial_inverse_hessian_estimate=oar.to_tensor(np.linalg.inv(hessian)))
    assert better[1].item() < found[1].item()


@pytest.mark.parametrize("minimize", [minimize_bfgs, minimize_lbfgs])
def test_mistakes(minimize):
    start = oar.zeros([2])
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'"):
        minimize(rosenbrock, start, dtype="float16")
    with pytest.raises(ValueError, match="must be tensor"):
        minimize(rosenbrock, [0.0, 0.0])
    with pytest.raises(ValueError, match="They must agree"):
        minimize(rosenbrock, start.astype("float64"))
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        minimize(rosenbrock, start, initial_inverse_hessian_estimate=oar.to_tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(NotImplementedError, match="strong_wolfe"):
        minimize(rosenbrock, start, line_search_fn="other")
    with pytest.raises(ValueError, match="one element"):
        minimize(lambda x: x, start)


def test_a_start_at_the_minimum_converges():
    found = minimize_bfgs(lambda x: (x * x).sum(), oar.zeros([3]))
    assert found[0].item() and found[2].tolist() == [0.0, 0.0, 0.0]


def test_look_ahead():
    """Against the recurrence of the paper, with slow weights that start after the first step."""
    weight = oar.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(1.0))
    optimizer = LookAhead(oar.optimizer.SGD(0.1, parameters=[weight]), alpha=0.3, k=3)
    fast, slow = 1.0, None
    for step in range(1, 10):
        (weight * weight).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        fast -= 0.1 * 2 * fast
        slow = fast if slow is None else slow
        if step % 3 == 0:
            slow += 0.3 * (fast - slow)
            fast = slow
    assert weight.item() == pytest.approx(fast, rel=1e-5)
    with pytest.raises(AssertionError, match="alpha"):
        LookAhead(oar.optimizer.SGD(0.1, parameters=[weight]), alpha=1.5)
    with pytest.raises(AssertionError, match="positive integer"):
        LookAhead(oar.optimizer.SGD(0.1, parameters=[weight]), k=0)


def test_model_average():
    weight = oar.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(0.0))
    average = ModelAverage(0.5, parameters=[weight], min_average_window=2, max_average_window=4)
    with pytest.raises(RuntimeError, match="before the first step"), average.apply():
        pass
    for step in range(1, 8):  # windows end after steps 2 and 4 (at least half of the steps so far) and 7
        weight.set_value(oar.full([1], float(step)))
        average.step()
    with average.apply():
        assert weight.item() == pytest.approx(np.mean([5.0, 6.0, 7.0, *([3.0, 4.0] if average._get_accumulator("num_accumulates", weight).item() else [])]))
    assert weight.item() == 7.0
    with average.apply(need_restore=False):
        pass
    assert weight.item() != 7.0
    average.restore()
    assert weight.item() == 7.0


def test_averages_in_programs():
    """The same recurrences as in eager mode, with counts and averages as states of the program."""
    oar.enable_static()
    try:
        main, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(main, startup):
            x = oar.static.data("x", [2])
            weight = oar.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
            LookAhead(oar.optimizer.SGD(0.1), alpha=0.3, k=3).minimize((weight * x).sum())
            average = ModelAverage(0.5, min_average_window=2, max_average_window=4)
        executor = oar.static.Executor()
        executor.run(startup)
        fast, slow, seen = np.ones(2), None, []
        for step in range(1, 8):
            fed = np.array([1.0, step], "float32")
            got = executor.run(main, feed={"x": fed}, fetch_list=[weight])[0]
            fast = fast - 0.1 * fed
            slow = fast if slow is None else slow
            if step % 3 == 0:
                slow = fast = slow + 0.3 * (fast - slow)
            np.testing.assert_allclose(got, fast, rtol=1e-5)
            seen.append(fast)
        scope = oar.static.global_scope()
        with average.apply(executor):
            np.testing.assert_allclose(scope.find_var(weight.name).get_tensor(), np.mean(seen[4:7], axis=0), rtol=1e-5)
        np.testing.assert_allclose(scope.find_var(weight.name).get_tensor(), fast, rtol=1e-5)
    finally:
        oar.disable_static()


def test_states_by_name():
    weight = oar.create_parameter([2], "float32")
    optimizer = oar.optimizer.Momentum(0.1, parameters=[weight])
    with pytest.raises(ValueError, match="has no state 'velocity' yet"):
        optimizer._get_accumulator("velocity", weight)
    weight.sum().backward()
    optimizer.step()
    assert optimizer._get_accumulator("velocity", weight).tolist() == [1.0, 1.0]


def test_names():
    assert LBFGS is oar.optimizer.LBFGS
    assert oar.incubate.LookAhead is LookAhead and oar.incubate.ModelAverage is ModelAverage
    assert oar.science.minimize_bfgs is minimize_bfgs
