"""The parent's side of worker processes: handing out jobs, receiving batches, noticing deaths."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import Any

from oar._lazy import np
from oar.io._transport import Slot, decode
from oar.io._worker import Fetcher, WorkerError, worker_main

__all__ = ["WorkerPool"]

# In place of a batch: the worker's part of an iterable dataset has no more.
_ENDED = object()


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self, process: Any, pipe: Any, slots: list[Slot], depth: int) -> None:
        self.process = process
        self.pipe = pipe
        self.slots = slots
        self.free = list(range(depth))
        self.ended = False


class WorkerPool:
    """Workers that fetch batches ahead, in order.

    Each worker has at most ``depth`` jobs at a time. Batch ``n`` is built by worker ``n % count``, unless an
    iterable dataset has ended there.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        count: int,
        depth: int,
        shared_memory: bool,
        timeout: float,
        init: Callable[[int], None] | None,
    ) -> None:
        self.timeout = timeout
        self.epoch = 0
        self.busy = False
        self._workers: list[_Worker] = []
        context = multiprocessing.get_context("fork")
        base_seed = int(np.random.randint(0, 2**31 - 1))
        for number in range(count):
            ours, theirs = context.Pipe(duplex=True)
            slots = [Slot() for _ in range(depth)] if shared_memory else []
            foreign = [worker.pipe for worker in self._workers] + [ours]
            arguments = (number, count, theirs, foreign, slots, fetcher, init, base_seed, os.getpid())
            process = context.Process(target=worker_main, args=arguments, daemon=True)
            with warnings.catch_warnings():
                # Workers run Python and NumPy only, so threads of the parent do not matter to them.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours, slots, depth))
        self._finalizer = weakref.finalize(self, _shut_down, self._workers)

    def run(self, jobs: Iterator[Any], convert: Callable[[Any], Any]) -> Iterator[Any]:
        """The batches of one pass, in the order of ``jobs``."""
        self.epoch += 1
        self.busy = True
        for worker in self._workers:
            worker.ended = False
        received: dict[int, Any] = {}
        try:
            yield from self._in_order(jobs, convert, received)
        finally:
            self.busy = False

    def _in_order(self, jobs: Iterator[Any], convert: Callable, received: dict[int, Any]) -> Iterator[Any]:
        sent = given = 0
        more = True
        while True:
            while more and (worker := self._next_worker(sent)) is not None:
                try:
                    indices = next(jobs)
                except StopIteration:
                    more = False
                    break
                self._send(worker, (self.epoch, sent, indices, worker.free.pop()))
                sent += 1
            if given == sent and (not more or all(worker.ended for worker in self._workers)):
                return
            if given not in received:
                order, result = self._receive(convert)
                if order >= 0:
                    received[order] = result
                continue
            result = received.pop(given)
            given += 1
            if isinstance(result, WorkerError):
                result.reraise()
            if result is not _ENDED:
                yield result

    def _next_worker(self, order: int) -> _Worker | None:
        """Who takes job ``order``; None when that worker has enough to do for now."""
        going = [worker for worker in self._workers if not worker.ended]
        if not going:
            return None
        worker = going[order % len(going)]
        return worker if worker.free else None

    def _send(self, worker: _Worker, job: Any) -> None:
        try:
            worker.pipe.send(job)
        except OSError:
            self._report_death(worker)

    def _receive(self, convert: Callable[[Any], Any]) -> tuple[int, Any]:
        """The order of a batch that has come, and the batch, or ``_ENDED``, or an error. Order -1: not for us."""
        pipes = {worker.pipe: worker for worker in self._workers}
        ready = connection.wait(list(pipes), self.timeout or None)
        if not ready:
            raise RuntimeError(
                f"DataLoader timed out: no worker delivered a batch within {self.timeout} seconds. Raise timeout, "
                "or check what __getitem__ waits for."
            )
        worker = pipes[ready[0]]
        try:
            epoch, order, slot, result = worker.pipe.recv()
        except (EOFError, OSError):
            self._report_death(worker)
        if epoch != self.epoch:  # Left over from a pass that was given up.
            order = -1
        elif result is None:
            worker.ended = True
            result = _ENDED
        elif not isinstance(result, WorkerError):
            head, sizes = result
            result = convert(decode(head, sizes, worker.slots[slot] if worker.slots else None))
        worker.free.append(slot)
        return order, result

    def _report_death(self, worker: _Worker) -> None:
        worker.process.join(1.0)
        code = worker.process.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"signal {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += ", perhaps because the machine ran out of memory"
        pid = worker.process.pid
        self.shut_down()
        raise RuntimeError(f"DataLoader worker (pid {pid}) ended unexpectedly with {how}.")

    def shut_down(self) -> None:
        """Stop the workers and give their memory back."""
        self._finalizer()


def _shut_down(workers: list[_Worker]) -> None:
    for worker in workers:
        try:
            worker.pipe.send(None)
        except (OSError, ValueError):
            pass
        worker.pipe.close()
    deadline = time.monotonic() + 1.0
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(1.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        for slot in worker.slots:
            slot.close()
    workers.clear()
