"""The scripts in examples/paddle_scripts, run by Oar and by Paddle from the same weights: the same losses and results."""

from __future__ import annotations

import os

import numpy as np
import pytest

from peers.counts import COMPARED, count
from script_runs import OAR, SCRIPTS, run

PADDLE = os.environ.get("OAR_PADDLE", "")

if not os.access(PADDLE, os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)

# Per dtype the number of steps, the largest relative difference, and whose run writes the initial weights.
CURVES = {"float32": (20, 1e-3, "Paddle"), "float64": (100, 1e-8, "Oar")}


def relative(mine: float | np.ndarray, theirs: float | np.ndarray) -> float:
    """The largest difference, relative to each number; in a curve that changes its sign, where a number may be next to
    nothing, relative to the largest one."""
    mine, theirs = np.atleast_1d(mine), np.atleast_1d(theirs)
    assert mine.shape == theirs.shape and np.isfinite(theirs).all()
    sizes = np.maximum(np.abs(theirs), 1e-12)
    if theirs.min() < 0 < theirs.max():
        sizes = np.full_like(sizes, sizes.max())
    return float((np.abs(mine - theirs) / sizes).max())


@pytest.mark.parametrize("dtype", CURVES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_same_curve(name, dtype, tmp_path, record_property):
    steps, most, writer = CURVES[dtype]
    commands = {"Paddle": [PADDLE], "Oar": OAR}
    weights = tmp_path / f"{name}.pdparams"
    results = {}
    for library in sorted(commands, key=lambda library: library != writer):
        results[library] = run(commands[library], name, steps, dtype, weights)
        assert weights.exists()
    mine, theirs = results["Oar"], results["Paddle"]
    assert mine.keys() == theirs.keys() and len(theirs["losses"]) >= steps
    assert len({f"{loss:.3g}" for loss in theirs["losses"]}) > 1, "the losses do not change"
    differences = {key: relative(mine[key], theirs[key]) for key in theirs}
    record_property("difference", differences["losses"])
    print(f"| `{name}` | {dtype} | {theirs['losses'][0]:.4g} | {theirs['losses'][-1]:.4g} | {differences['losses']:.1e} |")
    assert max(differences.values()) <= most, differences
    COMPARED.setdefault("version", "Paddle")
    count("curves")
