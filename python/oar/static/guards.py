"""Blocks of code that say something about the calls within: names, devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from oar._framework import CPUPlace
from oar.framework import unique_name

__all__ = ["cpu_places", "cuda_places", "device_guard", "name_scope", "xpu_places"]


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Names made within begin with the prefix."""
    current = unique_name.switch(None)
    unique_name.switch(current)
    before = current.prefix
    current.prefix = f"{before}{prefix}/" if prefix else before
    try:
        yield
    finally:
        current.prefix = before


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Calls within are for a device: ``'cpu'``, the only one there is without plug-ins."""
    kind = None if device is None else device.split(":")[0]
    if kind not in (None, "cpu", "gpu", "xpu"):
        raise ValueError(f"[device_guard] device is {device!r}; it can be 'cpu', 'gpu', 'xpu' or None.")
    yield


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """As many places on the CPU as are asked for; one when None."""
    return [CPUPlace() for _ in range(1 if device_count is None else device_count)]


def cuda_places(device_ids: Sequence[int] | None = None) -> list:
    """An error: devices other than the CPU come as plug-ins."""
    raise ValueError("cuda_places: there is no CUDA device; devices other than the CPU come as plug-ins.")


def xpu_places(device_ids: Sequence[int] | None = None) -> list:
    """An error: devices other than the CPU come as plug-ins."""
    raise ValueError("xpu_places: there is no XPU; devices other than the CPU come as plug-ins.")
