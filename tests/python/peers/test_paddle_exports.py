"""Inference models that Paddle exports, run by Oar."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import oar
from peers import paddle_exports
from peers.counts import COMPARED, count

if not os.access(os.environ.get("OAR_PADDLE", ""), os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)


@pytest.fixture(scope="module")
def exporter():
    command = [os.environ["OAR_PADDLE"], str(pathlib.Path(paddle_exports.__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        COMPARED.setdefault("version", "Paddle")
        yield process
        process.stdin.close()


@pytest.mark.parametrize("case", paddle_exports.CASES)
def test_export(case, exporter, tmp_path, record_property):
    prefix = str(tmp_path / case)
    exporter.stdin.write(json.dumps([case, prefix]) + "\n")
    exporter.stdin.flush()
    assert exporter.stdout.readline().strip() == "done", "the process of Paddle ended"
    with np.load(prefix + ".npz") as stored:
        x, expected = stored["x"], [stored[f"r{i}"] for i in range(len(stored.files) - 1)]
    found = [t.numpy() for t in oar.inference.paddle.load(prefix)(x)]
    error = distance(found, expected)
    record_property("difference", error)
    print(f"| {case} | {len(expected)} | {error:.1e} |")
    assert error < 1e-4
    count("exported networks")


def distance(mine: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest number of its tensor."""
    assert [(a.shape, a.dtype) for a in mine] == [(b.shape, b.dtype) for b in other]
    assert all(np.isfinite(b).all() for b in other)
    return max(float(np.abs(a.astype("float64") - b).max() / max(np.abs(b.astype("float64")).max(), 1e-6)) for a, b in zip(mine, other))
