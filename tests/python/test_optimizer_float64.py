"""Optimizers of float64 parameters, against runs of PaddlePaddle: all digits of rates and states count."""

import json
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import nn, optimizer, static
from oar.optimizer import lr
from oar.optimizer._plan import single

RUNS = json.loads((Path(__file__).parent / "data" / "optimizer_float64.json").read_text())
SLOPE = np.array([0.3, -0.7, 1.1])
START = np.array([1.0, 2.0, 3.0])

MAKERS = {
    "SGD": lambda p: optimizer.SGD(0.1, parameters=p),
    "SGD_schedule": lambda p: optimizer.SGD(lr.ExponentialDecay(0.1, 0.9), parameters=p),
    "SGD_decay": lambda p: optimizer.SGD(0.1, parameters=p, weight_decay=0.01),
    "SGD_clip": lambda p: optimizer.SGD(0.1, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.1)),
    "Momentum": lambda p: optimizer.Momentum(0.1, 0.9, parameters=p, weight_decay=0.01),
    "Nesterov": lambda p: optimizer.Momentum(0.1, 0.9, parameters=p, use_nesterov=True),
    "Adam": lambda p: optimizer.Adam(0.1, parameters=p),
    "AdamW": lambda p: optimizer.AdamW(0.1, parameters=p, weight_decay=0.1),
    "Adagrad": lambda p: optimizer.Adagrad(0.1, parameters=p),
    "Adadelta": lambda p: optimizer.Adadelta(0.1, parameters=p),
    "RMSProp": lambda p: optimizer.RMSProp(0.1, rho=0.9, momentum=0.3, centered=True, parameters=p),
    "Lamb": lambda p: optimizer.Lamb(0.1, parameters=p),
    "NAdam": lambda p: optimizer.NAdam(0.1, parameters=p),
    "RAdam": lambda p: optimizer.RAdam(0.1, parameters=p),
    "Rprop": lambda p: optimizer.Rprop(0.1, learning_rate_range=(0.001, 1.0), parameters=p),
    "ASGD": lambda p: optimizer.ASGD(0.1, parameters=p),
}


def parameter():
    return oar.create_parameter([3], "float64", default_initializer=nn.initializer.Assign(START))


def train(make, wrap=lambda function: function):
    param = parameter()
    opt = make([param])

    @wrap
    def step(weight):
        (param * param * weight).sum().backward()
        opt.step()
        opt.clear_grad()

    for number in range(1, 5):
        step(oar.to_tensor(SLOPE * number / 3))
        if isinstance(opt._learning_rate, lr.LRScheduler):
            opt._learning_rate.step()
    return param.numpy(), opt


@pytest.mark.parametrize("name", MAKERS)
def test_as_paddle_does(name):
    found, _ = train(MAKERS[name])
    np.testing.assert_allclose(found, RUNS[name], rtol=1e-13)


@pytest.mark.parametrize("name", ["SGD_schedule", "Momentum", "Adam", "NAdam"])
def test_captured_steps_as_paddle_does(name):
    found, _ = train(MAKERS[name], oar.jit.to_static)
    np.testing.assert_allclose(found, RUNS[name], rtol=1e-13)


@pytest.mark.parametrize("make", [optimizer.Adam, optimizer.Adamax, optimizer.NAdam, optimizer.RAdam, optimizer.Lamb])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_have_the_dtype_of_the_parameter(make, dtype):
    param = oar.create_parameter([3], dtype)
    opt = make(0.1, parameters=[param])
    (param * param).sum().backward()
    opt.step()
    states = [value for value in opt.state_dict().values() if isinstance(value, oar.Tensor)]
    assert len(states) > 2 and all(state.dtype == param.dtype for state in states)


def test_programs_have_float64_rates():
    oar.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup):
            x = static.data("x", [3], "float64")
            param = oar.create_parameter([3], "float64", default_initializer=nn.initializer.Assign(START))
            schedule = lr.ExponentialDecay(0.1, 0.9)
            optimizer.SGD(schedule).minimize((param * param * x).sum())
            executor = static.Executor()
            executor.run(startup)
            for number in range(1, 5):
                (found,) = executor.run(main, feed={"x": SLOPE * number / 3}, fetch_list=[param])
                schedule.step()
    finally:
        oar.disable_static()
    np.testing.assert_allclose(found, RUNS["SGD_schedule"], rtol=1e-13)


def test_rounding_to_float32():
    rng = np.random.default_rng(0)
    values = [0.0, 1.0, 0.9, 0.999, 1e-8, 1e-6, 0.01, *rng.random(1000), *10.0 ** rng.uniform(-12, 3, 1000)]
    assert [single(float(value)) for value in values] == [float(np.float32(value)) for value in values]
