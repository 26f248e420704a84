"""Solve Burgers' equation with a neural network that knows the equation.

u_t + u u_x = nu u_xx on -1 < x < 1, 0 < t < 1, with u = -sin(pi x) at the start and u = 0 at both ends. The network's
output is changed so that start and ends hold exactly; it is trained to satisfy the equation at points inside.
u_x and u_xx come from one Taylor expansion along x, the loss is minimised by L-BFGS, and its value with its gradient is
one captured program. The reference is the exact solution of Cole and Hopf.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar.science import minimize_lbfgs, taylor

NU = 0.05 / math.pi
SIZES = [2, 24, 24, 24, 1]


def exact(x: np.ndarray, t: float) -> np.ndarray:
    """Cole and Hopf: a ratio of two integrals with a Gaussian weight."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    y = x[:, None] - math.sqrt(4 * NU * t) * nodes
    kernel = weights * np.exp(-np.cos(math.pi * y) / (2 * math.pi * NU))
    return -(kernel * np.sin(math.pi * y)).sum(1) / kernel.sum(1)


class Network:
    """A multilayer perceptron whose parameters are one vector, for L-BFGS."""

    def __init__(self) -> None:
        self.shapes = [(a, b) for a, b in zip(SIZES, SIZES[1:])]
        self.size = sum(a * b + b for a, b in self.shapes)

    def start(self) -> oar.Tensor:
        parts = []
        for a, b in self.shapes:
            parts += [oar.randn([a * b], dtype="float64") * math.sqrt(2 / (a + b)), oar.zeros([b], dtype="float64")]
        return oar.concat(parts)

    def __call__(self, vector: oar.Tensor, x: oar.Tensor, t: oar.Tensor) -> oar.Tensor:
        value, at = oar.concat([x, 2 * t - 1], axis=1), 0
        for i, (a, b) in enumerate(self.shapes):
            weight, bias = vector[at : at + a * b].reshape([a, b]), vector[at + a * b : at + a * b + b]
            at += a * b + b
            value = value @ weight + bias
            if i < len(self.shapes) - 1:
                value = oar.tanh(value)
        return -oar.sin(math.pi * x) * oar.exp(-t) + t * (1 - x * x) * value


def main() -> None:
    given = arguments(__doc__)
    oar.seed(given.seed)
    rng = np.random.default_rng(given.seed)
    count, rounds = (500, 4) if given.quick else (2000, 16)
    network = Network()
    # More points near x = 0, where the front becomes steep.
    x = np.concatenate([rng.uniform(-1, 1, count // 2), rng.normal(0, 0.15, count - count // 2).clip(-1, 1)])
    x = oar.to_tensor(x[:, None])
    t = oar.to_tensor(rng.uniform(0, 1, (count, 1)))

    def residual(vector: oar.Tensor) -> oar.Tensor:
        u, u_x, u_xx = taylor(lambda x: network(vector, x, t), x, 2)
        _, u_t = taylor(lambda t: network(vector, x, t), t, 1)
        return u_t + u * u_x - NU * u_xx

    @oar.jit.to_static
    def loss(vector: oar.Tensor) -> oar.Tensor:
        return (residual(vector) ** 2).mean()

    vector, losses = network.start(), []
    progress, begin = Progress(rounds, "training"), time.perf_counter()
    for step in range(1, rounds + 1):
        _, _, vector, value, *_ = minimize_lbfgs(loss, vector, max_iters=100, history_size=50, dtype="float64")
        losses.append(value.item())
        progress.update(step, f"loss {losses[-1]:.2e}")
    progress.finish()

    grid, times = np.linspace(-1, 1, 201), np.linspace(0.02, 1, 50)
    with oar.no_grad():
        found = np.stack([network(vector, oar.to_tensor(grid[:, None]), oar.full([201, 1], time_, "float64")).numpy()[:, 0]
                          for time_ in times])
    reference = np.stack([exact(grid, time_) for time_ in times])
    error = float(np.linalg.norm(found - reference) / np.linalg.norm(reference))

    figure = Figure(f"Burgers' equation: relative error {error:.2%} after {time.perf_counter() - begin:.0f} s", 3)
    figure.heat(0, "the network's u(x, t)", found, (-1, 1), (0, 1), "x", "t")
    figure.curves(1, "network and exact solution", [
        *((f"network, t = {times[i]:.2f}", grid, found[i]) for i in (12, 24, 49)),
        *((f"exact, t = {times[i]:.2f}", grid[::8], reference[i][::8], "points") for i in (12, 24, 49))], "x", "u")
    figure.curves(2, "loss", [("after 100 iterations each", range(1, rounds + 1), losses)], "round", "mean square of the residual", log=True)
    figure.save(given.out / "burgers.svg")
    check(error, 0.03 if given.quick else 0.01, "relative error")


if __name__ == "__main__":
    main()
