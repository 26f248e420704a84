"""What comparisons with the frameworks of trained networks share."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SIDE = Path(__file__).with_name("foreign_side.py")


def find(name: str) -> str:
    folder = os.environ.get("OAR_FOREIGN_MODELS")
    if not folder:
        pytest.skip("OAR_FOREIGN_MODELS is not set")
    found = sorted(Path(folder).rglob(name)) if folder else []
    if not found:
        pytest.skip(f"{name} is not in OAR_FOREIGN_MODELS")
    return str(found[0])


def theirs(kind, inputs, *arguments, tmp_path, variable="OAR_FOREIGN_PYTHON", module=None):
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} is not set")
    if module and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode != 0:
        pytest.skip(f"{variable} has no {module}")
    np.savez(tmp_path / "in.npz", **{f"x{i}": array for i, array in enumerate(inputs)})
    command = [python, str(SIDE), kind, str(tmp_path / "in.npz"), str(tmp_path / "out.npz"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(np.load(tmp_path / "out.npz"))


def close(ours, wanted, most, name):
    """The largest difference, relative to the largest number."""
    assert ours.shape == wanted.shape, (name, ours.shape, wanted.shape)
    difference = np.abs(ours.astype("float64") - wanted).max() / max(np.abs(wanted).max(), 1e-6)
    print(f"{name}: shape {list(wanted.shape)}, largest {np.abs(wanted).max():.4g}, difference {difference:.2g}", file=sys.stderr)
    assert difference <= most, (name, difference)


def random_inputs(model, sizes, seed=0):
    chance = np.random.default_rng(seed)
    for name in model.inputs:
        shape = [sizes[min(axis, len(sizes) - 1)] if isinstance(size, str) else size for axis, size in enumerate(model.shapes[name])]
        values = chance.integers(0, 256, shape) if model.dtypes[name] == "uint8" else chance.uniform(0, 1, shape)
        yield values.astype(model.dtypes[name])


def compare(model, inputs, wanted, most, name):
    for i, out in enumerate(model(*inputs)):
        assert out.numpy().dtype == wanted[f"y{i}"].dtype
        close(out.numpy(), wanted[f"y{i}"], most, f"{name} {model.outputs[i]}")
