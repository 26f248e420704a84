"""Find out how a flow began from how it ended: an optimisation through the Navier-Stokes equations.

The vorticity w of a flow in a periodic square follows w_t + u . grad w = nu laplace w, with the velocity u that belongs to w.
The solver uses Fourier series: products at the points of a grid, derivatives as factors, the upper third of the waves set to
zero so that products have no aliases, viscosity exactly, and steps of order 4. It is checked against the exact decay of Taylor
and Green's vortices, and against a solver in NumPy that is written for velocities instead. The final state of that solver, with
noise, is the data: L-BFGS changes the initial vorticity until the flow ends there. Its gradients go back through all steps.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar.science import minimize_lbfgs

NOISE = 0.01  # of the data, relative to their root mean square


class Flow:
    """Vorticity at n x n points of a square of side 2 pi, with waves of real transforms: all along y, half along x."""

    def __init__(self, n: int, viscosity: float, step: float) -> None:
        self.n, self.viscosity, self.step = n, viscosity, step
        ky, kx = np.meshgrid(np.fft.fftfreq(n, 1 / n), np.fft.rfftfreq(n, 1 / n), indexing="ij")
        square = kx**2 + ky**2
        inverse = 1 / np.where(square == 0, np.inf, square)
        # From the vorticity to the velocity (u, v) and to the gradient of the vorticity, in one product.
        self.fields = oar.to_tensor(np.stack([1j * ky * inverse, -1j * kx * inverse, 1j * kx, 1j * ky]))
        self.kept = oar.to_tensor(-((np.maximum(abs(kx), abs(ky)) < n / 3).astype("complex128")))
        self.decay = oar.to_tensor(np.exp(-viscosity * square * step / 2).astype("complex128"))  # of half a step

    def advection(self, waves: oar.Tensor) -> oar.Tensor:
        u, v, along_x, along_y = oar.fft.irfft2(self.fields * waves, s=[self.n, self.n])
        return self.kept * oar.fft.rfft2(u * along_x + v * along_y)

    def advance(self, waves: oar.Tensor) -> oar.Tensor:
        """A step of Runge and Kutta for the vorticity without its decay."""
        h, half = self.step, self.decay
        a = self.advection(waves)
        b = self.advection(half * (waves + a * (h / 2)))
        c = self.advection(half * waves + b * (h / 2))
        d = self.advection(half * (half * waves + c * h))
        return half * (half * (waves + a * (h / 6)) + (b + c) * (h / 3)) + d * (h / 6)


def velocity_solver(vorticity: np.ndarray, viscosity: float, end: float, steps: int) -> np.ndarray:
    """The reference: velocities, a projection instead of a pressure, complex transforms, viscosity as one more force."""
    n = len(vorticity)
    k = np.fft.fftfreq(n, 1 / n)
    waves = np.stack(np.meshgrid(k, k, indexing="xy"))  # along x, along y
    square = (waves**2).sum(0)
    kept = np.abs(waves).max(0) < n / 3

    def curl(velocity):
        return 1j * (waves[0] * velocity[1] - waves[1] * velocity[0])

    def slope(velocity):
        u, v = np.fft.ifft2(velocity).real
        spin = np.fft.ifft2(curl(velocity)).real
        force = np.fft.fft2(np.stack([v * spin, -u * spin])) * kept
        pressure = (waves * force).sum(0) / np.where(square == 0, 1, square)
        return force - waves * pressure - viscosity * square * velocity

    potential = np.fft.fft2(vorticity) / np.where(square == 0, np.inf, square)
    velocity, h = 1j * np.stack([waves[1], -waves[0]]) * potential, end / steps
    for _ in range(steps):
        a = slope(velocity)
        b = slope(velocity + a * h / 2)
        c = slope(velocity + b * h / 2)
        velocity = velocity + (a + 2 * b + 2 * c + slope(velocity + c * h)) * h / 6
    return np.fft.ifft2(curl(velocity)).real


def refined(coarse: oar.Tensor, n: int) -> oar.Tensor:
    """The waves on n x n points of a field that is given on fewer points, without the highest waves of those."""
    m = coarse.shape[0]
    waves = oar.fft.rfft2(coarse) * (n / m) ** 2
    upper, lower = waves[: m // 2, : m // 2], waves[m // 2 + 1 :, : m // 2]
    between = oar.zeros([n - m + 1, m // 2], dtype="complex128")
    return oar.concat([oar.concat([upper, between, lower]), oar.zeros([n, n // 2 + 1 - m // 2], dtype="complex128")], axis=1)


def whirls(m: int, rng: np.random.Generator) -> np.ndarray:
    """A random vorticity at m x m points: waves around number 3, root mean square 1."""
    k = np.hypot(*np.meshgrid(np.fft.fftfreq(m, 1 / m), np.fft.rfftfreq(m, 1 / m), indexing="ij"))
    waves = np.fft.rfft2(rng.standard_normal((m, m))) * k**2 * np.exp(-((k / 2.5) ** 2)) * (k < m / 2 - 1)
    values = np.fft.irfft2(waves, s=(m, m))
    return values / np.sqrt((values**2).mean())


def error_of(value: np.ndarray, reference: np.ndarray) -> float:
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))


def main() -> None:
    given = arguments(__doc__)
    rng = np.random.default_rng(given.seed)
    n, steps, end, iterations = (32, 20, 1.0, 40) if given.quick else (64, 48, 2.4, 250)
    m = 16  # the unknowns are the vorticity at m x m points
    flow = Flow(n, 0.005, end / steps)
    advance = oar.jit.to_static(flow.advance)

    def solve(waves: oar.Tensor) -> oar.Tensor:
        for _ in range(steps):
            waves = advance(waves)
        return oar.fft.irfft2(waves, s=[n, n])

    begin = time.perf_counter()
    x = np.arange(n) * 2 * math.pi / n
    vortices = 2 * np.cos(x) * np.cos(x)[:, None]
    true = refined(oar.to_tensor(whirls(m, rng)), n).numpy()
    start = np.fft.irfft2(true, s=(n, n))
    with oar.no_grad():
        decayed = solve(oar.fft.rfft2(oar.to_tensor(vortices))).numpy()
        final = solve(oar.fft.rfft2(oar.to_tensor(start))).numpy()
    decay_error = error_of(decayed, vortices * math.exp(-2 * flow.viscosity * end))
    reference = velocity_solver(start, flow.viscosity, end, 4 * steps)
    solver_error = error_of(final, reference)
    data = oar.to_tensor(reference + NOISE * np.sqrt((reference**2).mean()) * rng.standard_normal((n, n)))

    progress, losses, errors = Progress(iterations, "L-BFGS"), [], []

    def loss(values: oar.Tensor) -> oar.Tensor:
        waves = refined(values.reshape([m, m]), n)
        value = ((solve(waves) - data) ** 2).mean()
        losses.append(value.item())
        errors.append(error_of(waves.numpy(), true))
        progress.update(min(len(losses), iterations), f"loss {losses[-1]:.2e}, error {errors[-1]:.2%}")
        return value

    guess = data[:: n // m, :: n // m].flatten()
    values = minimize_lbfgs(loss, guess, max_iters=iterations, history_size=30, dtype="float64")[2]
    progress.finish()
    found = np.fft.irfft2(refined(values.reshape([m, m]), n).numpy(), s=(n, n))
    error = error_of(found, start)

    square = (0.0, 2 * math.pi)
    figure = Figure(f"The beginning of a flow from its end: error {error:.1%} with {NOISE:.0%} noise, {n} x {n} points, "
                    f"{time.perf_counter() - begin:.0f} s", 4, width=270, height=270)
    figure.heat(0, "vorticity at t = 0, true", start, square, square, "x", "y")
    figure.heat(1, f"the data: t = {end:g}, with noise", data.numpy(), square, square, "x", "y")
    figure.heat(2, "vorticity at t = 0, found", found, square, square, "x", "y")
    calls = np.arange(1, len(losses) + 1)
    figure.curves(3, "convergence", [("error of the beginning", calls, errors), ("loss", calls, losses)],
                  "evaluation of loss and gradient", "relative error, loss", log=True)
    figure.save(given.out / "navier_stokes.svg")
    check(decay_error, 1e-12, "error of the decay of Taylor and Green's vortices")
    check(solver_error, 1e-5, "difference from the solver for velocities")
    check(error, 0.1 if given.quick else 0.02, "relative error of the beginning")


if __name__ == "__main__":
    main()
