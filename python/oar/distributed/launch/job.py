"""The processes of a job on this machine: their places, their logs, and what happens when one fails."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from oar import _C
from oar.distributed import _launched

__all__ = ["environments", "open_rendezvous", "run", "run_processes"]

_MEET_MS = 900_000
_PATIENCE = 10.0  # seconds between asking a process to end and killing it
_TAIL = 4096      # bytes of a log that are shown


def open_rendezvous(master: str | None, nodes: int, wanted: int) -> tuple[Any, Any]:
    """Where the machines meet: its server, if this machine serves it, and the connection to it."""
    if master is None:
        server = _C.store_serve("127.0.0.1", 0)
        return server, _C.store_open(f"tcp://127.0.0.1:{server.port()}", _MEET_MS)
    if master.startswith("file://"):
        return None, _C.store_open(master, _MEET_MS)
    address, server = master.split("://")[-1], cast(Any, None)
    if wanted <= 0:
        try:
            server = _C.store_serve(*_launched.host_and_port(address))
        except RuntimeError:
            if nodes == 1 or wanted == 0:
                raise
            # another machine's address, or the launcher beside this one serves it
    return server, _C.store_open("tcp://" + address, _MEET_MS)


class _Rendezvous:
    """Where the machines and then their processes meet. The launcher of one machine serves it."""

    def __init__(self, master: str | None, nodes: int, wanted: int, name: str) -> None:
        self.server, self.store = open_rendezvous(master, nodes, wanted)
        self.address = f"127.0.0.1:{self.server.port()}" if master is None else master.split("://")[-1]
        self._name = name
        self.node = self.store.add_to(f"launch/{name}/nodes", 1) - 1 if wanted < 0 else wanted

    def exchange(self, key: str, own: str, nodes: int) -> list[str]:
        """What each machine says."""
        self.store.set(f"launch/{self._name}/{key}/{self.node}", own.encode())
        return [self.store.get(f"launch/{self._name}/{key}/{i}", _MEET_MS).decode() for i in range(nodes)]


def _free_ports(count: int, first: int | None) -> list[int]:
    if first is not None:
        return list(range(first, first + count))
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def environments(
    options: argparse.Namespace, count: int, nodes: int, devices: list[str], meeting: Any
) -> list[dict[str, str]]:
    """What tells each process of this machine its place."""
    host = options.host or meeting.store.own_address() or "127.0.0.1"
    own = ",".join(f"{host}:{port}" for port in _free_ports(count, options.start_port))
    if nodes > 1:
        print(f"[launch] machine {meeting.node} of {nodes} waits for the others at {meeting.address}", file=sys.stderr, flush=True)
    by_node = [text.split(",") for text in meeting.exchange("endpoints", own, nodes)]
    endpoints = [endpoint for node in by_node for endpoint in node]
    before = sum(len(node) for node in by_node[: meeting.node])
    shared = {
        "PADDLE_MASTER": meeting.address, "OAR_STORE_SERVED": "1", "PADDLE_NNODES": str(nodes), "PADDLE_JOB_ID": options.job_id,
        "PADDLE_TRAINERS_NUM": str(len(endpoints)), "PADDLE_GLOBAL_SIZE": str(len(endpoints)), "PADDLE_LOCAL_SIZE": str(count),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints), "POD_IP": host,
    }  # fmt: skip
    if options.backend:
        shared["PADDLE_DISTRI_BACKEND"] = options.backend
    if options.host:
        shared["OAR_HOST"] = options.host
    if "OMP_NUM_THREADS" not in os.environ:
        shared["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // count))
    places = []
    for i in range(count):
        rank = str(before + i)
        places.append({**shared, "PADDLE_TRAINER_ID": rank, "PADDLE_GLOBAL_RANK": rank, "PADDLE_LOCAL_RANK": str(i),
                       "PADDLE_RANK_IN_NODE": str(i), "PADDLE_CURRENT_ENDPOINT": endpoints[before + i]})
        if i < len(devices):
            places[-1]["FLAGS_selected_gpus"] = devices[i]
    return places


def _ends_with_us() -> Callable[[], None]:
    """What a child does first: it asks the kernel for a signal when this process ends, however it ends."""
    libc, parent, pr_set_pdeathsig = ctypes.CDLL(None), os.getpid(), 1

    def ask() -> None:
        libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask


class _Process:
    """A process, with its log. The log of the first one is shown, too."""

    def __init__(self, command: list[str], place: dict[str, str], log: Path, overwrite: bool, shown: bool) -> None:
        self.rank, self.log = place["PADDLE_TRAINER_ID"], log
        self._file: BinaryIO = open(log, "wb" if overwrite else "ab")
        self._begin = self._file.tell()
        self.child = subprocess.Popen(
            command, env={**os.environ, **place, "PYTHONUNBUFFERED": "1"}, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE if shown else self._file, preexec_fn=_ends_with_us())  # fmt: skip
        self._copier = threading.Thread(target=self._copy, daemon=True) if shown else None
        if self._copier:
            self._copier.start()

    def _copy(self) -> None:
        pipe = self.child.stdout
        assert pipe is not None
        while block := os.read(pipe.fileno(), 65536):
            self._file.write(block)
            self._file.flush()
            sys.stdout.buffer.write(block)
            sys.stdout.flush()

    def close(self) -> None:
        if self._copier:
            self._copier.join(_PATIENCE)
        self._file.close()

    def tail(self) -> str:
        with open(self.log, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(self._begin, file.tell() - _TAIL))
            return file.read().decode(errors="replace")


def _end(processes: list[_Process]) -> None:
    """Asks the processes to end, and kills those that do not."""
    for process in processes:
        if process.child.poll() is None:
            process.child.terminate()
    deadline = time.monotonic() + _PATIENCE
    for process in processes:
        try:
            process.child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.child.kill()
            process.child.wait()


def _first_failure(processes: list[_Process]) -> _Process | None:
    """The process that failed before the others did; of several at once, one that was killed."""
    failed = [p for p in processes if p.child.poll() not in (None, 0)]
    return min(failed, key=lambda p: p.child.returncode >= 0) if failed else None


def _watch(processes: list[_Process], check: Callable[[], None]) -> int:
    """Waits until all have ended or one has failed. The exit code."""
    failed, polls = None, 0
    while failed is None and any(p.child.poll() is None for p in processes):
        time.sleep(0.05)
        polls += 1
        if polls % 10 == 0:
            check()
        failed = _first_failure(processes)
    failed = failed or _first_failure(processes)
    if failed is None:
        return 0
    # The others notice by themselves, and their logs say what they waited for.
    deadline = time.monotonic() + _PATIENCE / 2
    while time.monotonic() < deadline and any(p.child.poll() is None for p in processes):
        time.sleep(0.05)
    _end(processes)
    return _say_failure(failed)


def _say_failure(failed: _Process) -> int:
    """Prints how a process failed, and the end of its log. The exit code of the job."""
    code = failed.child.returncode
    how = f"was killed by the signal {signal.Signals(-code).name}" if code < 0 else f"ended with the code {code}"
    print(f"\n[launch] the process with the rank {failed.rank} {how}. The end of its log, {failed.log}:\n\n{failed.tail()}",
          file=sys.stderr)
    return 128 - code if code < 0 else code


def _command(options: argparse.Namespace) -> list[str]:
    script = options.training_script
    module = [] if script.endswith(".py") or os.path.exists(script) else ["-m"]
    return [sys.executable, "-u", *module, script, *options.training_script_args]


def run_processes(
    options: argparse.Namespace, places: list[dict[str, str]], attempt: int, check: Callable[[], None] = lambda: None
) -> int:
    """Runs the script in processes of these environments. Returns the exit code. What ``check`` raises ends them."""
    store = os.environ.get("OAR_STORE", "")
    if attempt > 0 and store.startswith("file://"):  # what the failed job has left there is none of ours
        places = [{**place, "OAR_STORE": f"{store}/restart{attempt}"} for place in places]
    folder = Path(options.log_dir)
    folder.mkdir(parents=True, exist_ok=True)
    processes: list[_Process] = []
    overwrite = options.log_overwrite.lower() in ("true", "1") and attempt == 0

    def stop(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    earlier = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for i, place in enumerate(places):
            processes.append(_Process(_command(options), place, folder / f"workerlog.{i}", overwrite, shown=i == 0))
        return _watch(processes, check)
    except KeyboardInterrupt:
        return 130
    finally:
        _end(processes)
        for process in processes:
            process.close()
        for number, handler in earlier.items():
            signal.signal(number, handler)


def run(options: argparse.Namespace, count: int, nodes: int, devices: list[str]) -> int:
    """Runs the job, again after a failure if that was asked for. Returns the exit code."""
    for attempt in range(options.max_restart + 1):
        meeting = _Rendezvous(options.master, nodes, options.node_rank, f"{options.job_id}/{attempt}")
        code = run_processes(options, environments(options, count, nodes, devices, meeting), attempt)
        if code in (0, 130):
            break
        if attempt < options.max_restart:
            print(f"[launch] the job starts again ({attempt + 1} of {options.max_restart})", file=sys.stderr)
    return code
