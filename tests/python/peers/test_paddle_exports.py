"""Inference models that Paddle exports, run by Oar, and that Oar writes, run by Paddle."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import oar
import paddle_written_cases
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
    ask(exporter, case, prefix)
    with np.load(prefix + ".npz") as stored:
        x, expected = stored["x"], [stored[f"r{i}"] for i in range(len(stored.files) - 1)]
    found = [t.numpy() for t in oar.inference.paddle.load(prefix)(x)]
    error = distance(found, expected)
    record_property("difference", error)
    print(f"| {case} | {len(expected)} | {error:.1e} |")
    assert error < 1e-4
    count("exported networks")


WRITTEN = ("LeNet", "resnet18", "resnext50_32x4d", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_0", "vgg11", "alexnet",
           "densenet121", "googlenet", "inception_v3", "shufflenet_v2_x1_0")


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("case", (*WRITTEN, *paddle_written_cases.CASES))
def test_written(case, legacy, exporter, tmp_path, record_property):
    if case in paddle_written_cases.CASES:
        net, spec, x = paddle_written_cases.case(case)
    else:
        net = getattr(oar.vision.models, case)()
        net.eval()
        sizes, x = paddle_exports.data(case)
        spec = [oar.static.InputSpec(sizes, str(x.dtype), "x")]
    prefix = str(tmp_path / case)
    oar.inference.paddle.save(net, prefix, spec, legacy=legacy)
    mine = paddle_written_cases.results(net, x)
    np.savez(prefix + ".npz", x=x)
    ask(exporter, "read", prefix)
    with np.load(prefix + "_read.npz") as stored:
        kinds = sorted({name[0] for name in stored.files})
        error = max(distance(mine, [stored[f"{kind}{i}"] for i in range(len(mine))]) for kind in kinds)
    record_property("difference", error)
    print(f"| {case} | {'pdmodel' if legacy else 'json'} | {error:.1e} |")
    assert error < 1e-5
    count("written networks")


def ask(exporter, case: str, prefix: str) -> None:
    exporter.stdin.write(json.dumps([case, prefix]) + "\n")
    exporter.stdin.flush()
    # Some of Paddle's kernels print their names.
    lines = (line.strip() for line in iter(exporter.stdout.readline, ""))
    assert next((line for line in lines if line == "done" or line.startswith("failed: ")), "the process of Paddle ended") == "done"


def distance(mine: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest number of its tensor."""
    assert [(a.shape, a.dtype) for a in mine] == [(b.shape, b.dtype) for b in other]
    assert all(np.isfinite(b).all() for b in other)
    return max(float(np.abs(a.astype("float64") - b).max() / max(np.abs(b.astype("float64")).max(), 1e-6)) for a, b in zip(mine, other))
