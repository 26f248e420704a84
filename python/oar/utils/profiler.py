"""The names that profilers had before ``oar.profiler``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oar.profiler import Profiler, SortedKeys
from oar.profiler.profiler import get_profiler

__all__ = ["Profiler", "ProfilerOptions", "cuda_profiler", "get_profiler", "profiler", "reset_profiler", "start_profiler",
           "stop_profiler"]  # fmt: skip

_KEYS = {None: SortedKeys.CPUTotal, "default": SortedKeys.CPUTotal, "calls": SortedKeys.CPUTotal, "total": SortedKeys.CPUTotal,
         "max": SortedKeys.CPUMax, "min": SortedKeys.CPUMin, "ave": SortedKeys.CPUAvg}  # fmt: skip
_running: Profiler | None = None


class ProfilerOptions:
    """Settings of a profiler by name.

    Args:
        options: values that differ from the defaults.

    Examples:
        >>> from oar.utils.profiler import ProfilerOptions
        >>> ProfilerOptions({'state': 'CPU'})['state']
        'CPU'
    """

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self.options = {"state": "All", "sorted_key": "default", "tracer_level": "Default", "batch_range": [0, 2**31],
                        "output_thread_detail": False, "profile_path": "none", "timeline_path": "none",
                        "op_summary_path": "none"} | (options or {})  # fmt: skip

    def with_state(self, state: str) -> ProfilerOptions:
        """The same settings with another state."""
        return ProfilerOptions(self.options | {"state": state})

    def __getitem__(self, name: str) -> Any:
        if name not in self.options:
            raise ValueError(f"[ProfilerOptions] there is no option {name!r}. The options are {', '.join(self.options)}.")
        return None if self.options[name] == "none" else self.options[name]


def _check(function: str, state: str, sorted_key: str | None) -> None:
    if state not in ("CPU", "GPU", "All"):
        raise ValueError(f"[{function}] state is {state!r}. Pass 'CPU', 'GPU' or 'All'.")
    if sorted_key not in _KEYS:
        raise ValueError(f"[{function}] sorted_key is {sorted_key!r}. Pass one of {', '.join(repr(k) for k in _KEYS)}.")


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Start a profiler; ``stop_profiler`` prints what it found. Does nothing if one runs.

    Args:
        state: ``CPU``, ``GPU`` or ``All``.
        tracer_option: ``Default``, ``OpDetail`` or ``AllOpDetail``; the details are always recorded.

    Examples:
        >>> import oar
        >>> oar.utils.profiler.start_profiler('CPU')
        >>> oar.utils.profiler.reset_profiler()
    """
    global _running
    _check("start_profiler", state, None)
    if tracer_option not in ("Default", "OpDetail", "AllOpDetail"):
        raise ValueError(f"[start_profiler] tracer_option is {tracer_option!r}. Pass 'Default', 'OpDetail' or 'AllOpDetail'.")
    if _running is None:
        profiler = Profiler(on_trace_ready=lambda p: None)
        profiler.start()
        _running = profiler


def stop_profiler(sorted_key: str | None = None, profile_path: str = "") -> None:
    """Stop the profiler and print its tables. Does nothing if none runs.

    Args:
        sorted_key: ``total``, ``max``, ``min`` or ``ave``; ``calls`` and ``default`` are as ``total``.
        profile_path: a file for the trace, if not empty.
    """
    global _running
    _check("stop_profiler", "All", sorted_key)
    if _running is None:
        return
    profiler, _running = _running, None
    profiler.stop()
    profiler.summary(sorted_by=_KEYS[sorted_key])
    if profile_path:
        profiler.export(os.fspath(profile_path))


def reset_profiler() -> None:
    """Drop what was recorded. The profiler stops."""
    global _running
    if _running is not None:
        profiler, _running = _running, None
        profiler.stop()


@contextmanager
def profiler(state: str, sorted_key: str | None = None, profile_path: str = "", tracer_option: str = "Default") -> Iterator[None]:
    """Profile the statements of a ``with``, and print tables at its end.

    Args:
        state: ``CPU``, ``GPU`` or ``All``.
        sorted_key: how the rows are sorted, see ``stop_profiler``.
        profile_path: a file for the trace, if not empty.
        tracer_option: see ``start_profiler``.
    """
    _check("profiler", state, sorted_key)
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextmanager
def cuda_profiler(output_file: str, output_mode: str | None = None, config: Any = None) -> Iterator[None]:
    """Raises an error: it needs NVIDIA's tools, and Oar has no back end for their devices."""
    raise RuntimeError("[cuda_profiler] Oar has no CUDA devices. Use oar.profiler.Profiler for the CPU.")
    yield
