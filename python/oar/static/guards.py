"""Blocks of code that say something about the calls within: names, devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from oar._places import CPUPlace
from oar.framework import unique_name

__all__ = ["cpu_places", "cuda_places", "device_guard", "name_scope", "xpu_places"]


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Names created inside begin with the prefix.

    Args:
        prefix: the prefix.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     with oar.static.name_scope('encoder'):
        ...         x = oar.static.data('x', [None, 3])
        ...         y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 1)
        >>> oar.disable_static()
    """
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
    """The device of the calls inside: ``'cpu'``, the only one without plug-ins.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     with oar.static.device_guard('cpu'):
        ...         y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    kind = None if device is None else device.split(":")[0]
    if kind not in (None, "cpu", "gpu", "xpu"):
        raise ValueError(f"[device_guard] device is {device!r}; it can be 'cpu', 'gpu', 'xpu' or None.")
    yield


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """The requested number of places on the CPU; one if None.

    Args:
        device_count: how many.

    Examples:
        >>> import oar
        >>> oar.static.cpu_places(2)
        [Place(cpu), Place(cpu)]
    """
    return [CPUPlace() for _ in range(1 if device_count is None else device_count)]


def cuda_places(device_ids: Sequence[int] | None = None) -> list:
    """Raises an error: devices other than the CPU come as plug-ins.

    Args:
        device_ids: accepted for compatibility.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.static.cuda_places()
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        ValueError
    """
    raise ValueError("cuda_places: there is no CUDA device; devices other than the CPU are plug-ins.")


def xpu_places(device_ids: Sequence[int] | None = None) -> list:
    """Raises an error: devices other than the CPU come as plug-ins.

    Args:
        device_ids: accepted for compatibility.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.static.xpu_places()
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        ValueError
    """
    raise ValueError("xpu_places: there is no XPU; devices other than the CPU are plug-ins.")
