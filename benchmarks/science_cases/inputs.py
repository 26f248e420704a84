"""What every framework gets: numbers, sizes, and the names of the cases."""

from __future__ import annotations

import math

import numpy as np

NU, POINTS, BURGERS_SIZES = 0.05 / math.pi, 2000, [2, 24, 24, 24, 1]
HESSIAN_SIZES, SAMPLES = [8, 25, 25, 5], 64
GRID, VISCOSITY, STEP, STEPS = 128, 1e-3, 0.01, 10
WIDTH, TAYLOR_POINTS, ORDERS, NESTED_ORDERS = 64, 256, 8, 5


def layers(sizes: list[int], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((a, b)) / math.sqrt(a), 0.1 * rng.standard_normal(b)) for a, b in zip(sizes, sizes[1:])]


def burgers_points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.uniform(-1, 1, (POINTS, 1)), rng.uniform(0, 1, (POINTS, 1))


def hessian_vector() -> np.ndarray:
    return np.concatenate([part.ravel() for pair in layers(HESSIAN_SIZES, 2) for part in pair])


def hessian_parts() -> list[tuple[int, int, tuple[int, ...]]]:
    """Where the parameters are in the vector: first, last, shape."""
    found, at = [], 0
    for pair in layers(HESSIAN_SIZES, 2):
        for part in pair:
            found.append((at, at + part.size, part.shape))
            at += part.size
    return found


def hessian_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((SAMPLES, HESSIAN_SIZES[0])), rng.standard_normal((SAMPLES, HESSIAN_SIZES[-1]))


def flow() -> dict[str, np.ndarray]:
    """Factors of a spectral solver for vorticity, and waves to begin with."""
    ky, kx = np.meshgrid(np.fft.fftfreq(GRID, 1 / GRID), np.fft.rfftfreq(GRID, 1 / GRID), indexing="ij")
    square = kx**2 + ky**2
    inverse = 1 / np.where(square == 0, np.inf, square)
    kept = np.maximum(abs(kx), abs(ky)) < GRID / 3
    start = np.fft.rfft2(np.random.default_rng(4).standard_normal((GRID, GRID))) * np.exp(-square / 30) * kept
    return {"fields": np.stack([1j * ky * inverse, -1j * kx * inverse, 1j * kx, 1j * ky]),
            "kept": -kept.astype("complex128"), "half": np.exp(-VISCOSITY * square * STEP / 2).astype("complex128"), "start": start}


def taylor_weights() -> list[np.ndarray]:
    return [w for w, _ in layers([1, WIDTH, WIDTH, WIDTH, 1], 0)]


def taylor_points() -> np.ndarray:
    return np.linspace(-1, 1, TAYLOR_POINTS)[:, None]


def runge_kutta(advection, half, waves):
    """A step that all frameworks write the same way, with operators only."""
    a = advection(waves)
    b = advection(half * (waves + a * (STEP / 2)))
    c = advection(half * waves + b * (STEP / 2))
    d = advection(half * (half * waves + c * STEP))
    return half * (half * (waves + a * (STEP / 6)) + (b + c) * (STEP / 3)) + d * (STEP / 6)
