"""Send a quantum wave packet through a barrier, and choose the barrier by derivatives.

The state is a complex tensor that follows Schroedinger's equation, i psi_t = -psi_xx / 2 + V psi, on a grid. The
probability to pass the barrier is compared with the exact one, the average of the known transmission of plane waves. Then
Newton's method, with the derivative of the whole evolution by the height of the barrier, finds the height that lets half
of the packet through.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar.science import odeint, quad

LENGTH, WIDTH, MOMENTUM, SPREAD, START = 120.0, 1.0, 1.5, 6.0, -35.0


def transmission(height: float) -> float:
    """The exact probability: that of each plane wave, weighted with the packet's momenta."""
    def integrand(k: oar.Tensor) -> oar.Tensor:
        weight = oar.exp(-2 * SPREAD**2 * (k - MOMENTUM) ** 2) * SPREAD * math.sqrt(2 / math.pi)
        energy = k * k / 2
        inside = oar.sqrt(oar.cast(2 * (energy - height), "complex128"))  # imaginary below the barrier
        wave = oar.real((oar.sin(inside * WIDTH) / inside) ** 2) * 2  # a real number for both
        return weight / (1 + height**2 * wave / (4 * energy))

    return quad(integrand, 0.05, MOMENTUM + 8 / SPREAD)[0].item()


class Grid:
    def __init__(self, points: int) -> None:
        """The edges of the barrier are edges of cells if 120 divides the number of points."""
        self.step = LENGTH / points
        self.x = (np.arange(points) + 0.5) * self.step - LENGTH / 2
        packet = np.exp(-((self.x - START) ** 2) / (4 * SPREAD**2) + 1j * MOMENTUM * self.x)
        self.start = oar.to_tensor(packet / math.sqrt((abs(packet) ** 2).sum() * self.step))
        self.barrier = oar.to_tensor((abs(self.x) < WIDTH / 2).astype("float64"))

    def field(self, height: oar.Tensor):
        def slope(t, psi: oar.Tensor) -> oar.Tensor:
            near = oar.roll(psi, 1) + oar.roll(psi, -1)
            far = oar.roll(psi, 2) + oar.roll(psi, -2)
            curvature = (16 * near - far - 30 * psi) / (12 * self.step**2)
            return (curvature / 2 - oar.cast(height * self.barrier, "complex128") * psi) * 1j

        return slope

    def evolve(self, height: oar.Tensor, times: np.ndarray) -> oar.Tensor:
        return odeint(self.field(height), self.start, times, method="rk4", step_size=0.9 * self.step**2)

    def passed(self, psi: oar.Tensor) -> oar.Tensor:
        """The probability to be right of the barrier."""
        right = oar.to_tensor((self.x > WIDTH / 2).astype("float64"))
        return (oar.abs(psi) ** 2 * right).sum() * self.step


def main() -> None:
    given = arguments(__doc__)
    grid = Grid(480 if given.quick else 720)
    end = 50.0
    begin = time.perf_counter()

    times = np.linspace(0.0, end, 41)
    with oar.no_grad():
        path = grid.evolve(oar.to_tensor(1.2, dtype="float64"), times)
    density = (oar.abs(path) ** 2).numpy()
    drift = abs(density[-1].sum() * grid.step - 1)
    found, exact = grid.passed(path[-1]).item(), transmission(1.2)

    height, rounds, history = 1.2 if given.quick else 0.6, 6, []
    progress = Progress(rounds, "Newton")
    for step in range(1, rounds + 1):
        variable = oar.to_tensor(height, dtype="float64", stop_gradient=False)
        probability = grid.passed(grid.evolve(variable, np.array([0.0, end]))[-1])
        (slope,) = oar.grad(probability, variable)
        history.append((height, probability.item()))
        progress.update(step, f"height {height:.6f}, probability {probability.item():.6f}")
        if abs(probability.item() - 0.5) < 1e-9:
            break
        height -= (probability.item() - 0.5) / slope.item()
    progress.finish()

    heights = np.linspace(0.3, 2.0, 35)
    figure = Figure(f"A wave packet at a barrier: {found:.4f} passes, exactly {exact:.4f}; half passes at height "
                    f"{height:.4f}; {time.perf_counter() - begin:.0f} s", 3)
    shown = slice(None, None, density.shape[1] // 120)
    figure.heat(0, "square root of the probability density", np.sqrt(density[:, shown]), (-LENGTH / 2, LENGTH / 2), (0, end), "x, atomic units", "t, atomic units")
    figure.curves(1, "before, at and after the barrier", [
        *((f"t = {times[i]:.0f}", grid.x, density[i]) for i in (0, 19, 40)),
        ("a fifth of the real part, t = 50", grid.x, path[-1].numpy().real * 0.2)], "x, atomic units", "probability density")
    figure.curves(2, "probability to pass", [("exact", heights, [transmission(h) for h in heights]),
                                             ("Newton's steps", *zip(*history), "points")], "height of the barrier", "probability")
    figure.save(given.out / "quantum.svg")
    check(drift, 1e-3, "change of the norm")
    check(abs(found - exact), 0.01, "error of the transmission")
    check(abs(history[-1][1] - 0.5), 1e-6, "distance from one half")


if __name__ == "__main__":
    main()
