"""Servers of parameters: training with two of them and two workers, and what happens when one is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import server_training as work

import oar
from oar import _C, nn
from oar.distributed import fleet

pytestmark = pytest.mark.skipif(bool(_C.parameter_server_missing()), reason="this build has no parameter servers")

TOKEN = "a secret of tests"
SCRIPT = Path(__file__).parent / "server_training.py"


def launch(mode: str, folder: Path) -> list[list[float]]:
    """The losses of two workers with two servers."""
    done = subprocess.run(
        [sys.executable, "-m", "oar.distributed.launch", "--server_num", "2", "--worker_num", "2", "--log_dir", str(folder / "log"),
         str(SCRIPT), mode, str(folder)], capture_output=True, text=True, timeout=120, cwd=folder)  # fmt: skip
    logs = "\n".join(path.read_text()[-2000:] for path in (folder / "log").iterdir() if path.is_file())
    assert done.returncode == 0, done.stderr + logs
    return [json.loads((folder / f"losses{rank}.json").read_text()) for rank in range(2)]


def test_synchronous_training_is_that_of_one_process(tmp_path: Path) -> None:
    """Although a server is killed in between."""
    losses = np.mean(launch("sync", tmp_path), 0)
    assert [len((tmp_path / f"server{i}").read_text().split()) for i in range(2)] == [2, 1]  # starts
    content = np.load(tmp_path / "rows.npz")
    oar.seed(3)
    net = work.DeepFM(lambda width, name: nn.Embedding(work.FIELDS * work.WORDS, width))
    oar.seed(3)
    start = work.DeepFM(lambda width, name: nn.Layer())  # draws the same numbers as the workers
    net.deep.set_state_dict(start.deep.state_dict())
    for layer, name in ((net.first, "first"), (net.second, "second")):
        layer.weight.set_value(content[name])
    optimizer = work.adagrad(net)
    ids, labels = work.samples(len(losses))
    for step, wanted in enumerate(losses):
        part = slice(step * work.BATCH, (step + 1) * work.BATCH)
        loss = work.loss_of(net, ids[part], labels[part])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        np.testing.assert_allclose(wanted, loss.item(), rtol=1e-5)
    np.testing.assert_allclose(content["first_after"], net.first.weight.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(content["second_after"], net.second.weight.numpy(), rtol=1e-5, atol=1e-6)
    for i, parameter in enumerate(net.deep.parameters()):
        np.testing.assert_allclose(content[f"dense{i}"], parameter.numpy(), rtol=1e-5, atol=1e-6)
    assert len(list((tmp_path / "saved").iterdir())) == 2 * 3


@pytest.mark.parametrize("mode", ["async", "geo"])
def test_other_modes_learn(mode: str, tmp_path: Path) -> None:
    losses = np.mean(launch(mode, tmp_path), 0)
    assert losses[:5].mean() > 0.6 and losses[-20:].mean() < 0.6, losses


def test_static_program_over_a_dataset(tmp_path: Path) -> None:
    (first,), (second,) = launch("static", tmp_path)
    vectors = nn.Embedding(work.FIELDS * work.WORDS, 4, weight_attr=nn.initializer.Constant(0.01))
    output = nn.Linear(work.FIELDS * 4, 1, weight_attr=nn.initializer.Constant(0.1))
    net = nn.Sequential(vectors, nn.Flatten(), output)
    optimizer = oar.optimizer.Adagrad(work.RATE, parameters=net.parameters())
    ids, labels = work.samples(5)
    for step in range(5):
        part = slice(step * work.BATCH, (step + 1) * work.BATCH)
        work.loss_of(net, ids[part], labels[part]).backward()
        optimizer.step()
        optimizer.clear_grad()
    wanted = work.loss_of(net, ids, labels).item()
    np.testing.assert_allclose([first, second], [wanted, wanted], rtol=1e-5)


# ---- One server, by hand ---------------------------------------------------------------------------


def serve(folder: Path, port: int = 0) -> tuple[subprocess.Popen[str], int]:
    """A server in a process of its own, which ends with a kill."""
    code = ("import sys; from oar import _C; s = _C.parameter_server_serve('127.0.0.1:' + sys.argv[2], sys.argv[3], sys.argv[1], 0, 1, "
            "1, 1 << 20, 1 << 14); print(s.port(), flush=True); s.wait(100000)")
    process = subprocess.Popen([sys.executable, "-c", code, str(folder), str(port), TOKEN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def connect(port: int, timeout_ms: int = 20000, token: str = TOKEN) -> _C.ParameterClient:
    return _C.parameter_server_connect([f"127.0.0.1:{port}"], token, 0, timeout_ms)


def create(client: _C.ParameterClient, name: str, on_disk: bool = False) -> None:
    client.create_table(name, True, 2, on_disk, 8 << 20, (3, 0.0, 0.9, 0.999, 1e-8, 0.0), (0, 0.0, 0.0, 0), (False, 0.1, 1, 0.98, 0.8, 30),
                        (0, 0.0))


def test_a_killed_server_has_lost_nothing(tmp_path: Path) -> None:
    server, port = serve(tmp_path)
    client = connect(port)
    for name, on_disk in (("memory", False), ("disk", True)):
        create(client, name, on_disk)
    keys = np.arange(50)
    acknowledged = 0
    done = threading.Event()

    def push() -> None:
        nonlocal acknowledged
        while not done.is_set():
            for name in ("memory", "disk"):
                client.push_sparse(name, keys, np.ones((50, 2), "float32"), None, None, 0.0, False)
            acknowledged += 1

    thread = threading.Thread(target=push)
    thread.start()
    try:
        for _ in range(3):
            before = acknowledged
            while acknowledged < before + 20:
                time.sleep(0.01)
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
            server, _ = serve(tmp_path, port)
    finally:
        done.set()
        thread.join()
    assert acknowledged >= 60
    for name in ("memory", "disk"):
        rows = np.empty((50, 2), "float32")
        client.pull_sparse(name, keys, rows)
        np.testing.assert_array_equal(rows, acknowledged)
    server.kill()
    server.wait()
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"server 0 at 127.0.0.1:{port} does not answer .*start it again"):
        connect(port, timeout_ms=1000)
    assert time.monotonic() - began < 5


def test_a_server_refuses_what_is_wrong(tmp_path: Path) -> None:
    server, port = serve(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="token"):
            connect(port, token="another")
        client = connect(port)
        create(client, "a")
        with pytest.raises(RuntimeError, match="finite"):
            client.push_sparse("a", np.arange(1), np.full((1, 2), np.nan, "float32"), None, None, 0.0, False)
        with pytest.raises(ValueError, match="no sparse table 'b'"):
            client.pull_sparse("b", np.arange(1), np.empty((1, 2), "float32"))
        with pytest.raises(ValueError, match="3 keys"):
            client.pull_sparse("a", np.arange(3), np.empty((1, 2), "float32"))
        with pytest.raises(TypeError, match="keys"):
            client.pull_sparse("a", np.zeros(1, "float64"), np.empty((1, 2), "float32"))
        many = np.arange(200_000)  # more than a message of this server may hold
        with pytest.raises(RuntimeError, match="larger than max|limit"):
            client.pull_sparse("a", many, np.empty((200_000, 2), "float32"))
        assert client.size("a") == (0, 0, 0) and client.size("b") is None
    finally:
        server.kill()
        server.wait()


def test_calls_without_servers_say_so() -> None:
    fleet.init(is_collective=True)
    for call in (fleet.run_server, fleet.init_server, fleet.shrink):
        with pytest.raises(RuntimeError, match="no servers of parameters.*--server_num"):
            call()
