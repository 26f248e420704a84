"""Learn the solution of Burgers' equation for every start: a Fourier neural operator.

The network maps u(x, 0) to u(x, 1) of u_t + u u_x = nu u_xx on a circle. Its layers multiply the lowest waves of the Fourier
series by learned matrices, so they know functions rather than grids: it is trained on a coarse grid and tested on a finer one
too. A spectral solver in NumPy makes the data. A training step, optimiser included, is one captured program.
"""

from __future__ import annotations

import math
import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar import nn

NU, FINE, COARSE = 0.05, 256, 64


def starts(count: int, rng: np.random.Generator) -> np.ndarray:
    """Random smooth functions on the fine grid, with a root mean square of 0.5 to 1."""
    waves = np.arange(1, 9)
    weights = np.exp(-((waves / 3.5) ** 2))
    x = np.arange(FINE) * 2 * math.pi / FINE
    a, b = rng.standard_normal((2, count, len(waves)))
    u = (a * weights) @ np.cos(waves[:, None] * x) + (b * weights) @ np.sin(waves[:, None] * x)
    return u * rng.uniform(0.5, 1, (count, 1)) / np.sqrt((u**2).mean(axis=1, keepdims=True))


def solutions(u: np.ndarray, steps: int = 500) -> np.ndarray:
    """u(x, 1): Fourier series without aliases, diffusion exactly, steps of order 4."""
    k, h = np.fft.rfftfreq(FINE, 1 / FINE), 1 / steps
    kept, half = k < FINE / 3, np.exp(-NU * k**2 * h / 2)
    factor = -0.5j * k * kept

    def slope(waves):
        return factor * np.fft.rfft(np.fft.irfft(waves, FINE) ** 2)

    waves = np.fft.rfft(u) * kept
    for _ in range(steps):
        a = slope(waves)
        b = slope(half * (waves + a * (h / 2)))
        c = slope(half * waves + b * (h / 2))
        d = slope(half * (half * waves + c * h))
        waves = half * (half * (waves + a * (h / 6)) + (b + c) * (h / 3)) + d * (h / 6)
    return np.fft.irfft(waves, FINE)


class Waves(nn.Layer):
    """A learned matrix for each of the lowest waves; a function [batch, point, channel] to another."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        normal = nn.initializer.Normal(0.0, 1 / channels)
        self.matrices = self.create_parameter([2, modes, channels, channels], default_initializer=normal)

    def forward(self, u: oar.Tensor) -> oar.Tensor:
        # norm="forward" makes coefficients of a function the same on every grid.
        waves = oar.fft.rfft(u, axis=1, norm="forward")[:, : self.modes]
        matrices = oar.complex(self.matrices[0], self.matrices[1])
        mixed = oar.einsum("bki,kio->bko", waves, matrices)
        return oar.fft.irfft(mixed, n=u.shape[1], axis=1, norm="forward")


class Operator(nn.Layer):
    def __init__(self, channels: int, modes: int, depth: int) -> None:
        super().__init__()
        self.lift = nn.Linear(1, channels)
        self.waves = nn.LayerList([Waves(channels, modes) for _ in range(depth)])
        self.points = nn.LayerList([nn.Linear(channels, channels) for _ in range(depth)])
        self.lower = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, 1))

    def forward(self, u: oar.Tensor) -> oar.Tensor:
        value = self.lift(u.unsqueeze(-1))
        for i, (waves, points) in enumerate(zip(self.waves, self.points)):
            value = waves(value) + points(value)
            if i < len(self.waves) - 1:
                value = nn.functional.gelu(value)
        return self.lower(value).squeeze(-1)


def errors_of(found: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The relative error of each function."""
    return np.linalg.norm(found - reference, axis=1) / np.linalg.norm(reference, axis=1)


def main() -> None:
    given = arguments(__doc__)
    oar.seed(given.seed)
    rng = np.random.default_rng(given.seed)
    count, epochs, batch = (256, 30, 16) if given.quick else (1024, 60, 16)
    u = starts(count + 100, rng)
    target = solutions(u)
    every = FINE // COARSE
    inputs = oar.to_tensor(u[:count, ::every].astype("float32"))
    outputs = oar.to_tensor(target[:count, ::every].astype("float32"))

    network = Operator(channels=24, modes=16, depth=4)
    total = epochs * (count // batch)
    schedule = oar.optimizer.lr.CosineAnnealingDecay(4e-3, T_max=total, eta_min=1e-5)
    optimizer = oar.optimizer.Adam(schedule, parameters=network.parameters())

    @oar.jit.to_static
    def train_step(u: oar.Tensor, target: oar.Tensor) -> oar.Tensor:
        loss = (oar.norm(network(u) - target, axis=1) / oar.norm(target, axis=1)).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    progress, losses, begin = Progress(epochs, "epochs"), [], time.perf_counter()
    for epoch in range(1, epochs + 1):
        parts = []
        for rows in oar.to_tensor(rng.permutation(count)).reshape([-1, batch]):
            parts.append(train_step(inputs[rows], outputs[rows]))
            schedule.step()
        losses.append(oar.stack(parts).mean().item())
        progress.update(epoch, f"error {losses[-1]:.2%}")
    progress.finish()
    seconds = time.perf_counter() - begin

    network.eval()
    tests = {}
    with oar.no_grad():
        for points in (COARSE, FINE):
            step = FINE // points
            found = network(oar.to_tensor(u[count:, ::step].astype("float32"))).numpy()
            tests[points] = (found, errors_of(found, target[count:, ::step]))
    coarse, fine = float(tests[COARSE][1].mean()), float(tests[FINE][1].mean())

    x = np.arange(FINE) * 2 * math.pi / FINE
    order = np.argsort(tests[FINE][1])
    figure = Figure(f"A neural operator for Burgers' equation: error {coarse:.2%} at {COARSE} points, {fine:.2%} at {FINE}; "
                    f"{total / seconds:.0f} steps/s", 3)
    for panel, (which, words) in enumerate([(50, "a test of median error"), (-1, "the worst test of 100")]):
        row = order[which]
        figure.curves(panel, f"{words}: {tests[FINE][1][row]:.2%}", [
            ("u(x, 0)", x, u[count + row]), ("u(x, 1), solver", x[::4], target[count + row, ::4], "points"),
            (f"u(x, 1), network, {FINE} points", x, tests[FINE][0][row])], "x", "u")
    figure.curves(2, "mean relative error", [
        (f"training, {COARSE} points", range(1, epochs + 1), losses),
        (f"test, {COARSE} points", [1, epochs], [coarse, coarse]), (f"test, {FINE} points", [1, epochs], [fine, fine], "points")],
        "epoch", "relative error", log=True)
    figure.save(given.out / "neural_operator.svg")
    check(coarse, 0.05 if given.quick else 0.01, f"relative error on unseen functions, {COARSE} points")
    check(fine, 0.05 if given.quick else 0.01, f"relative error at {FINE} points, which training did not have")


if __name__ == "__main__":
    main()
