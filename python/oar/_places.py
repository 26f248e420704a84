"""Places and devices."""

from __future__ import annotations

import builtins

from oar import _C
from oar._C import Tensor


class CPUPlace:
    """The CPU.

    Examples:
        >>> import oar
        >>> oar.CPUPlace()
        Place(cpu)
        >>> oar.to_tensor([1.0], place=oar.CPUPlace()).place
        Place(cpu)
    """

    def __repr__(self) -> str:
        return "Place(cpu)"

    def __eq__(self, other) -> builtins.bool:
        return isinstance(other, CPUPlace)

    def __hash__(self) -> int:
        return hash("cpu")

    def is_cpu_place(self) -> builtins.bool:
        """True."""
        return True

    def is_gpu_place(self) -> builtins.bool:
        """False."""
        return False

    def _equals(self, other) -> builtins.bool:
        return self == other


class DeviceUnavailable(RuntimeError, ValueError):
    """What asking for a device that is not there raises. Paddle raises either of the two, so this is both."""


def unavailable(what: str, kind: str) -> DeviceUnavailable:
    """The error for something that only devices of that kind have."""
    return DeviceUnavailable(f"[{what}] there is no {kind} here; devices other than the CPU come as plug-ins. "
                             "hint: ask is_compiled_with_cuda() or device_count() first, or use CPUPlace().")


class _AbsentPlace:
    _kind: str

    def __init__(self, *args):
        raise unavailable(type(self).__name__, self._kind)


class CUDAPlace(_AbsentPlace):
    """A GPU, which this build does not have.

    Args:
        args: the number of the device.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.CUDAPlace(0)
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        DeviceUnavailable
    """

    _kind = "GPU"


class CUDAPinnedPlace(CUDAPlace):
    """Memory that this build does not have.

    Examples:
        >>> import oar
        >>> issubclass(oar.CUDAPinnedPlace, oar.CUDAPlace)
        True
    """


class XPUPlace(_AbsentPlace):
    """A Kunlun device, which this build does not have.

    Args:
        dev_id: the number of the device.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.XPUPlace(0)
        ... except ValueError as error:
        ...     print("there is no XPU here" in str(error))
        ...
        True
    """

    _kind = "XPU"

    def __init__(self, dev_id: int = 0):
        super().__init__(dev_id)


class XPUPinnedPlace(XPUPlace):
    """Memory that this build does not have.

    Examples:
        >>> import oar
        >>> issubclass(oar.XPUPinnedPlace, oar.XPUPlace)
        True
    """


class IPUPlace(_AbsentPlace):
    """A Graphcore device, which this build does not have.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.IPUPlace()
        ... except ValueError as error:
        ...     print("there is no IPU here" in str(error))
        ...
        True
    """

    _kind = "IPU"


class DevicePlace:
    """A device of a plug-in."""

    def __init__(self, device: str):
        self.device = device

    def __repr__(self) -> str:
        return f"Place({self.device})"

    def __eq__(self, other) -> builtins.bool:
        return isinstance(other, DevicePlace) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def is_cpu_place(self) -> builtins.bool:
        """False."""
        return False

    def is_gpu_place(self) -> builtins.bool:
        """False."""
        return False

    def _equals(self, other) -> builtins.bool:
        return self == other


class CustomPlace(DevicePlace):
    """A device that a plug-in brought, by its kind and number.

    Args:
        dev_type: the kind of device.
        dev_id: its number.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.CustomPlace('npu', 0)
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """

    def __init__(self, dev_type: str, dev_id: int = 0):
        counts: dict[str, int] = {kind: count for kind, count in _C.device_types()}
        if not 0 <= dev_id < counts.get(dev_type, 0):
            raise unavailable("CustomPlace", f"{dev_type}:{dev_id}")
        super().__init__(f"{dev_type}:{dev_id}")


def place_of(device: str):
    return CPUPlace() if device == "cpu" else DevicePlace(device)


def device_name(device) -> str:
    """The name of a device that is given by its name or place."""
    if isinstance(device, str):
        return device
    if isinstance(device, int):
        raise unavailable("device", f"GPU {device}")
    return "cpu" if device.is_cpu_place() else device.device


def set_device(device: str):
    """Chooses the device of new tensors: ``'cpu'``, or a device of a plug-in.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> oar.set_device('cpu')
        Place(cpu)
    """
    _C.set_device(device_name(device))
    return place_of(_C.get_device())


def get_device(input: Tensor | None = None) -> str | int:
    """The device of new tensors, or the number of a tensor's device.

    Args:
        input: a tensor, or None.

    Returns:
        a string; for a tensor the number of its device, -1 for the CPU.

    Examples:
        >>> import oar
        >>> oar.get_device(), oar.get_device(oar.ones([2]))
        ('cpu', -1)
    """
    return _C.get_device() if input is None else input.get_device()


def is_compiled_with_cuda() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_cuda()
        False
    """
    return False


def is_compiled_with_rocm() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_rocm()
        False
    """
    return False


def is_compiled_with_xpu() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_xpu()
        False
    """
    return False


def is_compiled_with_cinn() -> builtins.bool:
    """False: the compiler is Oar's own.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_cinn()
        False
    """
    return False
