"""Inference models that Paddle exports, run by Oar, and that Oar writes, run by Paddle."""

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
    ask(exporter, case, prefix)
    with np.load(prefix + ".npz") as stored:
        x, expected = stored["x"], [stored[f"r{i}"] for i in range(len(stored.files) - 1)]
    found = [t.numpy() for t in oar.inference.paddle.load(prefix)(x)]
    error = distance(found, expected)
    record_property("difference", error)
    print(f"| {case} | {len(expected)} | {error:.1e} |")
    assert error < 1e-4
    count("exported networks")


WRITTEN = ("LeNet", "resnet18", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_0", "vgg11", "alexnet", "densenet121",
           "googlenet", "inception_v3")


class Encoder(oar.nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.head = oar.nn.Embedding(50, 16), oar.nn.Linear(16, 5)
        self.layers = oar.nn.TransformerEncoder(oar.nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)

    def forward(self, ids):
        return oar.nn.functional.softmax(self.head(self.layers(self.table(ids)).mean(1)))


@pytest.mark.parametrize("case", (*WRITTEN, "encoder"))
def test_written(case, exporter, tmp_path, record_property):
    net = Encoder() if case == "encoder" else getattr(oar.vision.models, case)()
    net.eval()
    sizes, x = paddle_exports.data(case)
    prefix = str(tmp_path / case)
    oar.inference.paddle.save(net, prefix, [oar.static.InputSpec(sizes, str(x.dtype), "x")])
    results = net(oar.to_tensor(x))
    mine = [t.numpy() for t in (results if isinstance(results, (list, tuple)) else [results])]
    np.savez(prefix + ".npz", x=x)
    ask(exporter, "read", prefix)
    with np.load(prefix + "_read.npz") as stored:
        error = max(distance(mine, [stored[f"{kind}{i}"] for i in range(len(mine))]) for kind in "rp")
    record_property("difference", error)
    print(f"| {case} | {error:.1e} |")
    assert error < 1e-4
    count("written networks")


def ask(exporter, case: str, prefix: str) -> None:
    exporter.stdin.write(json.dumps([case, prefix]) + "\n")
    exporter.stdin.flush()
    # Some of Paddle's kernels print their names.
    assert any(line.strip() == "done" for line in iter(exporter.stdout.readline, "")), "the process of Paddle ended"


def distance(mine: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest number of its tensor."""
    assert [(a.shape, a.dtype) for a in mine] == [(b.shape, b.dtype) for b in other]
    assert all(np.isfinite(b).all() for b in other)
    return max(float(np.abs(a.astype("float64") - b).max() / max(np.abs(b.astype("float64")).max(), 1e-6)) for a, b in zip(mine, other))
