"""Times of steps and of loading data: ``benchmark()``."""

from __future__ import annotations

from time import perf_counter
from typing import Any

__all__ = ["Benchmark", "Event", "TimeAverager", "benchmark"]


class TimeAverager:
    """The mean of times since the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was recorded."""
        self._total_iters = 0
        self._total_time = 0.0
        self._total_samples = 0

    def record(self, usetime: float, num_samples: int | None = None) -> None:
        """Add a time, and how many samples it was for."""
        self._total_iters += 1
        self._total_time += usetime
        self._total_samples += num_samples or 0

    def get_average(self) -> float:
        """Seconds of one record; 0 without records."""
        return self._total_time / self._total_iters if self._total_iters else 0.0

    def get_ips_average(self) -> float:
        """Samples in a second."""
        return self._total_samples / self._total_time if self._total_samples and self._total_time else 0.0

    def get_step_average(self) -> float:
        """Records in a second."""
        return self._total_iters / self._total_time if self._total_time else 0.0


class _Extremes:
    """The largest, the smallest and the sum of values."""

    def __init__(self) -> None:
        self.largest, self.smallest, self.total = 0.0, float("inf"), 0.0

    def add(self, value: float) -> None:
        self.largest, self.smallest = max(self.largest, value), min(self.smallest, value)
        self.total += value

    def summary(self, average: float) -> dict[str, float]:
        return {"max": self.largest, "min": self.smallest, "avg": average}


class Event:
    """The times of one task, such as a training. Its first 10 steps are not part of the summary: they are slower."""

    skip_iter = 10

    def __init__(self) -> None:
        self.reader_cost_averager, self.batch_cost_averager = TimeAverager(), TimeAverager()
        self.total_samples = self.total_iters = 0
        self.reader_records, self.batch_records, self.speed_records = _Extremes(), _Extremes(), _Extremes()
        self.dataset: Any = None  # that the task reads; while another one is read, time does not count
        self.need_record = True
        self.speed_mode = self.speed_unit = "samples/s"

    def reset(self) -> None:
        """Start new means."""
        self.reader_cost_averager.reset()
        self.batch_cost_averager.reset()

    def record_reader(self, usetime: float) -> None:
        """Add the time of loading a batch."""
        self.reader_cost_averager.record(usetime)
        if self.total_iters >= self.skip_iter:
            self.reader_records.add(usetime)

    def record_batch(self, usetime: float, num_samples: int | None = None) -> None:
        """Add the time of a step."""
        if num_samples is None:
            self.speed_mode = self.speed_unit = "steps/s"
        self.batch_cost_averager.record(usetime, num_samples)
        self.total_iters += 1
        if self.total_iters <= self.skip_iter:
            return
        self.batch_records.add(usetime)
        self.total_samples += num_samples or 0
        if usetime > 0:
            self.speed_records.add((1 if self.speed_mode == "steps/s" else num_samples or 0) / usetime)

    def speed_average(self) -> float:
        """Samples or steps in a second since the last reset."""
        batches = self.batch_cost_averager
        return batches.get_ips_average() if self.speed_mode == "samples/s" else batches.get_step_average()

    def get_summary(self) -> dict[str, Any]:
        """Times and speed of all steps after the first 10; empty if there were not more."""
        steps, spent = self.total_iters - self.skip_iter, self.batch_records.total
        if steps <= 0 or spent <= 0:
            return {}
        done = self.total_samples if self.speed_mode == "samples/s" else steps
        return {
            "reader_summary": self.reader_records.summary(self.reader_records.total / steps),
            "batch_summary": self.batch_records.summary(spent / steps),
            "ips_summary": self.speed_records.summary(done / spent),
            "reader_ratio": 100 * self.reader_records.total / spent,
        }


def _summary_text(event: Event) -> str:
    summary = event.get_summary()
    if not summary:
        return ""
    lines = ["Perf Summary".center(100, "=")]
    if summary["reader_ratio"]:
        lines.append(f"Reader Ratio: {summary['reader_ratio']:.3f}%")
    lines.append(f"Time Unit: s, IPS Unit: {event.speed_unit}")

    def row(*cells: str) -> str:
        return "| " + " | ".join(cell.center(15) for cell in cells) + " |"

    lines.append(row("", "avg", "max", "min"))
    for title, key in (("reader_cost", "reader_summary"), ("batch_cost", "batch_summary"), ("ips", "ips_summary")):
        values = summary[key]
        if title != "reader_cost" or values["avg"]:
            lines.append(row(title, *(f"{values[k]:.5f}" for k in ("avg", "max", "min"))))
    return "\n".join(lines)


class Benchmark:
    """Measures how long steps and loading take. ``Profiler`` calls it, and so does ``DataLoader`` while a task is measured.

    Tasks nest: an evaluation inside of a training has its own times.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.start_time = self.start_reader = perf_counter()

    @property
    def current_event(self) -> Event | None:
        """The innermost task; None if nothing is measured."""
        return self.events[-1] if self.events else None

    def begin(self) -> None:
        """Begin a task."""
        self.events.append(Event())
        self.start_time = perf_counter()
        _watch_loaders()

    def step(self, num_samples: int | None = None) -> None:
        """End a step of ``num_samples`` samples."""
        event = self.current_event
        if event is None or not event.need_record:
            return
        now = perf_counter()
        event.record_batch(now - self.start_time, num_samples)
        self.start_time = now

    def step_info(self, unit: str | None = None) -> str:
        """The means since the last call, as text: ``reader_cost``, ``batch_cost`` and ``ips``."""
        event = self.current_event
        if event is None:
            raise RuntimeError("[Profiler.step_info] nothing is measured. Call start() first.")
        message = ""
        if reader := event.reader_cost_averager.get_average():
            message += f" reader_cost: {reader:.5f} s"
        if batch := event.batch_cost_averager.get_average():
            event.speed_unit = "steps/s" if event.speed_mode == "steps/s" else f"{unit or 'samples'}/s"
            message += f" batch_cost: {batch:.5f} s"
        if speed := event.speed_average():
            message += f" ips: {speed:.3f} {event.speed_unit}"
        event.reset()
        return message

    def before_reader(self) -> None:
        """A batch is about to be loaded."""
        self.start_reader = perf_counter()

    def after_reader(self) -> None:
        """A batch has been loaded."""
        event = self.current_event
        if event is not None and event.need_record:
            event.record_reader(perf_counter() - self.start_reader)

    def check_if_need_record(self, loader: Any) -> None:
        """Stop the clock while a loader of another dataset is read, such as that of an evaluation."""
        event = self.current_event
        if event is None:
            return
        dataset = getattr(loader, "dataset", loader)
        if event.dataset is None:
            event.dataset = dataset
        was = event.need_record
        event.need_record = event.dataset is dataset
        if event.need_record and not was:
            self.start_time = perf_counter()

    def end(self) -> None:
        """End the task, and print a summary if it had more than 10 steps."""
        event = self.current_event
        if event is None:
            return
        if text := _summary_text(event):
            print(text)
        self.events.pop()
        self.start_time = perf_counter()
        _watch_loaders()


_benchmark_ = Benchmark()


def benchmark() -> Benchmark:
    """The clock of steps that all profilers share."""
    return _benchmark_


def _watch_loaders() -> None:
    """Have loaders tell the clock while a task is measured."""
    from oar.io import reader
    from oar.profiler.utils import loading

    reader._observe = loading if _benchmark_.events else None
