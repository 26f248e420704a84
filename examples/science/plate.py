"""Bend a clamped square plate: fourth derivatives of a neural network.

The deflection of a thin plate under a uniform load solves the biharmonic equation w_xxxx + 2 w_xxyy + w_yyyy = 1, with
w = 0 and no slope at the edges. The network's output is multiplied by a function that satisfies the edges. Fourth
derivatives along four directions come from Taylor expansions; the mixed one follows from the diagonals. The deflection
of the centre is compared with the series solution, 0.00126532.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar.science import minimize_lbfgs, taylor

CENTRE = 0.00126532
SIZES = [2, 20, 20, 1]


class Network:
    """A multilayer perceptron of even powers about the centre, whose parameters are one vector."""

    shapes = list(zip(SIZES, SIZES[1:]))

    def start(self) -> oar.Tensor:
        parts = []
        for a, b in self.shapes:
            parts += [oar.randn([a * b], dtype="float64") * math.sqrt(2 / (a + b)), oar.zeros([b], dtype="float64")]
        return oar.concat(parts)

    def __call__(self, vector: oar.Tensor, points: oar.Tensor) -> oar.Tensor:
        centred, at = 2 * points - 1, 0
        edges = ((1 - centred**2) ** 2).prod(axis=1, keepdim=True)
        value = centred**2
        for i, (a, b) in enumerate(self.shapes):
            weight, bias = vector[at : at + a * b].reshape([a, b]), vector[at + a * b : at + a * b + b]
            at += a * b + b
            value = value @ weight + bias
            if i < len(self.shapes) - 1:
                value = oar.tanh(value)
        return edges * value * 1e-3


def main() -> None:
    given = arguments(__doc__)
    oar.seed(given.seed)
    side, rounds = (10, 4) if given.quick else (16, 10)
    network = Network()
    # A quarter of the plate is enough: the network is symmetric. Chebyshev points are denser at the edges.
    line = (1 - np.cos(math.pi * (np.arange(side) + 0.5) / (2 * side))) / 2
    points = oar.to_tensor(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2))
    directions = [oar.broadcast_to(oar.to_tensor(d, dtype="float64"), points.shape).clone()
                  for d in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0])]

    def biharmonic(vector: oar.Tensor) -> oar.Tensor:
        x, y, up, down = (taylor(lambda p: network(vector, p), points, 4, d)[4] for d in directions)
        return (x + y) * (2 / 3) + (up + down) / 6

    @oar.jit.to_static
    def loss(vector: oar.Tensor) -> oar.Tensor:
        return ((biharmonic(vector) - 1.0) ** 2).mean()

    vector, losses = network.start(), []
    progress, begin = Progress(rounds, "training"), time.perf_counter()
    for step in range(1, rounds + 1):
        _, _, vector, value, *_ = minimize_lbfgs(loss, vector, max_iters=100, history_size=50, dtype="float64")
        losses.append(value.item())
        progress.update(step, f"loss {losses[-1]:.2e}")
    progress.finish()

    grid = np.linspace(0, 1, 61)
    with oar.no_grad():
        w = network(vector, oar.to_tensor(np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2))).numpy().reshape(61, 61)
    error = abs(w[30, 30] - CENTRE) / CENTRE
    figure = Figure(f"A clamped plate: centre {w[30, 30]:.6f}, series {CENTRE}, after {time.perf_counter() - begin:.0f} s", 3,
                    width=300, height=300)
    figure.heat(0, "deflection, in thousandths", w * 1e3, (0, 1), (0, 1), "x", "y")
    figure.curves(1, "along the middle and the diagonal", [("middle", grid, w[30]), ("diagonal", grid, np.diag(w))], "x", "deflection")
    figure.curves(2, "loss", [("after 100 iterations each", range(1, rounds + 1), losses)], "round", "mean square of the residual", log=True)
    figure.save(given.out / "plate.svg")
    check(error, 0.01, "relative error of the centre")


if __name__ == "__main__":
    main()
