"""The worker processes of a ``DataLoader``: they fetch samples and build batches of arrays."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from oar._lazy import np
from oar.io._fetcher import DataEnded, Fetcher
from oar.io._slots import Arena, Slot
from oar.io._transport import pack
from oar.io._worker_info import WorkerInfo, set_worker_info

__all__ = ["Plan", "WorkerError", "worker_main"]

_PARENT_CHECK_SECONDS = 1.0


class _Text(str):
    """Text that prints its line breaks even inside a KeyError."""

    def __repr__(self) -> str:
        return str(self)


class WorkerError:
    """An exception on its way from a worker to the parent."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.worker = worker
        self.trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        # An exit that the dataset asks for is no wish of the program.
        self.kind: type | None = type(error) if isinstance(error, Exception) else None
        try:
            pickle.loads(pickle.dumps(self.kind))
        except Exception:
            self.kind = None

    def reraise(self) -> None:
        """Raise it here, with the worker's traceback in the message."""
        text = f"DataLoader worker {self.worker} raised an error. Its traceback:\n\n{self.trace}"
        if self.kind is KeyError:
            text = _Text(text)
        try:
            error = RuntimeError(text) if self.kind is None else self.kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error


@dataclass
class Plan:
    """What all workers of a loader have in common."""

    fetcher: Fetcher
    count: int
    init: Callable[[int], None] | None
    seed: int


def _watch_parent() -> None:
    """Ends this process soon after its parent, whatever the dataset is doing."""
    parent, birth = multiprocessing.parent_process(), os.getppid()
    while parent is not None and os.getppid() == birth:
        if connection.wait([parent.sentinel], _PARENT_CHECK_SECONDS):
            break
    os._exit(1)


def _start(number: int, plan: Plan) -> None:
    """What a process does once, before its first batch."""
    import oar

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides what Ctrl-C means.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # A handler of the parent would not end this process.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_watch_parent, daemon=True).start()
    oar.set_num_threads(1)  # Workers share the processors among themselves.
    if not oar.in_dynamic_mode():
        oar.disable_static()
    seed = int(np.random.SeedSequence([plan.seed, number]).generate_state(1)[0])
    random.seed(seed)
    np.random.seed(seed)
    oar.seed(seed)
    set_worker_info(WorkerInfo(number, plan.count, plan.fetcher.dataset, plan.seed))
    if plan.init is not None:
        plan.init(number)


class _Bench:
    """Where a worker builds batches."""

    def __init__(self, number: int, fetcher: Fetcher, slots: list[Slot]) -> None:
        self._number = number
        self._fetcher = fetcher
        self._slots = slots
        self._epoch = -1

    def answer(self, slot: int, epoch: int, indices: Any) -> tuple[str, Any, int, str]:
        """How it went ("batch", "error" or "ended"), the packed batch or the error, the bytes of the slot that it uses, and
        why arrays are not in the slot."""
        arena = Arena(self._slots[slot]) if self._slots else None
        try:
            if epoch != self._epoch:
                self._epoch = epoch
                self._fetcher.restart()
            head = pack(self._fetcher.fetch(indices, arena), arena)
        except DataEnded:
            return "ended", None, 0, ""
        except BaseException as error:
            return "error", WorkerError(error, self._number), 0, ""
        return ("batch", head, 0, "") if arena is None else ("batch", head, arena.used, arena.full)


def worker_main(number: int, plan: Plan, pipe: Any, foreign_pipes: list[Any], slots: list[Slot]) -> None:
    """The loop of a worker until it is stopped."""
    for other in foreign_pipes:
        other.close()
    bench = _Bench(number, plan.fetcher, slots)
    failure: WorkerError | None = None
    try:
        _start(number, plan)
    except BaseException as error:
        failure = WorkerError(error, number)
    while True:
        try:
            job = pipe.recv_bytes()
        except (EOFError, OSError):
            break  # The parent has ended.
        if not job:
            break
        slot = int.from_bytes(job[:4], "little")
        answer = ("error", failure, 0, "") if failure is not None else bench.answer(slot, *pickle.loads(job[4:]))
        try:
            pipe.send_bytes(pickle.dumps((slot, *answer), protocol=5))
        except OSError:
            break
    pipe.close()
