"""A job with servers of parameters: its processes on this machine. A server that is killed starts again and goes on from its log."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oar.distributed.launch.job import _command, _end, _first_failure, _free_ports, _Process, _say_failure

__all__ = ["run"]

_LOOPBACK = "127.0.0.1"


def _endpoints(given: str | None, count: int | None, first_port: int | None) -> list[str]:
    if given:
        return [endpoint for endpoint in given.split(",") if endpoint]
    return [f"{_LOOPBACK}:{port}" for port in _free_ports(count or 0, first_port)]


def _here(endpoints: list[str], host: str | None) -> list[int]:
    """Which of them are on this machine."""
    own = host or _LOOPBACK
    return [i for i, endpoint in enumerate(endpoints) if endpoint.rpartition(":")[0] in (own, "localhost", _LOOPBACK)]


class _Starts:
    """The processes of the job: how each is started, and started again."""

    def __init__(self, options: argparse.Namespace, tables: str) -> None:
        first = options.start_port
        servers = _endpoints(options.servers, options.server_num, first)
        workers = _endpoints(options.workers or options.trainers, options.worker_num or options.trainer_num,
                             None if first is None else first + len(servers))
        if not servers or not workers:
            raise ValueError(f"[launch] there are {len(servers)} servers and {len(workers)} workers; a job with --run_mode ps needs at "
                             "least one of each. hint: pass --server_num and --worker_num, or --servers and --workers.")
        self._options = options
        shared = {
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers), "PADDLE_TRAINER_ENDPOINTS": ",".join(workers),
            "PADDLE_TRAINERS_NUM": str(len(workers)), "PADDLE_JOB_ID": options.job_id, "OAR_PS_FOLDER": tables,
            "OAR_PS_TOKEN": os.environ.get("OAR_PS_TOKEN") or self._new_token(servers, options.host),
        }  # fmt: skip
        if "OMP_NUM_THREADS" not in os.environ:
            shared["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // len(workers)))
        self.servers = [self._start("PSERVER", i, servers, shared) for i in _here(servers, options.host)]
        self.workers = [self._start("TRAINER", i, workers, shared) for i in _here(workers, options.host)]

    @staticmethod
    def _new_token(servers: list[str], host: str | None) -> str:
        if len(_here(servers, host)) < len(servers):
            raise ValueError("[launch] servers on several machines need a secret that all know. hint: set OAR_PS_TOKEN to the same text "
                             "of at least 16 characters on each.")
        return secrets.token_hex(32)

    def _start(self, role: str, number: int, endpoints: list[str], shared: dict[str, str]) -> Callable[[bool], _Process]:
        host, _, port = endpoints[number].rpartition(":")
        place = {**shared, "TRAINING_ROLE": role, "POD_IP": host, "PADDLE_PORT": port, "PADDLE_TRAINER_ID": str(number),
                 "PADDLE_CURRENT_ENDPOINT": endpoints[number]}
        name = "serverlog" if role == "PSERVER" else "workerlog"
        log = Path(self._options.log_dir) / f"{name}.{number}"
        overwrite = self._options.log_overwrite.lower() in ("true", "1")
        shown = role == "TRAINER" and number == 0
        return lambda again: _Process(_command(self._options), place, log, overwrite and not again, shown)


def _watch(starts: _Starts, servers: list[_Process], workers: list[_Process]) -> int:
    """Waits for the workers, and starts servers again that were killed. The exit code."""
    restarts = 0
    while any(worker.child.poll() is None for worker in workers):
        time.sleep(0.05)
        for i, server in enumerate(servers):
            code = server.child.poll()
            if code in (None, 0):
                continue
            if code > 0 or restarts == _MOST_RESTARTS:
                return _say_failure(server)
            restarts += 1
            print(f"[launch] server {server.rank} was killed by the signal {signal.Signals(-code).name}; it starts again.",
                  file=sys.stderr, flush=True)
            server.close()
            servers[i] = starts.servers[i](True)
        failed = _first_failure(workers)
        if failed is not None:
            return _say_failure(failed)
    failed = _first_failure(workers)
    if failed is not None:
        return _say_failure(failed)
    for server in servers:  # they end when all workers have stopped
        server.child.wait()
    failed = _first_failure(servers)
    return _say_failure(failed) if failed is not None else 0


_MOST_RESTARTS = 10


def run(options: argparse.Namespace) -> int:
    """Runs the job. Returns the exit code."""
    folder = Path(options.log_dir)
    folder.mkdir(parents=True, exist_ok=True)
    kept = os.environ.get("OAR_PS_FOLDER")
    tables = kept or tempfile.mkdtemp(prefix="servers-", dir=folder)
    servers: list[_Process] = []
    workers: list[_Process] = []

    def stop(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    earlier = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    code = 1
    try:
        starts = _Starts(options, os.path.abspath(tables))
        servers += [start(False) for start in starts.servers]
        workers += [start(False) for start in starts.workers]
        code = _watch(starts, servers, workers)
    except KeyboardInterrupt:
        code = 130
    finally:
        _end([*workers, *servers])
        for process in [*workers, *servers]:
            process.close()
        for number, handler in earlier.items():
            signal.signal(number, handler)
        if kept is None:
            if code == 0:
                shutil.rmtree(tables)
            else:
                print(f"[launch] what the servers had written is in {tables}", file=sys.stderr)
    return code
