"""Where time and memory go: ops, kernels, layers, loading of data, ranges of the user."""

from oar.profiler import profiler_statistic, statistic_helper, timer, utils  # noqa: F401
from oar.profiler.event_types import TracerEventType  # noqa: F401
from oar.profiler.profiler import (
    Profiler,
    ProfilerState,
    ProfilerTarget,
    export_chrome_tracing,
    export_protobuf,
    make_scheduler,
)
from oar.profiler.profiler_statistic import SortedKeys
from oar.profiler.utils import RecordEvent, load_profiler_result
from oar.profiler.views import SummaryView

__all__ = ["Profiler", "ProfilerState", "ProfilerTarget", "RecordEvent", "SortedKeys", "SummaryView",
           "export_chrome_tracing", "export_protobuf", "load_profiler_result", "make_scheduler"]  # fmt: skip
