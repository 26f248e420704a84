"""Differential equations: values against SciPy and closed forms, gradients against differences, events, errors."""

import math

import numpy as np
import pytest
import scipy.integrate

import oar
from oar import nn
from oar.science import odeint, solve_ivp


def double(values, **options):
    return oar.to_tensor(values, dtype="float64", **options)


def lotka_volterra(t, y, a):
    x, z = y[0], y[1]
    return oar.stack([a * x - x * z, x * z - z])


@pytest.mark.parametrize("method", ["dopri5", "esdirk4"])
def test_values_as_in_scipy(method):
    times = np.linspace(0.0, 8.0, 9)
    tolerances = {"rtol": 1e-8, "atol": 1e-10} if method == "dopri5" else {"rtol": 1e-6, "atol": 1e-8}
    found = odeint(lotka_volterra, double([2.0, 1.0]), times, (double(1.5),), method=method, **tolerances)
    reference = scipy.integrate.solve_ivp(lambda t, y: [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - y[1]], (0, 8), [2, 1],
                                          t_eval=times, rtol=1e-11, atol=1e-12, method="DOP853").y.T
    np.testing.assert_allclose(found.numpy(), reference, rtol=1e3 * tolerances["rtol"])


def test_rk4_has_order_4():
    def error(step):
        y = odeint(lambda t, y: -y * t, double([1.0]), [0.0, 1.0], method="rk4", step_size=step)
        return abs(y[-1].item() - math.exp(-0.5))

    assert 14 < error(0.1) / error(0.05) < 18


@pytest.mark.parametrize("method, order", [("dopri5", 5), ("esdirk4", 4)])
def test_the_orders_of_the_steps(method, order):
    from oar.science._steppers import DormandPrince, Esdirk

    def field(t, y):
        return oar.stack([y[1] + math.sin(t), -y[0] * y[0]])

    stepper = DormandPrince(field) if order == 5 else Esdirk(field, lambda change, z: float(oar.abs(change).max()) * 1e12)
    reference = scipy.integrate.solve_ivp(lambda t, y: [y[1] + math.sin(t), -y[0] ** 2], (0, 0.4), [1.0, 0.5], rtol=1e-13,
                                          atol=1e-14, method="DOP853", dense_output=True).sol

    def errors(h):
        with oar.no_grad():
            y = double([1.0, 0.5])
            step, _ = stepper.step(0.0, y, field(0.0, y), h)
            return [np.abs(step.at(s * h).numpy() - reference(s * h)).max() for s in (1.0, 0.4)]

    end, middle = (math.log2(a / b) for a, b in zip(errors(0.4), errors(0.2)))
    assert end > order + 0.6 and middle > (4.4 if order == 5 else 3.4)


def test_stiff_equation_takes_few_steps():
    """Robertson's reactions up to t = 1e4: explicit steps would be about 1e-3 long."""
    def rates(t, y):
        a, b, c = y[0], y[1], y[2]
        slow, fast, self_ = 0.04 * a, 1e4 * b * c, 3e7 * b * b
        return oar.stack([fast - slow, slow - fast - self_, self_])

    y0 = double([1.0, 0.0, 0.0])
    solution = solve_ivp(rates, (0.0, 1e4), y0, method="esdirk4", rtol=1e-6, atol=double([1e-9, 1e-12, 1e-9]))
    reference = scipy.integrate.solve_ivp(
        lambda t, y: [-0.04 * y[0] + 1e4 * y[1] * y[2], 0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2],
        (0, 1e4), [1, 0, 0], method="Radau", rtol=1e-10, atol=1e-14).y[:, -1]
    np.testing.assert_allclose(solution.y.numpy(), reference, rtol=2e-5)
    assert len(solution.t) < 300


@pytest.mark.parametrize("method", ["dopri5", "esdirk4", "rk4"])
@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_gradients_against_differences(method, gradient):
    options = {"dopri5": {"rtol": 1e-9, "atol": 1e-11}, "esdirk4": {"rtol": 1e-6, "atol": 1e-8}, "rk4": {"step_size": 0.02}}[method]

    def loss(y0, a):
        y = odeint(lotka_volterra, y0, [0.0, 0.7, 1.5], (a,), method=method, gradient=gradient, **options)
        return (y * double([[1.0, 2.0], [0.5, -1.0], [2.0, 1.0]])).sum()

    y0, a = double([2.0, 1.0], stop_gradient=False), double(1.5, stop_gradient=False)
    loss(y0, a).backward()
    h, accuracy = 1e-4, 1e-4 if method == "esdirk4" else 2e-6
    with oar.no_grad():
        numeric_a = (loss(y0, a + h) - loss(y0, a - h)).item() / (2 * h)
        numeric_y = [(loss(y0 + double(d), a) - loss(y0 - double(d), a)).item() / (2 * h) for d in ([h, 0], [0, h])]
    np.testing.assert_allclose(a.grad.item(), numeric_a, rtol=accuracy)
    np.testing.assert_allclose(y0.grad.numpy(), numeric_y, rtol=accuracy)


