"""``Profiler``: starts and stops recordings, exports them, prints summaries."""

from __future__ import annotations

import datetime
import importlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Literal
from warnings import warn

from oar import _C
from oar.nn import _path
from oar.profiler import utils
from oar.profiler.event_types import TracerEventType
from oar.profiler.profiler_statistic import SortedKeys, StatisticData, _build_table
from oar.profiler.result import OP, Event, ProfilerResult
from oar.profiler.timer import benchmark
from oar.profiler.utils import RecordEvent
from oar.profiler.views import SummaryView

__all__ = ["Profiler", "ProfilerState", "ProfilerTarget", "export_chrome_tracing", "export_protobuf", "get_profiler",
           "make_scheduler"]  # fmt: skip


class ProfilerState(Enum):
    """What a profiler does during a step.

    ``CLOSED`` and ``READY`` record nothing, ``RECORD`` does, and ``RECORD_AND_RETURN`` is the last step of a recording:
    after it the result is handed over.

    Examples:
        >>> import oar
        >>> oar.profiler.ProfilerState.RECORD_AND_RETURN.value
        3
    """

    CLOSED = 0
    READY = 1
    RECORD = 2
    RECORD_AND_RETURN = 3


class ProfilerTarget(Enum):
    """A kind of device to profile. Oar records the CPU, and plug-in devices as calls of the host.

    Examples:
        >>> import oar
        >>> oar.profiler.ProfilerTarget.CPU.value
        0
    """

    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM_DEVICE = 3


_RECORDING = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)
_SUPPORTED = (ProfilerTarget.CPU, ProfilerTarget.CUSTOM_DEVICE)


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """A schedule for ``Profiler``: in which steps it records.

    Args:
        closed: steps of a cycle in which nothing happens.
        ready: steps after them, to warm up.
        record: steps after those that are recorded.
        repeat: how many cycles there are; 0: until the profiler stops.
        skip_first: steps before the first cycle.

    Returns:
        a function that returns the ``ProfilerState`` of a step.

    Examples:
        >>> import oar
        >>> schedule = oar.profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1)
        >>> [schedule(step).name for step in range(5)]
        ['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']
    """
    given = {"closed": closed, "ready": ready, "record": record, "repeat": repeat, "skip_first": skip_first}
    for name, value in given.items():
        least = 1 if name == "record" else 0
        if not isinstance(value, int) or value < least:
            raise AssertionError(f"[make_scheduler] {name} is {value!r}. Pass an integer of at least {least}.")
    if ready == 0:
        warn("[make_scheduler] without a step that is ready, the first recorded step contains the cost of starting.", stacklevel=2)
    period = closed + ready + record

    def state_of(step: int) -> ProfilerState:
        if step < 0:
            raise AssertionError(f"[make_scheduler] the step is {step}. Pass a number of at least 0.")
        cycle, place = divmod(step - skip_first, period)
        if step < skip_first or (repeat > 0 and cycle >= repeat) or place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD_AND_RETURN if place == period - 1 else ProfilerState.RECORD

    return state_of


def _always(step: int) -> ProfilerState:
    return ProfilerState.RECORD


def _exporter(function: str, dir_name: str, worker_name: str | None, ending: str, format: str) -> Callable[[Profiler], None]:
    try:
        os.makedirs(dir_name, exist_ok=True)
    except OSError as error:
        raise RuntimeError(f"[{function}] the folder {dir_name!r} cannot be created: {error}. Pass another one.") from None

    def export(profiler: Profiler) -> None:
        worker = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
        profiler.export(os.path.join(dir_name, f"{worker}_time_{now}.{ending}"), format)

    return export


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """A function for ``on_trace_ready`` that writes traces for chrome://tracing and Perfetto.

    Args:
        dir_name: the folder of the files.
        worker_name: how their names begin; host and process number when None.

    Returns:
        a function that takes a profiler.

    Examples:
        >>> import oar, tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with oar.profiler.Profiler(on_trace_ready=oar.profiler.export_chrome_tracing(folder, 'me')):
        ...         _ = oar.ones([2]) + 1
        ...     print([name[:8] for name in os.listdir(folder)])
        ...
        ['me_time_']
    """
    return _exporter("export_chrome_tracing", dir_name, worker_name, "paddle_trace.json", "json")


