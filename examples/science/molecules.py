"""Molecular dynamics whose forces are gradients: a drop of a Lennard-Jones liquid in a periodic box.

Only the energy is written down; the forces are its gradient, and both are one captured program. The energy must be
conserved, and the structure of the liquid shows in the distances between atoms.
"""

from __future__ import annotations

import time

import numpy as np
from figure import Figure, Progress, arguments, check

import oar

DENSITY, TEMPERATURE, CUT, STEP = 0.8, 1.0, 2.5, 0.002


class Box:
    def __init__(self, side: int, rng: np.random.Generator) -> None:
        """Atoms on a cubic lattice, with random velocities."""
        self.count = side**3
        self.length = (self.count / DENSITY) ** (1 / 3)
        lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
        self.start = oar.to_tensor((lattice + 0.5) * self.length / side)
        velocity = rng.normal(0, TEMPERATURE**0.5, (self.count, 3))
        self.velocity = oar.to_tensor(velocity - velocity.mean(axis=0))
        first, second = np.triu_indices(self.count, 1)
        self.first, self.second = oar.to_tensor(first), oar.to_tensor(second)

    def squares(self, x: oar.Tensor) -> oar.Tensor:
        """Squared distances of all pairs, to the nearest image."""
        between = oar.gather(x, self.first) - oar.gather(x, self.second)
        between = between - self.length * oar.round(between / self.length)
        return (between**2).sum(axis=1)

    def energy(self, x: oar.Tensor) -> oar.Tensor:
        """Of all pairs; shifted so that energy and force are continuous at the cut."""
        square = self.squares(x)
        near = square < CUT**2
        square = oar.where(near, square, oar.full_like(square, CUT**2))
        inverse = 1 / square**3
        at_cut = 4 * (CUT**-12 - CUT**-6)
        slope = 4 * (-12 * CUT**-13 + 6 * CUT**-7)
        pairs = 4 * (inverse**2 - inverse) - at_cut - slope * (oar.sqrt(square) - CUT)
        return oar.where(near, pairs, oar.zeros_like(pairs)).sum()


def main() -> None:
    given = arguments(__doc__)
    rng = np.random.default_rng(given.seed)
    box = Box(4 if given.quick else 6, rng)
    steps = 400 if given.quick else 2500

    @oar.jit.to_static
    def energy_and_gradient(x: oar.Tensor):
        energy = box.energy(x)
        (gradient,) = oar.grad(energy, x)
        return energy.detach(), gradient

    def evaluate(x: oar.Tensor):
        x.stop_gradient = False
        energy, gradient = energy_and_gradient(x)
        return energy.item(), gradient.detach()

    x, v = box.start, box.velocity
    _, gradient = evaluate(x)
    potentials, kinetics, distances = [], [], []
    progress, begin = Progress(steps, "steps"), time.perf_counter()
    for i in range(1, steps + 1):
        v = v - gradient * (STEP / 2)  # velocity Verlet
        x = x.detach() + v * STEP
        potential, gradient = evaluate(x)
        v = v - gradient * (STEP / 2)
        potentials.append(potential)
        kinetics.append((v**2).sum().item() / 2)
        if i > steps // 2 and i % 10 == 0:
            distances.append(np.sqrt(box.squares(x).numpy()))
        progress.update(i, f"energy {potentials[-1] + kinetics[-1]:.5f}")
    progress.finish()
    seconds = time.perf_counter() - begin

    total = np.array(potentials) + np.array(kinetics)
    drift = float(np.abs(total - total[0]).max() / np.mean(kinetics))
    edges = np.linspace(0.5, box.length / 2, 80)
    counts = np.mean([np.histogram(d, edges)[0] for d in distances], axis=0)
    shells = 4 / 3 * np.pi * np.diff(edges**3) * DENSITY * (box.count - 1) / 2
    radial, middles = counts / shells, (edges[1:] + edges[:-1]) / 2
    momentum = float(np.abs(v.numpy().sum(axis=0)).max())

    figure = Figure(f"{box.count} atoms: energy kept to {drift:.1e} of the kinetic energy, {steps / seconds:,.0f} steps/s", 2,
                    width=470)
    moments = np.arange(1, steps + 1) * STEP
    figure.curves(0, "energy per atom", [("total", moments, total / box.count), ("potential", moments, np.array(potentials) / box.count),
                                         ("kinetic", moments, np.array(kinetics) / box.count)], "time, units of Lennard and Jones", "energy / epsilon")
    figure.curves(1, "pairs at a distance, relative to a gas", [("g(r)", middles, radial)], "distance / sigma", "g")
    figure.save(given.out / "molecules.svg")
    check(drift, 2e-3, "largest change of the energy, relative to the kinetic")
    check(momentum, 1e-9, "total momentum")
    check(abs(float(middles[radial.argmax()]) - 1.08), 0.12, "distance of the first shell from 1.08")


if __name__ == "__main__":
    main()
