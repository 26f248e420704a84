"""Which device is meant: one that is there, or one of a plug-in."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._places import DeviceUnavailable, device_name, unavailable
from oar.framework.core import get_all_custom_device_type, get_available_custom_device, get_available_device

__all__ = ["available", "device_of", "memory_unknown"]


def available(what: str, device: Any = None) -> str:
    """The full name of a device that is there, such as ``cpu`` or ``npu:0``.

    Args:
        what: the function that asks, for the error.
        device: the device; None is the current one.
    """
    name = _C.get_device() if device is None else device_name(device)
    if name in get_all_custom_device_type():
        name += ":0"
    if name not in get_available_device():
        raise unavailable(what, name)
    return name


def device_of(what: str, device: Any = None) -> str:
    """The full name of a plug-in's device.

    Args:
        what: the function that asks, for the error.
        device: the device, or its number among those of the first plug-in; None is the current device if a plug-in has
            it, or else the first one of a plug-in.
    """
    plugged = get_available_custom_device()
    if not plugged and not isinstance(device, str):
        raise unavailable(what, "device of a plug-in")
    if device is None:
        return _C.get_device() if _C.get_device() in plugged else plugged[0]
    if isinstance(device, int):
        device = f"{get_all_custom_device_type()[0]}:{device}"
    name = available(what, device)
    if name not in plugged:
        raise ValueError(f"[{what}] {name} is not a device of a plug-in; those are {', '.join(plugged) or 'not loaded'}.")
    return name


def memory_unknown(what: str, name: str) -> DeviceUnavailable:
    """The error for a question about the memory of a plug-in's device."""
    return DeviceUnavailable(f"[{what}] the plug-in of {name} does not report its memory. hint: ask the tools of the "
                             "device, or add up the nbytes of your tensors.")
