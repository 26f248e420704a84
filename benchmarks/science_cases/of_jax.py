"""JAX's side of the cases: everything is compiled."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet

from science_cases import inputs as given

VERSION = jax.__version__
jax.config.update("jax_enable_x64", True)


def finish(value) -> np.ndarray:
    return np.asarray(value)


def burgers() -> dict:
    x, t = (jnp.asarray(a) for a in given.burgers_points())
    start = [jnp.asarray(part) for pair in given.layers(given.BURGERS_SIZES, 0) for part in pair]
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)

    def net(parameters, x, t):
        value = jnp.concatenate([x, 2 * t - 1], axis=1)
        for i in range(0, len(parameters), 2):
            value = value @ parameters[i] + parameters[i + 1]
            if i < len(parameters) - 2:
                value = jnp.tanh(value)
        return -jnp.sin(math.pi * x) * jnp.exp(-t) + t * (1 - x * x) * value

    def residual(u, u_x, u_xx, u_t):
        return ((u_t + u * u_x - given.NU * u_xx) ** 2).mean()

    def by_jet(parameters):
        u, (u_x, u_xx) = jet(lambda x: net(parameters, x, t), (x,), ([one, zero],))
        return residual(u, u_x, u_xx, jax.jvp(lambda t: net(parameters, x, t), (t,), (one,))[1])

    def by_forward(parameters):
        along = lambda x: jax.jvp(lambda x: net(parameters, x, t), (x,), (one,))  # noqa: E731
        (u, u_x), (_, u_xx) = jax.jvp(along, (x,), (one,))
        return residual(u, u_x, u_xx, jax.jvp(lambda t: net(parameters, x, t), (t,), (one,))[1])

    def by_reverse(parameters):
        u, back = jax.vjp(lambda x, t: net(parameters, x, t), x, t)
        u_x, u_t = back(one)
        slope = lambda x: jax.vjp(lambda x: net(parameters, x, t), x)[1](one)[0]  # noqa: E731
        return residual(u, u_x, jax.vjp(slope, x)[1](one)[0], u_t)

    def training(loss):
        @jax.jit
        def update(state):
            parameters, first, second, count = state
            value, grads = jax.value_and_grad(loss)(parameters)
            count = count + 1
            first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
            second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads)]
            rate = 1e-5 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
            moved = [p - rate * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(parameters, first, second)]
            return value, (moved, first, second, count)

        state = (start, [0 * p for p in start], [0 * p for p in start], jnp.asarray(0.0))

        def step():
            nonlocal state
            value, state = jax.block_until_ready(update(state))
            return value
        return step

    return {"jet, jit": training(by_jet), "forward, jit": training(by_forward), "reverse, jit": training(by_reverse)}


def hessian() -> dict:
    data, target = (jnp.asarray(a) for a in given.hessian_data())
    vector, parts = jnp.asarray(given.hessian_vector()), given.hessian_parts()

    def loss(vector):
        value = data
        for i in range(0, len(parts), 2):
            (a, b, shape), (c, d, _) = parts[i], parts[i + 1]
            value = value @ vector[a:b].reshape(shape) + vector[c:d]
            if i < len(parts) - 2:
                value = jnp.tanh(value)
        return ((value - target) ** 2).mean()

    forward, reverse = jax.jit(jax.hessian(loss)), jax.jit(jax.jacrev(jax.jacrev(loss)))
    return {"jit": lambda: forward(vector).block_until_ready(), "reverse twice, jit": lambda: reverse(vector).block_until_ready()}


def _step(arrays):
    def advection(waves):
        u, v, along_x, along_y = jnp.fft.irfft2(arrays["fields"] * waves, s=[given.GRID, given.GRID])
        return arrays["kept"] * jnp.fft.rfft2(u * along_x + v * along_y)

    return lambda waves: given.runge_kutta(advection, arrays["half"], waves)


def fft_solver() -> dict:
    arrays = {name: jnp.asarray(a) for name, a in given.flow().items()}
    step = jax.jit(_step(arrays))
    return {"jit": lambda: step(arrays["start"]).block_until_ready()}


def fft_gradient() -> dict:
    arrays = {name: jnp.asarray(a) for name, a in given.flow().items()}
    field = jnp.asarray(np.fft.irfft2(given.flow()["start"]))

    def value(field):
        waves = jnp.fft.rfft2(field)
        for _ in range(given.STEPS):
            waves = _step(arrays)(waves)
        return (jnp.fft.irfft2(waves, s=[given.GRID, given.GRID]) ** 4).mean()

    gradient = jax.jit(jax.grad(value))
    return {"jit": lambda: gradient(field).block_until_ready()}


def derivatives(order: int) -> dict:
    matrices, x = [jnp.asarray(w) for w in given.taylor_weights()], jnp.asarray(given.taylor_points())

    def net(x):
        for w in matrices[:-1]:
            x = jnp.tanh(x @ w)
        return x @ matrices[-1]

    def taylor(x):
        series = [jnp.ones_like(x)] + [jnp.zeros_like(x)] * (order - 1)
        return jet(net, (x,), (series,))[1][-1]

    def nested(x):
        f = lambda s: net(s.reshape(1, 1))[0, 0]  # noqa: E731
        for _ in range(order):
            f = jax.grad(f)
        return jax.vmap(f)(x[:, 0])[:, None]

    ways = {"Taylor, jit": jax.jit(taylor)}
    if order <= given.NESTED_ORDERS:
        ways["nested, jit"] = jax.jit(nested)
    return {name: lambda way=way: way(x).block_until_ready() for name, way in ways.items()}
