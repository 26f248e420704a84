"""Learn the equation of motion of a damped oscillator from noisy observations.

A network gives dy/dt; `odeint` integrates it, and gradients come from the adjoint equation. The learned equation is then
integrated twice as long as the data, from a start that it has not seen.
"""

from __future__ import annotations

import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar
from oar import nn
from oar.science import odeint


def truth(t, y: oar.Tensor) -> oar.Tensor:
    """A pendulum with friction."""
    return oar.stack([y[:, 1], -oar.sin(y[:, 0]) * 2 - 0.25 * y[:, 1]], axis=1)


class Field(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t, y: oar.Tensor) -> oar.Tensor:
        return self.net(y)


def main() -> None:
    given = arguments(__doc__)
    oar.seed(given.seed)
    rng = np.random.default_rng(given.seed)
    steps = 300 if given.quick else 1000
    times = np.linspace(0.0, 2.5, 26)
    starts = oar.to_tensor(rng.uniform(-2, 2, (24, 2)).astype("float32"))
    with oar.no_grad():
        clean = odeint(truth, starts, times, rtol=1e-6, atol=1e-7)
    data = clean + oar.to_tensor(rng.normal(0, 0.03, clean.shape).astype("float32"))

    field = Field()
    schedule = oar.optimizer.lr.CosineAnnealingDecay(1e-2, T_max=steps, eta_min=1e-4)
    optimizer = oar.optimizer.Adam(schedule, parameters=field.parameters())
    progress, losses, begin = Progress(steps, "training"), [], time.perf_counter()
    for step in range(1, steps + 1):
        # Short pieces of the observed paths are easier to fit than whole ones.
        first = int(rng.integers(0, len(times) - 12))
        piece = data[first : first + 12]
        found = odeint(field, piece[0], times[first : first + 12], gradient="adjoint", method="rk4")
        loss = ((found - piece) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(loss.item())
        progress.update(step, f"loss {np.mean(losses[-20:]):.2e}")
    progress.finish()

    later = np.linspace(0.0, 5.0, 101)
    unseen = oar.to_tensor([[1.5, 0.5]])
    with oar.no_grad():
        expected = odeint(truth, unseen, later, rtol=1e-6, atol=1e-7).numpy()[:, 0]
        found = odeint(field, unseen, later, rtol=1e-5, atol=1e-6).numpy()[:, 0]
    error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    figure = Figure(f"A learned equation of motion: error {error:.1%} on an unseen path, after "
                    f"{time.perf_counter() - begin:.0f} s", 3)
    figure.curves(0, "an unseen start, twice as long as the data", [
        ("angle, true", later, expected[:, 0]), ("angle, learned", later, found[:, 0]),
        ("speed, true", later, expected[:, 1]), ("speed, learned", later, found[:, 1])], "t", "angle, speed")
    figure.curves(1, "in the plane of angle and speed", [
        ("true", expected[:, 0], expected[:, 1]), ("learned", found[:, 0], found[:, 1]),
        ("observations", data.numpy()[:, :6, 0].ravel(), data.numpy()[:, :6, 1].ravel(), "points")], "angle", "speed")
    smooth = np.convolve(losses, np.ones(20) / 20, "valid")
    figure.curves(2, "loss, mean of 20 steps", [("training", range(len(smooth)), smooth)], "step", "mean square error", log=True)
    figure.save(given.out / "neural_ode.svg")
    check(error, 0.15 if given.quick else 0.05, "relative error on the unseen path")


if __name__ == "__main__":
    main()
