"""Starting processes from a program."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from oar import _C

__all__ = ["spawn"]

_PATIENCE = 5.0  # seconds that the others get to fail by themselves, with errors of their own


class _Processes:
    """The processes that ``spawn`` started."""

    def __init__(self, processes: Sequence[Any], errors: Sequence[Any], server: Any = None) -> None:
        self.processes, self._errors, self._server = list(processes), list(errors), server

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the processes. If one fails, the others are ended, and its error is raised. Returns whether all have ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while running := [p for p in self.processes if p.exitcode is None]:
            if any(p.exitcode for p in self.processes):
                self._end(running)
                break
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                ended = multiprocessing.connection.wait([p.sentinel for p in running], left)
            except BaseException:  # Ctrl-C
                self._end(running, 0.0)
                raise
            if not ended:
                return False
            for p in running:
                p.join(0)
        self._raise_first()
        return True

    def _end(self, running: Sequence[Any], patience: float = _PATIENCE) -> None:
        multiprocessing.connection.wait([p.sentinel for p in running], patience)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(p.is_alive() for p in running):
            time.sleep(0.05)
        for process in running:
            if process.is_alive():
                process.terminate()
        for process in running:
            process.join(_PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()

    def _raise_first(self) -> None:
        failed = [(p, errors) for p, errors in zip(self.processes, self._errors) if p.exitcode]
        if not failed:
            return
        # The others have only noticed that it is gone.
        killed = [pair for pair in failed if pair[0].exitcode < 0 and pair[1].empty()]
        reports = [(p, None if errors.empty() else errors.get()) for p, errors in failed]
        first = next((r for r in reports if r[1] and "has waited" not in r[1]), None)
        process, text = first or (next(r for r in reports if r[0] is killed[0][0]) if killed else reports[0])
        rank = self.processes.index(process)
        what = text or f"it ended with the code {process.exitcode}"
        raise RuntimeError(f"[spawn] process {process.pid} (rank {rank}) failed:\n{what}")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _run(func: Callable[..., Any], args: tuple[Any, ...], errors: Any, environment: dict[str, str]) -> None:
    import traceback

    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(environment)
    try:
        func(*args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _environments(count: int, port: int) -> list[dict[str, str]]:
    """What tells each process its place."""
    endpoints = [f"127.0.0.1:{p}" for p in _free_ports(count)]
    shared = {"PADDLE_TRAINERS_NUM": str(count), "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
              "PADDLE_MASTER": f"127.0.0.1:{port}", "OAR_STORE_SERVED": "1"}
    return [{**shared, "PADDLE_TRAINER_ID": str(i), "PADDLE_LOCAL_RANK": str(i), "PADDLE_CURRENT_ENDPOINT": endpoints[i]}
            for i in range(count)]


def spawn(
    func: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> _Processes:  # fmt: skip
    """Runs a function in new processes, which ``init_parallel_env`` connects. If one fails, the others are ended.

    Args:
        func: the function; of a module, so that the process finds it.
        args: its arguments.
        nprocs: how many processes; -1 for one per device, which is 1 on the CPU.
        join: whether to wait for them.
        daemon: whether they end with this process.
        options: ``start_method``: ``'spawn'``, ``'fork'`` or ``'forkserver'``; ``backend``: ``'gloo'`` or ``'mpi'``. Others are
            accepted for compatibility.

    Returns:
        an object with ``processes`` and ``join()``.

    Examples:
        >>> import oar
        >>> done = oar.distributed.spawn(print, args=(), nprocs=1)
        >>> done.processes[0].exitcode
        0
    """
    count = 1 if nprocs == -1 else nprocs
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"[spawn] nprocs is {nprocs!r}, but a number of processes from 1 is needed, or -1 for one per device.")
    context: Any = multiprocessing.get_context(options.get("start_method", "spawn"))
    server = _C.store_serve("127.0.0.1", 0) if count > 1 else None
    places = _environments(count, server.port()) if server else [{}]
    backend = options.get("backend", "auto")
    processes, errors = [], []
    for place in places:
        if backend in ("gloo", "mpi"):
            place["PADDLE_DISTRI_BACKEND"] = backend
        errors.append(context.SimpleQueue())
        processes.append(context.Process(target=_run, args=(func, args, errors[-1], place), daemon=daemon))
        processes[-1].start()
    started = _Processes(processes, errors, server)
    if join:
        started.join()
    return started
