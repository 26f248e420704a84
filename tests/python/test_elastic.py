"""Jobs whose machines come and go. Each machine is a launcher on this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import oar
import pytest
from oar import distributed as dist
from oar.distributed.launch.elastic import range_of

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")
STEPS = 40


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Machine:
    def __init__(self, folder: Path, name: str, master: str, *options: str, pace: float = 0.05, **env: str) -> None:
        self.log = open(folder / f"machine.{name}", "w+")
        command = [sys.executable, "-m", "oar.distributed.launch", "--master", master, "--elastic_timeout", "1.5", "--host", "127.0.0.1",
                   "--log_dir", str(folder / f"log.{name}"), *options, str(HERE / "elastic_run.py"), str(folder), str(STEPS), str(pace)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
                                        env={**os.environ, "PADDLE_DISTRI_PG_TIMEOUT": "30000", "OMP_NUM_THREADS": "1", **env})

    def text(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def wait(self) -> int:
        try:
            return self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail("the machine does not end:\n" + self.text())


def until(folder: Path, rank: int, step: int) -> None:
    """Waits until a process has made this many steps."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if int((folder / f"step.{rank}").read_text() or "0") >= step:
                return
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    logs = "\n".join(path.read_text() for path in sorted(folder.glob("machine.*")))
    pytest.fail(f"process {rank} has not come to step {step}:\n{logs}")


def rounds(folder: Path) -> list[tuple[int, int, int]]:
    """The rank, the number of processes and the first step of each start."""
    lines = (folder / "rounds").read_text().splitlines()
    return [(int(words[0]), int(words[2]), int(words[4])) for words in map(str.split, lines)]


def check_result(folder: Path) -> None:
    """The parameters are those of a training without interruption."""
    oar.seed(3)
    net = oar.nn.Linear(4, 1)
    optimizer = oar.optimizer.Adam(0.01, parameters=net.parameters())
    for step in range(STEPS):
        numbers = oar.sin(oar.arange(48, dtype="float32").reshape([12, 4]) * (step + 1))
        ((net(numbers) ** 2).sum() / 12).backward()
        optimizer.step()
        optimizer.clear_grad()
    for name, value in oar.load(str(folder / "result.pdparams")).items():
        np.testing.assert_allclose(value.numpy(), net.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("meeting", ["tcp", "folder"])
def test_a_machine_goes(tmp_path, meeting):
    master = f"127.0.0.1:{free_port()}" if meeting == "tcp" else f"file://{tmp_path}/meeting"
    machines = [Machine(tmp_path, "0", master, "--nnodes", "2:3")]
    if meeting == "tcp":
        time.sleep(0.5)  # the first one serves the rendezvous
    machines += [Machine(tmp_path, str(i), master, "--nnodes", "2:3") for i in (1, 2)]
    until(tmp_path, 2, 5)
    victim = 2 if meeting == "tcp" else 0
    os.killpg(machines[victim].process.pid, signal.SIGKILL)
    for i, machine in enumerate(machines):
        if i != victim:
            assert machine.wait() == 0, machine.text()
    starts = rounds(tmp_path)
    assert {size for _, size, _ in starts[:3]} == {3} and {size for _, size, _ in starts[3:]} == {2}
    assert all(begin >= 4 for _, _, begin in starts[3:])
    check_result(tmp_path)


def test_a_machine_comes(tmp_path):
    master = f"127.0.0.1:{free_port()}"
    first = Machine(tmp_path, "0", master, "--nnodes", "1:2", pace=0.15)
    until(tmp_path, 0, 3)
    second = Machine(tmp_path, "1", master, "--nnodes", "1:2", pace=0.15)
    assert first.wait() == 0 and second.wait() == 0, first.text() + second.text()
    assert [size for _, size, _ in rounds(tmp_path)] == [1, 2, 2]
    assert "a machine has come" in first.text()
    check_result(tmp_path)


def test_a_process_fails(tmp_path):
    options = ("--nnodes", "1:2", "--nproc_per_node", "2", "--max_restart", "1")
    master = f"127.0.0.1:{free_port()}"
    machine = Machine(tmp_path, "0", master, *options, pace=0.01, FAILS_AT="20")
    other = tmp_path / "other"
    other.mkdir()
    hopeless = Machine(other, "0", f"127.0.0.1:{free_port()}", *options, pace=0.01, FAILS_AT="any")
    assert machine.wait() == 0, machine.text()  # the second round begins after the step that failed
    assert "failed" in machine.text() and [begin for _, _, begin in rounds(tmp_path)] == [0, 0, 21, 21]
    check_result(tmp_path)
    assert hopeless.wait() == 1, hopeless.text()
    assert [begin for _, _, begin in rounds(other)] == [0, 0, 1, 1]


def test_ranges():
    assert range_of("2:4") == (2, 4) and range_of("3") is None and range_of(None) is None
    for wrong in ("4:2", "0:2", "a:b", "2:"):
        with pytest.raises(ValueError, match="no range of numbers. hint: 2:4 means from 2 to 4 machines"):
            range_of(wrong)
