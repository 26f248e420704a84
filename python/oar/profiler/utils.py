"""Ranges of the user, and profiles in files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from typing import Any, Literal
from warnings import warn

from oar import _C
from oar.profiler.event_types import TracerEventType
from oar.profiler.result import ProfilerResult

__all__ = ["RecordEvent", "in_profiler_mode", "job_schedule_profiler_range", "load_profiler_result", "wrap_optimizers"]

_is_profiler_used = False

_ALLOWED = (TracerEventType.Dataloader, TracerEventType.ProfileStep, TracerEventType.Forward, TracerEventType.Backward,
            TracerEventType.Optimization, TracerEventType.PythonOp, TracerEventType.PythonUserDefined)  # fmt: skip


class RecordEvent(ContextDecorator):
    """A range of time in a profile, inside a ``with``, between ``begin()`` and ``end()``, or during the calls of a function
    that it decorates. Without a profiler that records it does nothing. In another thread than the profiler's it makes the
    profiler record the ops of that thread too.

    Args:
        name: the name of the range.
        event_type: what it is; users leave it at ``TracerEventType.PythonUserDefined``.

    Examples:
        >>> import oar
        >>> from oar import profiler
        >>> with profiler.Profiler(on_trace_ready=lambda p: None) as p:
        ...     with profiler.RecordEvent('twice'):
        ...         _ = oar.ones([2]) * 2
        ...
        >>> (step,) = [root.children_node[0] for root in p.profiler_result.get_data().values()]
        >>> step.children_node[0].name
        'twice'
    """

    def __init__(self, name: str, event_type: TracerEventType = TracerEventType.PythonUserDefined) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[RecordEvent] name is a {type(name).__name__}. Pass a string.")
        self.name = name
        self.event_type = event_type
        self._begun: list[Any] = []  # one for each call of a function that calls itself

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.end()
        return False

    def begin(self) -> None:
        """The range begins."""
        if not _C.profile_is_running():
            self._begun.append(None)
            return
        if self.event_type not in _ALLOWED:
            warn(f"[RecordEvent.begin] events of {self.event_type} are not recorded. Leave event_type at its default.", stacklevel=2)
            self._begun.append(None)
            return
        self._begun.append(_C.profile_range_begin())

    def end(self) -> None:
        """The range ends. Without a beginning this does nothing."""
        if self._begun and (begun := self._begun.pop()) is not None:
            _C.profile_range_end(self.name, self.event_type.value, begun)


def load_profiler_result(filename: str) -> ProfilerResult:
    """What a profiler has exported as protobuf.

    Args:
        filename: a file that ``Profiler.export(path, 'pb')`` or ``export_protobuf`` wrote.

    Returns:
        the result: ``get_data()`` returns the trees of events by thread, ``save(path, 'html')`` writes a report.

    Examples:
        >>> import oar, tempfile, os
        >>> with oar.profiler.Profiler(on_trace_ready=lambda p: None) as p:
        ...     _ = oar.ones([2]) + 1
        ...
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.export(os.path.join(folder, 'trace.pb'), format='pb')
        ...     result = oar.profiler.load_profiler_result(os.path.join(folder, 'trace.pb'))
        ...
        >>> [root.children_node[0].name for root in result.get_data().values()]
        ['ProfileStep#0']
    """
    from oar.profiler.nodetree import read_tree

    return read_tree(filename)


def in_profiler_mode() -> bool:
    """Whether a profiler has been started and not stopped; it need not record at the moment."""
    return _is_profiler_used


def wrap_optimizers() -> None:
    """Does nothing: optimisers record their updates themselves while a profiler records."""


def optimization() -> RecordEvent:
    """The range of an optimiser's update."""
    return RecordEvent("Optimization Step", TracerEventType.Optimization)


def loading(batches: Any, loader: Any) -> Any:
    """The next batch of an iterator, timed."""
    from oar.profiler.timer import benchmark

    clock = benchmark()
    clock.check_if_need_record(loader)
    clock.before_reader()
    with RecordEvent("DataLoader", TracerEventType.Dataloader):
        batch = next(batches)
    clock.after_reader()
    return batch


@contextmanager
def job_schedule_profiler_range(iter_id: int, start: int, end: int, exit_after_prof: bool = True) -> Iterator[bool]:
    """Whether a step is in ``[start, end)``; after the last of them the program may end.

    Args:
        iter_id: the number of the step.
        start: the first step of the range.
        end: the step after the last.
        exit_after_prof: end the program after the last step.
    """
    try:
        yield start <= iter_id < end
    finally:
        if start < end and iter_id == end - 1 and exit_after_prof:
            sys.exit()
