"""Starting processes from a program."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["spawn"]


class _Processes:
    """The processes that ``spawn`` started."""

    def __init__(self, processes: Sequence[Any], errors: Sequence[Any]) -> None:
        self.processes, self._errors = list(processes), list(errors)

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the processes; raises the error of one that failed. Returns whether all have ended."""
        for process in self.processes:
            process.join(timeout)
            if process.exitcode is None:
                return False
        for process, errors in zip(self.processes, self._errors):
            if process.exitcode != 0:
                text = errors.get() if not errors.empty() else f"it ended with the code {process.exitcode}"
                raise RuntimeError(f"[spawn] process {process.pid} failed:\n{text}")
        return True


def _run(func: Callable[..., Any], args: tuple[Any, ...], errors: Any) -> None:
    import traceback

    try:
        func(*args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


def spawn(
    func: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> _Processes:  # fmt: skip
    """Runs a function in new processes. Today one.

    Args:
        func: the function; of a module, so that the process finds it.
        args: its arguments.
        nprocs: how many processes: 1, or -1 for one per device.
        join: whether to wait for them.
        daemon: whether they end with this process.
        options: ``start_method``: ``'spawn'``, ``'fork'`` or ``'forkserver'``. Others are accepted for compatibility.

    Returns:
        an object with ``processes`` and ``join()``.

    Examples:
        >>> import oar
        >>> done = oar.distributed.spawn(print, args=(), nprocs=1)
        >>> done.processes[0].exitcode
        0
    """
    if nprocs not in (-1, 1):
        raise NotImplementedError(f"[spawn] nprocs is {nprocs}, and Oar does not connect processes yet. hint: pass nprocs=1.")
    context: Any = multiprocessing.get_context(options.get("start_method", "spawn"))
    errors = context.SimpleQueue()
    process = context.Process(target=_run, args=(func, args, errors), daemon=daemon)
    process.start()
    started = _Processes([process], [errors])
    if join:
        started.join()
    return started
