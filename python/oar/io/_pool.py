"""The parent's side of worker processes: handing out jobs, receiving batches, noticing deaths."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from oar import _C
from oar._lazy import np
from oar.io._slots import Slot, Spot
from oar.io._transport import unpack
from oar.io._worker import Plan, worker_main
from oar.io.collate import tensor_from

__all__ = ["WorkerPool"]

# Batches of each worker that the user may keep before batches are copied out of their slots.
_KEPT_BATCHES = 2
# A smaller array is copied out of its slot sooner than memory is lent.
_WORTH_LENDING = 1 << 14
# Jobs that wait in a pipe fit into its buffer: a worker that writes a large answer does not read.
_WAITING_BYTES = 1 << 15


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self, number: int, process: Any, pipe: Any, slots: list[Slot], numbers: int) -> None:
        self.number = number
        self.process = process
        self.pipe = pipe
        self.slots = slots
        self.free = list(range(numbers))  # numbers of slots; without slots they only count
        self.lent: dict[int, weakref.ref] = {}
        self.waiting: list[int] = []  # the sizes of the jobs it has, the oldest first
        self.ended = False

    def can_take(self, size: int, depth: int) -> bool:
        """Whether a job of ``size`` bytes may be sent now."""
        if len(self.waiting) >= depth or not self.free:
            return False
        return not self.waiting or sum(self.waiting) + size <= _WAITING_BYTES

    def opened(self, head: bytes, slot: int, used: int) -> Any:
        """The batch in a slot, as tensors. The slot is free again when the last tensor on its memory is."""
        memory: Any = None
        if used:
            memory = np.frombuffer(self.slots[slot].memory(used), np.uint8)
        lend = bool(self.free)  # else the worker would have nowhere to put the next batch
        lent = False

        def tensor(spot: Spot) -> Any:
            nonlocal lent
            if not lend or spot.end - spot[0] < _WORTH_LENDING:
                return _C.adopt_array(spot.array(memory).copy())
            lent = True
            return _C.adopt_array(spot.array(memory))

        batch = unpack(head, tensor, tensor_from)
        if lent:
            self.lent[slot] = weakref.ref(memory, lambda _: self.free.append(slot))
        else:
            self.free.append(slot)
        return batch


class WorkerPool:
    """Workers that fetch batches ahead.

    Each worker has at most ``depth`` jobs at a time. Batches come in turn from worker 0, 1, and so on, whichever is the
    fastest, so their order does not depend on time. A worker whose part of an iterable dataset has ended is left out.
    """

    def __init__(self, plan: Plan, depth: int, shared_memory: bool, timeout: float) -> None:
        self.busy = False
        self._depth = depth
        self._timeout = timeout
        self._epoch = 0
        self._warned = False
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _shut_down, self._workers)
        context = multiprocessing.get_context(multiprocessing.get_start_method(allow_none=True) or "fork")
        for number in range(plan.count):
            self._start(context, number, plan, shared_memory)

    def _start(self, context: Any, number: int, plan: Plan, shared_memory: bool) -> None:
        ours, theirs = context.Pipe(duplex=True)
        numbers = self._depth + _KEPT_BATCHES
        slots = [Slot() for _ in range(numbers)] if shared_memory else []
        # A forked worker closes the other ends that it inherits, so that an end of the parent is seen as such.
        foreign = [worker.pipe for worker in self._workers] + [ours] if context.get_start_method() == "fork" else []
        process = context.Process(target=worker_main, args=(number, plan, theirs, foreign, slots), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the worker ignores it
        try:
            with warnings.catch_warnings():
                # Locks and threads of the library survive a fork, so threads of the parent do not matter.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            self._workers.append(_Worker(number, process, ours, slots, numbers))
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """The batches of one pass, in the order of ``jobs``."""
        self.busy = True
        try:
            self._forget_last_pass()
            yield from self._in_turn(jobs)
        finally:
            self.busy = False

    def _forget_last_pass(self) -> None:
        for worker in self._workers:
            while worker.waiting:  # Left over from a pass that was given up.
                self._receive(worker, opened=False)
            worker.ended = False
        self._epoch += 1

    def _in_turn(self, jobs: Iterator[Any]) -> Iterator[Any]:
        count = len(self._workers)
        sent = given = 0
        job = self._pickled(jobs)
        while True:
            while job is not None and not all(worker.ended for worker in self._workers):
                worker = self._workers[sent % count]
                if not worker.ended:
                    if not worker.can_take(len(job), self._depth):
                        break
                    self._send(worker, job)
                    job = self._pickled(jobs)
                sent += 1
            if given == sent:
                return
            worker = self._workers[given % count]
            given += 1
            if worker.ended:
                continue
            kind, content = self._receive(worker)
            if kind == "error":
                content.reraise()
            worker.ended = kind == "ended"
            if kind == "batch":
                yield content

    def _pickled(self, jobs: Iterator[Any]) -> bytes | None:
        for indices in jobs:
            return pickle.dumps((self._epoch, indices), protocol=5)
        return None

    def _send(self, worker: _Worker, job: bytes) -> None:
        worker.waiting.append(len(job))
        try:
            worker.pipe.send_bytes(worker.free.pop().to_bytes(4, "little") + job)
        except OSError:
            pass  # It has ended. What it had delivered before comes first; then the end is noticed.

    def _receive(self, worker: _Worker, opened: bool = True) -> tuple[str, Any]:
        """The oldest answer of a worker: its kind, and the batch or the error."""
        try:
            if self._timeout and not worker.pipe.poll(self._timeout):
                raise RuntimeError(
                    f"[DataLoader] timed out: worker {worker.number} did not deliver a batch within {self._timeout} seconds. "
                    "Raise timeout, or check what __getitem__ waits for."
                )
            slot, kind, content, used, full = pickle.loads(worker.pipe.recv_bytes())
        except (EOFError, OSError):
            self._report_death(worker)
        worker.waiting.pop(0)
        if full:
            self._warn_of_room(full)
        if kind == "batch" and opened:
            return kind, worker.opened(content, slot, used)
        worker.free.append(slot)
        return kind, content

    def _warn_of_room(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"[DataLoader] there is no room for shared memory ({reason}). Batches come through pipes, which takes longer. "
                "Use fewer workers, a smaller prefetch_factor or batch_size, or allow the processes more memory.",
                stacklevel=6,
            )

    def _report_death(self, worker: _Worker) -> None:
        worker.process.join(1.0)
        code, pid = worker.process.exitcode, worker.process.pid
        how = "closed its pipe" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by signal {signal.Signals(-code).name}. {_reason(-code)}"
        self.shut_down()
        raise RuntimeError(f"[DataLoader] worker {worker.number} (pid {pid}) {how.rstrip('.')}.")

    def shut_down(self) -> None:
        """Stop the workers and give their memory back."""
        self._finalizer()


def _reason(code: int) -> str:
    if code == signal.SIGKILL:
        return "Perhaps the machine ran out of memory; use fewer workers or smaller batches"
    if code in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL):
        return "Native code that the dataset calls has crashed; num_workers=0 shows where"
    return ""


def _shut_down(workers: list[_Worker]) -> None:
    for worker in workers:
        try:
            worker.pipe.send_bytes(b"")
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
