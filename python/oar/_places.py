"""Places and devices."""

from __future__ import annotations

import builtins

from oar import _C


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


class CUDAPlace:
    """A device that this build does not have.

    Args:
        args: vectors, or one list of them.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.CUDAPlace(0)
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        RuntimeError
    """

    def __init__(self, *args):
        raise RuntimeError(f"there is no {type(self).__name__} here; devices other than the CPU are plug-ins. "
                           "Use CPUPlace(), or ask is_compiled_with_cuda() first.")


class CUDAPinnedPlace(CUDAPlace):
    """Memory that this build does not have.

    Examples:
        >>> import oar
        >>> issubclass(oar.CUDAPinnedPlace, oar.CUDAPlace)
        True
    """


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
        return False


def place_of(device: str):
    return CPUPlace() if device == "cpu" else DevicePlace(device)


def set_device(device: str):
    """Chooses the device of new tensors: ``'cpu'``, or a device of a plug-in.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> oar.set_device('cpu')
        Place(cpu)
    """
    name = device if isinstance(device, str) else "cpu" if device.is_cpu_place() else device.device
    _C.set_device(name)
    return place_of(_C.get_device())


def get_device() -> str:
    """The device of new tensors.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> oar.get_device()
        'cpu'
    """
    return _C.get_device()


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
