"""The tables that a summary consists of."""

from __future__ import annotations

from enum import Enum

__all__ = ["SummaryView"]


class SummaryView(Enum):
    """A table of ``Profiler.summary``. ``LayerView``, time and memory by layer, is Oar's own.

    Examples:
        >>> import oar
        >>> oar.profiler.SummaryView.OperatorView.value
        5
    """

    DeviceView = 0
    OverView = 1
    ModelView = 2
    DistributedView = 3
    KernelView = 4
    OperatorView = 5
    MemoryView = 6
    MemoryManipulationView = 7
    UDFView = 8
    LayerView = 9