def test_gradient_of_a_stiff_equation():
    rate = double(50.0, stop_gradient=False)
    y = odeint(lambda t, y: -rate * (y - math.cos(t)), double([0.0]), [0.0, 1.0], method="esdirk4", rtol=1e-8, atol=1e-10)[-1]
    y.backward()

    def exact(k):
        return k / (k * k + 1) * (k * math.cos(1) + math.sin(1)) - k * k / (k * k + 1) * math.exp(-k)

    assert y.item() == pytest.approx(exact(50.0), rel=1e-7)
    assert rate.grad.item() == pytest.approx((exact(50.001) - exact(49.999)) / 0.002, rel=1e-4)


def test_second_derivative_of_direct_gradients():
    a = double(0.7, stop_gradient=False)
    y = odeint(lambda t, y: a * y, double([1.0]), [0.0, 1.0], rtol=1e-9, atol=1e-12)[-1]
    (first,) = oar.grad(y, a, create_graph=True)
    (second,) = oar.grad(first, a)
    assert first.item() == pytest.approx(math.exp(0.7), rel=1e-7)
    assert second.item() == pytest.approx(math.exp(0.7), rel=1e-6)


@pytest.mark.parametrize("options", [{"gradient": "adjoint"}, {"method": "esdirk4"}])
def test_second_derivatives_that_would_be_wrong_are_refused(options):
    a = double(0.7, stop_gradient=False)
    y = odeint(lambda t, y, a: a * y, double([1.0]), [0.0, 1.0], (a,), **options)[-1]
    (first,) = oar.grad(y, a, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        oar.grad(first, a)


def test_gradient_of_the_times():
    t = double([0.3, 1.0], stop_gradient=False)
    y = odeint(lambda t, y: -2.0 * t * y, double([3.0]), t, rtol=1e-10, atol=1e-12)[-1]
    y.backward()
    value = 3.0 * math.exp(0.09 - 1.0)
    np.testing.assert_allclose([y.item(), *t.grad.tolist()], [value, 0.6 * value, -2.0 * value], rtol=1e-7)


def test_layers_adjoint_and_direct_agree():
    oar.seed(3)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    net.to(dtype="float64")

    class Field(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, t, y):
            return self.net(y)

    found = []
    for gradient in ("direct", "adjoint"):
        field = Field()
        y = odeint(field, oar.ones([3, 2], dtype="float64"), [0.0, 0.5, 1.0], gradient=gradient, rtol=1e-9, atol=1e-11)
        (y * y).sum().backward()
        found.append([p.grad.numpy().copy() for p in net.parameters()])
        for p in net.parameters():
            p.clear_grad()
    for direct, adjoint in zip(*found):
        np.testing.assert_allclose(adjoint, direct, rtol=1e-6, atol=1e-9)


def test_states_of_several_tensors_with_their_own_tolerances():
    def pendulum(t, state):
        return {"angle": state["speed"], "speed": -oar.sin(state["angle"])}

    start = {"angle": double([0.5, 1.0]), "speed": double([0.0, 0.0])}
    found = odeint(pendulum, start, [0.0, 2.0], rtol=1e-8, atol={"angle": 1e-10, "speed": double([1e-9, 1e-10])})
    for i, angle in enumerate((0.5, 1.0)):
        reference = scipy.integrate.solve_ivp(lambda t, y: [y[1], -math.sin(y[0])], (0, 2), [angle, 0], rtol=1e-11,
                                              atol=1e-12).y[:, -1]
        np.testing.assert_allclose([found["angle"][-1, i].item(), found["speed"][-1, i].item()], reference, rtol=1e-6)
    pair = odeint(lambda t, y: (y[1], -y[0]), (double(0.0), double(1.0)), [0.0, math.pi / 2])
    assert isinstance(pair, tuple) and pair[0].shape == [2]
    assert pair[0][-1].item() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("method", ["dopri5", "esdirk4"])
def test_complex_states(method):
    y0 = oar.to_tensor(np.array([1.0 + 0.0j, 0.5j]))
    y = odeint(lambda t, y: y * oar.to_tensor(np.array([1j, -2.0 + 1j])), y0, [0.0, 1.5], method=method, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(y[-1].numpy(), [np.exp(1.5j), 0.5j * np.exp(-3.0 + 1.5j)], rtol=1e-6)


def test_backwards_in_time_and_dense_output():
    solution = solve_ivp(lambda t, y: -y, (1.0, -1.0), double([1.0]), rtol=1e-9, atol=1e-11)
    for t in np.linspace(-1.0, 1.0, 17):
        assert solution(t).item() == pytest.approx(math.exp(1.0 - t), rel=1e-7)
    assert solution.t[-1] == -1.0
    with pytest.raises(ValueError, match="covers 1.0 to -1.0"):
        solution(2.0)


def test_events():
    def crossing(t, y):
        return y[0]

    falling = lambda t, y: y[0]  # noqa: E731
    falling.direction = -1
    solution = solve_ivp(lambda t, y: oar.stack([y[1], -y[0]]), (0.0, 10.0), double([0.0, 1.0]), events=[crossing, falling],
                         rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(solution.t_events[0].numpy(), [math.pi, 2 * math.pi, 3 * math.pi], rtol=1e-8)
    np.testing.assert_allclose(solution.t_events[1].numpy(), [math.pi, 3 * math.pi], rtol=1e-8)
    assert not solution.stopped


def test_terminal_event_and_its_gradient():
    gravity = double(9.81, stop_gradient=False)

    def ground(t, y):
        return y[0]

    ground.terminal = True
    fall = solve_ivp(lambda t, y: oar.stack([y[1], -gravity]), (0.0, 10.0), double([10.0, 0.0]), events=ground)
    time = fall.t_events[0][0]
    time.backward(retain_graph=True)
    assert fall.stopped and fall.t[-1] == pytest.approx(math.sqrt(20 / 9.81), rel=1e-9)
    assert gravity.grad.item() == pytest.approx(-0.5 * math.sqrt(20 / 9.81**3), rel=1e-5)
    gravity.clear_grad()
    fall.y_events[0][0][1].backward()  # the speed there is -sqrt(20 g)
    assert gravity.grad.item() == pytest.approx(-0.5 * math.sqrt(20 / 9.81), rel=1e-5)


def test_float32():
    y = odeint(lambda t, y: -y, oar.ones([2]), [0.0, 1.0], rtol=1e-5, atol=1e-6)
    assert y.dtype == oar.float32
    np.testing.assert_allclose(y[-1].numpy(), math.exp(-1), rtol=1e-4)


def test_fixed_steps_are_captured():
    def run(y0):
        return odeint(lambda t, y: -y * y, y0, [0.0, 0.5, 1.0], method="rk4", step_size=0.1)

    captured = oar.jit.to_static(run)
    y0 = oar.to_tensor([1.0, 2.0])
    np.testing.assert_allclose(captured(y0).numpy(), run(y0).numpy(), rtol=1e-6)


def test_mistakes():
    y0, f = double([1.0]), lambda t, y: -y
    with pytest.raises(ValueError, match="method is 'euler'"):
        odeint(f, y0, [0.0, 1.0], method="euler")
    with pytest.raises(ValueError, match="strictly increasing"):
        odeint(f, y0, [0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="at least 2 times"):
        odeint(f, y0, [0.0])
    with pytest.raises(ValueError, match="atol must not be negative"):
        odeint(f, y0, [0.0, 1.0], atol=-1.0)
    with pytest.raises(ValueError, match="both 0"):
        odeint(f, y0, [0.0, 1.0], rtol=0.0, atol=0.0)
    with pytest.raises(ValueError, match="what func returns must have the shapes of y0"):
        odeint(lambda t, y: oar.ones([2], dtype="float64"), y0, [0.0, 1.0])
    with pytest.raises(ValueError, match="another structure"):
        odeint(lambda t, y: (y, y), y0, [0.0, 1.0])
    with pytest.raises(TypeError, match="needs a float or complex"):
        odeint(f, oar.to_tensor([1]), [0.0, 1.0])
    with pytest.raises(TypeError, match="share one dtype"):
        odeint(f, (double([1.0]), oar.ones([1])), [0.0, 1.0])
    with pytest.raises(RuntimeError, match="step size fell to"):
        odeint(lambda t, y: y * y, y0, [0.0, 2.0])
    with pytest.raises(RuntimeError, match="steps were not enough"):
        odeint(lambda t, y: -1e6 * y, y0, [0.0, 1.0], max_steps=50)
    with pytest.raises(ValueError, match="step_size is for method='rk4'"):
        odeint(f, y0, [0.0, 1.0], step_size=0.1)
    with pytest.raises(ValueError, match="does not fit a state"):
        odeint(f, y0, [0.0, 1.0], atol=double([1.0, 2.0]))
    with pytest.raises(ValueError, match="two different finite times"):
        solve_ivp(f, (0.0, 0.0), y0)
    with pytest.raises(ValueError, match="one element"):
        solve_ivp(f, (0.0, 1.0), double([1.0, 2.0]), events=lambda t, y: y)


@pytest.mark.parametrize("method", ["dopri5", "esdirk4", "rk4"])
@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_a_captured_field_is_captured_few_times(method, gradient):
    rate = oar.to_tensor(0.7, dtype="float64", stop_gradient=False)
    field = oar.jit.to_static(lambda t, y, rate: -rate * y * oar.cos(t))
    start = oar.to_tensor([1.0, 2.0], dtype="float64")
    y = odeint(field, start, [i / 20 for i in range(21)], (rate,), method=method, gradient=gradient, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(y[-1].numpy(), start.numpy() * math.exp(-0.7 * math.sin(1.0)), rtol=1e-7)
    (slope,) = oar.grad(y[-1].sum(), rate)
    np.testing.assert_allclose(slope.item(), -3 * math.sin(1.0) * math.exp(-0.7 * math.sin(1.0)), rtol=1e-6)
    counts = oar.jit.capture_counts(field)
    assert counts["captures"] <= 6 and counts["whole"] > 20 and not counts["segments"]