def export_protobuf(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """A function for ``on_trace_ready`` that writes protobuf files for ``load_profiler_result``.

    Args:
        dir_name: the folder of the files.
        worker_name: how their names begin; host and process number when None.

    Returns:
        a function that takes a profiler.

    Examples:
        >>> import oar, tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with oar.profiler.Profiler(on_trace_ready=oar.profiler.export_protobuf(folder, 'me')):
        ...         _ = oar.ones([2]) + 1
        ...     print([name[-15:] for name in os.listdir(folder)])
        ...
        ['paddle_trace.pb']
    """
    return _exporter("export_protobuf", dir_name, worker_name, "paddle_trace.pb", "pb")


def _schedule_of(scheduler: Any) -> Callable[[int], ProfilerState]:
    if scheduler is None:
        return _always
    if callable(scheduler):
        return scheduler
    if not isinstance(scheduler, (tuple, list)) or len(scheduler) != 2 or scheduler[1] <= max(scheduler[0], 0):
        raise AssertionError(f"[Profiler] scheduler is {scheduler!r}. Pass a function, or a pair (first step, step after the last).")
    first, end = max(scheduler[0], 0), scheduler[1]
    if first == 0:
        return lambda step: (_RECORDING[step == end - 1] if step < end else ProfilerState.CLOSED)
    return make_scheduler(closed=first - 1, ready=1, record=end - first, repeat=1)


def _targets_of(targets: Iterable[ProfilerTarget] | None) -> set[ProfilerTarget]:
    if not targets:
        return set(_SUPPORTED)
    for target in targets:
        if target not in _SUPPORTED:
            warn(f"[Profiler] {target} cannot be profiled here and is left out. Pass ProfilerTarget.CPU.", stacklevel=3)
    return {target for target in targets if target in _SUPPORTED}


class _Clocks:
    """How busy the processors are, between two moments."""

    def __init__(self) -> None:
        self.elapsed, self.process = time.perf_counter(), time.process_time()
        self.system = self._system()

    @staticmethod
    def _system() -> tuple[float, float] | None:
        try:
            with open("/proc/stat") as file:
                ticks = [float(word) for word in file.readline().split()[1:]]
        except (OSError, ValueError):
            return None
        return sum(ticks), ticks[3] + ticks[4]  # idle, and waiting for disks

    def utilization(self) -> dict[str, str]:
        """Since the object was created."""
        now = _Clocks()
        elapsed = max(now.elapsed - self.elapsed, 1e-9)
        facts = {"Process Cpu Utilization": f"{(now.process - self.process) / elapsed:.6f}"}
        if self.system and now.system:
            ticks, idle = now.system[0] - self.system[0], now.system[1] - self.system[1]
            facts["System Cpu Utilization"] = f"{1 - idle / ticks if ticks > 0 else 0:.6f}"
        return facts


class Profiler:
    """Records what a program does between ``start`` and ``stop``, or inside a ``with``: calls of ops, kernels, layers, phases
    of training, loading of data, ranges of the user, memory. It costs nothing while it does not record.

    Args:
        targets: devices to profile; all that can be when None.
        scheduler: which steps are recorded: a function of the step's number that returns a ``ProfilerState``
            (``make_scheduler`` creates one), or a pair (first step, step after the last); every step when None.
        on_trace_ready: called with the profiler when a recording is complete. None writes traces to ``./profiler_log/``.
        record_shapes: note types and shapes of operands.
        profile_memory: note every allocation of tensors.
        timer_only: measure steps and loading only, for ``step_info``.
        emit_nvtx: accepted for compatibility; it concerns NVIDIA's tools.
        custom_device_types: types of plug-in devices; all when empty.
        with_flops: count the arithmetic of every call, by the cost of its op.
        with_stack: record the calls of your Python functions. This slows Python down.

    ``events`` has the calls of ops of the last recording, as (name, begin, end, thread, depth, operands), in nanoseconds.
    ``profiler_result`` has the trees of all events.

    Examples:
        >>> import oar
        >>> with oar.profiler.Profiler(record_shapes=True, on_trace_ready=lambda p: None) as profiler:
        ...     _ = oar.ones([2, 2]) @ oar.ones([2, 2])
        ...
        >>> [event[5] for event in profiler.events if event[0] == 'matmul']
        ['float32[2, 2], float32[2, 2]']
    """

    def __init__(
        self,
        *,
        targets: Iterable[ProfilerTarget] | None = None,
        scheduler: Callable[[int], ProfilerState] | Sequence[int] | None = None,
        on_trace_ready: Callable[[Profiler], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        timer_only: bool = False,
        emit_nvtx: bool = False,
        custom_device_types: Sequence[str] = (),
        with_flops: bool = False,
        with_stack: bool = False,
    ) -> None:
        self.targets = _targets_of(targets)
        self.scheduler = _schedule_of(scheduler)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.timer_only, self.emit_nvtx, self.with_flops, self.with_stack = timer_only, emit_nvtx, with_flops, with_stack
        self.custom_device_types = list(custom_device_types)
        self.step_num = 0
        self.previous_state = ProfilerState.CLOSED
        self.current_state = self.scheduler(self.step_num)
        self.record_event: RecordEvent | None = None
        self.profiler_result: ProfilerResult | None = None
        self._clocks: _Clocks | None = None  # of the recording that runs
        if on_trace_ready is None and not timer_only:
            self.on_trace_ready = export_chrome_tracing("./profiler_log/")

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.stop()
        return False

    @property
    def events(self) -> list[tuple]:
        """The calls of ops in the last recording: (name, begin, end, thread, depth, operands)."""
        rows = self.profiler_result.events if self.profiler_result else []
        return [(e.name, e.begin, e.end, e.thread, e.depth, e.operands) for e in rows if e.kind == OP]

    # recording -----------------------------------------------------------------------------------

    def _record(self) -> None:
        if _C.profile_is_running():
            raise RuntimeError("[Profiler.start] another profiler records already. Stop it first.")
        _path.watch()
        self._clocks = _Clocks()
        shapes = self.record_shapes
        _C.profile_start(shapes, self.profile_memory, self.with_flops, self.with_stack, _C.get_flag("profile_events"))

    def _finish(self) -> ProfilerResult | None:
        if self._clocks is None:
            return None
        rows, dropped, start_ns = _C.profile_stop()
        _path.unwatch()
        facts = self._clocks.utilization()
        self._clocks = None
        facts |= {"Dropped Events": str(dropped), "Start Time": str(start_ns), "Process Id": str(os.getpid())}
        return ProfilerResult([Event(*row) for row in rows], None, facts)

    def _hand_over(self, result: ProfilerResult | None) -> None:
        self.profiler_result = result
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _change_state(self, before: ProfilerState, now: ProfilerState) -> None:
        result = None
        if before is ProfilerState.READY and now is ProfilerState.CLOSED:
            warn("[Profiler.step] the schedule goes from READY to CLOSED: nothing was recorded.", stacklevel=3)
        if before is ProfilerState.RECORD and now not in _RECORDING:
            warn(f"[Profiler.step] the schedule goes from RECORD to {now.name}: what was recorded is dropped. "
                 "End a recording with RECORD_AND_RETURN.", stacklevel=3)  # fmt: skip
            self._finish()
        if before is ProfilerState.RECORD_AND_RETURN:
            result = self._finish()
        if now in _RECORDING and self._clocks is None:
            self._record()
        if before is ProfilerState.RECORD_AND_RETURN:
            self._hand_over(result)

    def _begin_step(self) -> None:
        self.record_event = RecordEvent(f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep)
        self.record_event.begin()

    def _end_step(self) -> None:
        if self.record_event is not None:
            self.record_event.end()
            self.record_event = None

    def start(self) -> None:
        """Start with step 0, in the state that the schedule gives it."""
        if not self.timer_only:
            self._change_state(ProfilerState.CLOSED, self.current_state)
            utils._is_profiler_used = True
        benchmark().begin()
        if not self.timer_only:
            self._begin_step()

    def stop(self) -> None:
        """Stop, and hand over what is being recorded."""
        benchmark().end()
        if self.timer_only:
            return
        self._end_step()
        utils._is_profiler_used = False
        if self.current_state is ProfilerState.READY:
            warn("[Profiler.stop] the profiler was READY and has recorded nothing.", stacklevel=2)
        if self._clocks is not None:
            self._hand_over(self._finish())

    def step(self, num_samples: int | None = None) -> None:
        """End a step, and begin the next one in the state that the schedule gives it.

        Args:
            num_samples: how many samples the step has processed, for ``step_info``.
        """
        benchmark().step(num_samples)
        if self.timer_only:
            return
        self._end_step()
        self.previous_state = self.current_state
        self.step_num += 1
        self.current_state = self.scheduler(self.step_num)
        self._change_state(self.previous_state, self.current_state)
        self._begin_step()

    def step_info(self, unit: str | None = None) -> str:
        """The means of the steps since the last call: seconds of loading (``reader_cost``) and of a step (``batch_cost``), and
        the throughput (``ips``), in samples if ``step`` is told their number, else in steps.

        Args:
            unit: what a sample is called, such as ``images``.

        Returns:
            a text.

        Examples:
            >>> import oar
            >>> profiler = oar.profiler.Profiler(timer_only=True)
            >>> profiler.start()
            >>> for _ in range(3):
            ...     profiler.step(num_samples=32)
            >>> profiler.step_info('images').split()[-1]
            'images/s'
            >>> profiler.stop()
        """
        return benchmark().step_info(unit)

    # results -------------------------------------------------------------------------------------

    def export(self, path: str = "", format: str = "json") -> None:
        """Write the last recording to a file. Without one nothing is written.

        Args:
            path: the file.
            format: ``json`` for chrome://tracing and Perfetto, ``pb`` for ``load_profiler_result``, ``html`` for a report with
                a flame graph and the memory over time.
        """
        if self.profiler_result is not None:
            self.profiler_result.save(path, format)

    def summary(
        self,
        sorted_by: SortedKeys = SortedKeys.CPUTotal,
        op_detail: bool = True,
        thread_sep: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] = "ms",
        views: SummaryView | Sequence[SummaryView] | None = None,
    ) -> str:
        """Print tables of the last recording.

        Args:
            sorted_by: how the rows are sorted.
            op_detail: show the kernels of each op.
            thread_sep: a table of ops for each thread.
            time_unit: ``s``, ``ms``, ``us`` or ``ns``.
            views: the tables to print; all that have content when None.

        Returns:
            the printed text; empty without a recording.

        Examples:
            >>> import oar
            >>> from oar.profiler import Profiler, SummaryView
            >>> with Profiler(on_trace_ready=lambda p: None) as profiler:
            ...     _ = oar.ones([2, 2]) @ oar.ones([2, 2])
            ...
            >>> text = profiler.summary(views=SummaryView.OperatorView)  # doctest: +ELLIPSIS
            -...
            >>> 'matmul' in text
            True
        """
        if self.profiler_result is None:
            return ""
        data = StatisticData(self.profiler_result.get_data(), self.profiler_result.get_extra_info())
        text = _build_table(data, sorted_by=sorted_by, op_detail=op_detail, thread_sep=thread_sep, time_unit=time_unit, views=views)
        print(text)
        return text


# a profiler by configuration -------------------------------------------------------------------------


def _configured(entry: Any) -> Any:
    """What ``{name: {module, use_direct, args, kwargs}}`` describes."""
    ((name, spec),) = entry.items()
    found = getattr(importlib.import_module(spec["module"]), name)
    return found if spec["use_direct"] else found(*spec["args"], **spec["kwargs"])


def _as_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def get_profiler(config_path: str) -> Profiler:
    """A profiler as a JSON file describes it. What the file describes wrongly has its default, after a warning.

    Args:
        config_path: a file with an object that may have ``targets``, ``scheduler``, ``on_trace_ready`` and ``timer_only``.

    Returns:
        a profiler.
    """
    try:
        with open(config_path) as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        warn(f"[get_profiler] {config_path!r} cannot be read: {error}. The profiler has default settings.", stacklevel=2)
        return Profiler()
    readers: dict[str, Callable[[Any], Any]] = {
        "targets": lambda names: [ProfilerTarget[name.upper()] for name in names],
        "scheduler": lambda entry: _configured(entry) if isinstance(entry, dict) else (entry[0], entry[1]),
        "on_trace_ready": _configured,
        "timer_only": _as_bool,
    }
    chosen: dict[str, Any] = {}
    for key in readers.keys() & config.keys():
        try:
            chosen[key] = readers[key](config[key])
        except Exception as error:  # whatever a configured function raises
            warn(f"[get_profiler] {key} of {config_path!r} is wrong: {error}. It has its default.", stacklevel=2)
    return Profiler(**chosen)
