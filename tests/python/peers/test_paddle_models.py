"""The networks of vision.models by Oar and by Paddle: the same state dictionaries, files and results."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import oar
from peers import paddle_models
from peers.counts import COMPARED, count

if not os.access(os.environ.get("OAR_PADDLE", ""), os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)


@pytest.fixture(scope="module")
def networks():
    """The process of Paddle. The peer of the other tests has a few seconds per call, which a network may exceed."""
    command = [os.environ["OAR_PADDLE"], str(pathlib.Path(paddle_models.__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        COMPARED.setdefault("version", "Paddle")
        yield process
        process.stdin.close()


def theirs(process, call: str, folder: pathlib.Path):
    path, file = folder / "results.npz", folder / "net.pdparams"
    process.stdin.write(json.dumps([call, str(path), str(file)]) + "\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == "done", "the process of Paddle ended"
    with np.load(path) as stored:
        values = [stored[f"r{i}"] for i in range(len(stored.files) - 1)]
        return json.loads(str(stored["shapes"])), values, file


def distance(mine: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest number of its tensor."""
    assert [list(a.shape) for a in mine] == [list(b.shape) for b in other]
    assert all(np.isfinite(b).all() and np.abs(b).max() > 0 for b in other)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(mine, other))


@pytest.mark.parametrize("call", paddle_models.CASES)
def test_network(call, networks, tmp_path, record_property):
    shapes, expected, file = theirs(networks, call, tmp_path)
    mine, found = paddle_models.outputs(oar, call)
    assert list(mine) == list(shapes)
    assert mine == shapes
    error = distance(found, expected)
    record_property("difference", error)
    print(f"| `{call}` | {len(shapes)} | {sum(int(np.prod(s)) for s in shapes.values()):,} | {error:.1e} |")
    assert error < 1e-4
    if file.exists():
        net = eval(f"models.{call}", {"models": oar.vision.models})  # noqa: S307 - from the table
        net.eval()
        missing, unexpected = net.set_state_dict(oar.load(str(file)))
        assert not missing and not unexpected
        assert distance(paddle_models.results(oar, net, call), expected) < 1e-4
        file.unlink()
    count("networks")
