"""What is known of a plug-in's device. A plug-in reports the number of its devices, and nothing about each."""

from __future__ import annotations

import types
from typing import Any

from oar.device._plugged import device_of

__all__ = ["get_device_properties"]


def get_device_properties(device: Any = None) -> types.SimpleNamespace:
    """What is known of a plug-in's device: its ``name``.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.

    Returns:
        an object with the attribute ``name``.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.get_device_properties('npu:0')
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """
    return types.SimpleNamespace(name=device_of("get_device_properties", device))
