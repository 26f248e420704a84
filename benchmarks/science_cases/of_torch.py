"""PyTorch's side of the cases."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.func import hessian as func_hessian
from torch.func import jvp

from science_cases import inputs as given

VERSION = torch.__version__
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def finish(value) -> np.ndarray:
    return value.detach().numpy()


def burgers() -> dict:
    x, t = (torch.tensor(a) for a in given.burgers_points())
    start = [torch.tensor(part) for pair in given.layers(given.BURGERS_SIZES, 0) for part in pair]

    def net(parameters, x, t):
        value = torch.cat([x, 2 * t - 1], dim=1)
        for i in range(0, len(parameters), 2):
            value = torch.addmm(parameters[i + 1], value, parameters[i])
            if i < len(parameters) - 2:
                value = torch.tanh(value)
        return -torch.sin(math.pi * x) * torch.exp(-t) + t * (1 - x * x) * value

    def residual(u, u_x, u_xx, u_t):
        return ((u_t + u * u_x - given.NU * u_xx) ** 2).mean()

    def by_reverse(parameters):
        at_x, at_t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = net(parameters, at_x, at_t)
        u_x, u_t = torch.autograd.grad(u, (at_x, at_t), torch.ones_like(u), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x, at_x, torch.ones_like(u), create_graph=True)
        return residual(u, u_x, u_xx, u_t)

    def by_forward(parameters):
        one = torch.ones_like(x)
        along = lambda x: jvp(lambda x: net(parameters, x, t), (x,), (one,))  # noqa: E731
        (u, u_x), (_, u_xx) = jvp(along, (x,), (one,))
        _, u_t = jvp(lambda t: net(parameters, x, t), (t,), (one,))
        return residual(u, u_x, u_xx, u_t)

    def training(evaluate):
        parameters = [part.clone().requires_grad_() for part in start]
        optimizer = torch.optim.Adam(parameters, 1e-5, fused=True)

        def step():
            value = evaluate(parameters)
            optimizer.step()
            optimizer.zero_grad()
            return value
        return step

    def backward(loss):
        def evaluate(parameters):
            value = loss(parameters)
            value.backward()
            return value
        return evaluate

    def transformed(compile_it):
        function = torch.func.grad_and_value(lambda parameters: by_forward(parameters))
        function = torch.compile(function) if compile_it else function

        def evaluate(parameters):
            grads, value = function([p.detach() for p in parameters])
            for parameter, gradient in zip(parameters, grads):
                parameter.grad = gradient
            return value
        return evaluate

    return {"reverse, eager": training(backward(by_reverse)), "forward, eager": training(backward(by_forward)),
            "torch.func": training(transformed(False)), "torch.compile": training(transformed(True))}


def hessian() -> dict:
    data, target = (torch.tensor(a) for a in given.hessian_data())
    vector, parts = torch.tensor(given.hessian_vector()), given.hessian_parts()

    def loss(vector):
        value = data
        for i in range(0, len(parts), 2):
            (a, b, shape), (c, d, _) = parts[i], parts[i + 1]
            value = torch.addmm(vector[c:d], value, vector[a:b].reshape(shape))
            if i < len(parts) - 2:
                value = torch.tanh(value)
        return ((value - target) ** 2).mean()

    compiled = torch.compile(func_hessian(loss))
    return {"torch.func": lambda: func_hessian(loss)(vector), "torch.compile": lambda: compiled(vector),
            "vectorized": lambda: torch.autograd.functional.hessian(loss, vector, vectorize=True)}


def _step(arrays):
    def advection(waves):
        u, v, along_x, along_y = torch.fft.irfft2(arrays["fields"] * waves, s=[given.GRID, given.GRID])
        return arrays["kept"] * torch.fft.rfft2(u * along_x + v * along_y)

    return lambda waves: given.runge_kutta(advection, arrays["half"], waves)


def fft_solver() -> dict:
    arrays = {name: torch.tensor(a) for name, a in given.flow().items()}
    step = _step(arrays)
    compiled = torch.compile(step)
    return {"eager": lambda: step(arrays["start"]), "torch.compile": lambda: compiled(arrays["start"])}


def fft_gradient() -> dict:
    arrays = {name: torch.tensor(a) for name, a in given.flow().items()}
    field = torch.tensor(np.fft.irfft2(given.flow()["start"])).requires_grad_()
    step = _step(arrays)
    compiled = torch.compile(step)

    def gradient(step):
        waves = torch.fft.rfft2(field)
        for _ in range(given.STEPS):
            waves = step(waves)
        return torch.autograd.grad((torch.fft.irfft2(waves, s=[given.GRID, given.GRID]) ** 4).mean(), field)[0]

    return {"eager": lambda: gradient(step), "torch.compile": lambda: gradient(compiled)}


def derivatives(order: int) -> dict:
    matrices, x = [torch.tensor(w) for w in given.taylor_weights()], torch.tensor(given.taylor_points())

    def net(x):
        for w in matrices[:-1]:
            x = torch.tanh(x @ w)
        return x @ matrices[-1]

    def nested():
        leaf = x.detach().requires_grad_()
        y = net(leaf)
        for i in range(order):
            (y,) = torch.autograd.grad(y, leaf, torch.ones_like(y), create_graph=i < order - 1)
        return y

    return {"nested": nested} if order <= given.NESTED_ORDERS else {}


