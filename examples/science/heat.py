"""Find out what a rod is made of from its temperatures: an inverse problem with uncertainty.

The rod is heated at one end. Its conductivity varies along it and is unknown; eight thermometers with noise observe the
temperature. The most probable conductivity, with a prior that prefers smooth ones, is found by Newton's method: steps
come from conjugate gradients that use products of the Hessian with vectors, so the Hessian is never formed. At the
optimum the inverse of the Hessian, column by column, gives the uncertainty.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar.science import cg

NOISE = 0.01


class Rod:
    """A rod of cells that starts cold; the left end receives heat, the right end is kept cold.

    A step of time is a product with a matrix. The matrix of the 2^doublings steps between two observations is that
    matrix squared so many times. One more row and column hold the heat that comes in.
    """

    def __init__(self, cells: int, doublings: int) -> None:
        self.cells, self.doublings, dx = cells, doublings, 1 / cells
        self.step = 0.16 * dx**2  # stable for conductivities up to 3
        self.sensors = np.linspace(1, cells - 2, 8).round().astype("int64")
        self.walls = np.arange(1, cells) * dx
        difference = np.zeros((cells - 1, cells + 1))
        difference[np.arange(cells - 1), np.arange(cells - 1)] = 1 / dx
        difference[np.arange(cells - 1), np.arange(1, cells)] = -1 / dx
        fixed = np.zeros((cells + 1, cells + 1))
        fixed[0, cells] = 1 / dx
        fixed[cells - 1, cells - 1] = -2 / dx**2
        self.difference, self.fixed = oar.to_tensor(difference), oar.to_tensor(fixed)
        start = np.zeros(cells + 1)
        start[cells] = 1.0
        self.start = oar.to_tensor(start)

    def observe(self, log_k: oar.Tensor) -> oar.Tensor:
        """Temperatures of the sensors over time for conductivities exp(log_k) at the walls between cells."""
        rate = self.fixed - self.difference.t() @ (oar.exp(log_k).unsqueeze(1) * self.difference)
        steps = oar.eye(self.cells + 1, dtype="float64") + rate * self.step
        for _ in range(self.doublings):
            steps = steps @ steps
        u, seen = self.start, []
        for _ in range(40):
            u = steps @ u
            seen.append(u)
        return oar.stack(seen)[:, self.sensors]


def main() -> None:
    given = arguments(__doc__, seed=1)
    rng = np.random.default_rng(given.seed)
    rod = Rod(16, 4) if given.quick else Rod(32, 6)
    true = 0.6 * np.sin(2 * math.pi * rod.walls) - 0.5 * (rod.walls > 0.6)
    with oar.no_grad():
        data = rod.observe(oar.to_tensor(true))
    data = data + oar.to_tensor(rng.normal(0, NOISE, data.shape))

    @oar.jit.to_static
    def energy(log_k: oar.Tensor) -> oar.Tensor:
        misfit = ((rod.observe(log_k) - data) / NOISE) ** 2
        rough = (log_k[1:] - log_k[:-1]) / 0.35
        return (misfit.sum() + (rough**2).sum() + (log_k**2).sum() / 4) / 2

    def gradient(at: oar.Tensor):
        leaf = at.detach()
        leaf.stop_gradient = False
        value = energy(leaf)
        (slope,) = oar.grad(value, leaf, create_graph=True)

        def product(v: oar.Tensor) -> oar.Tensor:
            """The Hessian times v."""
            return oar.grad(slope, leaf, v, retain_graph=True)[0]

        return value.item(), slope.detach(), product

    begin, log_k, products, values = time.perf_counter(), oar.zeros([rod.cells - 1], "float64"), 0, []
    rounds = 15
    progress = Progress(rounds, "Newton")
    for step in range(1, rounds + 1):
        value, slope, product = gradient(log_k)
        values.append(value)
        progress.update(step, f"energy {value:.2f}, gradient {float(slope.norm()):.1e}")
        if float(slope.norm()) < 1e-3:
            break
        try:
            found = cg(product, -slope, tol=1e-4)
        except ValueError:  # not convex here yet: the steepest descent of a bounded length
            move = -slope / float(slope.norm())
        else:
            move, products = found.x, products + found.iterations
        length = 1.0
        with oar.no_grad():
            while energy(log_k + move * length).item() > value and length > 1e-4:
                length /= 2
        log_k = log_k + move * length
    progress.finish()

    _, _, product = gradient(log_k)
    units = oar.eye(rod.cells - 1, dtype="float64")
    deviation = np.sqrt([float(cg(product, units[i], tol=1e-6).x[i]) for i in range(rod.cells - 1)])
    estimate = log_k.numpy()
    error = float(np.sqrt(np.mean((estimate - true) ** 2)))
    inside = float(np.mean(np.abs(estimate - true) <= 2 * deviation))

    figure = Figure(f"Conductivity of a rod from 8 thermometers: {inside:.0%} within two standard deviations, "
                    f"{products} Hessian products, {time.perf_counter() - begin:.0f} s", 2, width=470)
    figure.curves(0, "logarithm of the conductivity", [
        ("two deviations", rod.walls, estimate - 2 * deviation, "band", estimate + 2 * deviation),
        ("true", rod.walls, true), ("most probable", rod.walls, estimate)], "x", "log k")
    with oar.no_grad():
        fitted = rod.observe(log_k).numpy()
    moments = np.arange(1, len(fitted) + 1)
    figure.curves(1, "temperatures of some thermometers", [
        *((f"fit {i}", moments, fitted[:, i]) for i in (0, 3, 6)),
        *((f"observed {i}", moments, data.numpy()[:, i], "points") for i in (0, 3, 6))], "observation", "temperature")
    figure.save(given.out / "heat.svg")
    check(error, 0.2, "root mean square error of the logarithm")
    check(1 - inside, 0.15, "share outside of two standard deviations")


if __name__ == "__main__":
    main()
