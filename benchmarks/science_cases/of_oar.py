"""Oar's side of the cases: for each a dictionary of ways, each a function without arguments that returns the result."""

from __future__ import annotations

import math

import numpy as np

import oar
from oar.science import taylor
from science_cases import inputs as given

VERSION = oar.__version__


def finish(value) -> np.ndarray:
    return value.numpy()


def burgers() -> dict:
    """The loss and a step of Adam."""
    x, t = (oar.to_tensor(a) for a in given.burgers_points())
    start = [part for pair in given.layers(given.BURGERS_SIZES, 0) for part in pair]

    def net(parameters, x, t):
        value = oar.concat([x, 2 * t - 1], axis=1)
        for i in range(0, len(parameters), 2):
            value = value @ parameters[i] + parameters[i + 1]
            if i < len(parameters) - 2:
                value = oar.tanh(value)
        return -oar.sin(math.pi * x) * oar.exp(-t) + t * (1 - x * x) * value

    def by_taylor(parameters):
        u, u_x, u_xx = taylor(lambda x: net(parameters, x, t), x, 2)
        _, u_t = taylor(lambda t: net(parameters, x, t), t, 1)
        return ((u_t + u * u_x - given.NU * u_xx) ** 2).mean()

    def by_reverse(parameters):
        at_x, at_t = x.detach(), t.detach()
        at_x.stop_gradient = at_t.stop_gradient = False
        u = net(parameters, at_x, at_t)
        u_x, u_t = oar.grad(u, [at_x, at_t], create_graph=True)
        (u_xx,) = oar.grad(u_x, at_x, create_graph=True)
        return ((u_t + u * u_x - given.NU * u_xx) ** 2).mean()

    def training(loss):
        parameters = [oar.create_parameter(list(a.shape), "float64", default_initializer=oar.nn.initializer.Assign(a)) for a in start]
        optimizer = oar.optimizer.Adam(1e-5, parameters=parameters)

        def step():
            value = loss(parameters)
            value.backward()
            optimizer.step()
            optimizer.clear_grad()
            return value
        return step

    return {"taylor, captured": oar.jit.to_static(training(by_taylor)), "taylor, eager": training(by_taylor),
            "reverse, eager": training(by_reverse)}


def hessian() -> dict:
    data, target = (oar.to_tensor(a) for a in given.hessian_data())
    vector, parts = oar.to_tensor(given.hessian_vector(), stop_gradient=False), given.hessian_parts()

    def loss(vector):
        value = data
        for i in range(0, len(parts), 2):
            (a, b, shape), (c, d, _) = parts[i], parts[i + 1]
            value = value @ vector[a:b].reshape(list(shape)) + vector[c:d]
            if i < len(parts) - 2:
                value = oar.tanh(value)
        return ((value - target) ** 2).mean()

    def rows(point):
        return oar.autograd.hessian(loss(point), point)[:]

    captured = oar.jit.to_static(rows)
    return {"captured": lambda: captured(vector), "eager": lambda: rows(vector)}


def fft_solver() -> dict:
    arrays = {name: oar.to_tensor(a) for name, a in given.flow().items()}

    def advection(waves):
        u, v, along_x, along_y = oar.fft.irfft2(arrays["fields"] * waves, s=[given.GRID, given.GRID])
        return arrays["kept"] * oar.fft.rfft2(u * along_x + v * along_y)

    def step(waves):
        return given.runge_kutta(advection, arrays["half"], waves)

    captured = oar.jit.to_static(step)
    return {"captured": lambda: captured(arrays["start"]), "eager": lambda: step(arrays["start"])}


def fft_gradient() -> dict:
    arrays = {name: oar.to_tensor(a) for name, a in given.flow().items()}
    field = oar.to_tensor(np.fft.irfft2(given.flow()["start"]), stop_gradient=False)

    def advection(waves):
        u, v, along_x, along_y = oar.fft.irfft2(arrays["fields"] * waves, s=[given.GRID, given.GRID])
        return arrays["kept"] * oar.fft.rfft2(u * along_x + v * along_y)

    def gradient(field, step):
        waves = oar.fft.rfft2(field)
        for _ in range(given.STEPS):
            waves = step(waves)
        return oar.grad((oar.fft.irfft2(waves, s=[given.GRID, given.GRID]) ** 4).mean(), field)[0]

    step = lambda waves: given.runge_kutta(advection, arrays["half"], waves)  # noqa: E731
    one, whole = oar.jit.to_static(step), oar.jit.to_static(lambda field: gradient(field, step))
    return {"captured": lambda: whole(field), "steps captured": lambda: gradient(field, one), "eager": lambda: gradient(field, step)}


def derivatives(order: int) -> dict:
    matrices, x = [oar.to_tensor(w) for w in given.taylor_weights()], oar.to_tensor(given.taylor_points())

    def net(x):
        for w in matrices[:-1]:
            x = oar.tanh(x @ w)
        return x @ matrices[-1]

    def nested():
        leaf = x.detach()
        leaf.stop_gradient = False
        y = net(leaf)
        for i in range(order):
            (y,) = oar.grad([y], [leaf], create_graph=i < order - 1)
        return y.detach()

    captured = oar.jit.to_static(lambda x: taylor(net, x, order)[order])
    ways = {"Taylor, captured": lambda: captured(x), "Taylor": lambda: taylor(net, x, order)[order]}
    return {**ways, "nested": nested} if order <= given.NESTED_ORDERS else ways
