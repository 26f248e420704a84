"""The devices there are, and the one of new tensors."""

from oar._places import (
    get_device, is_compiled_with_cinn, is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu,
    set_device)
from oar.framework.core import (
    get_all_custom_device_type,
    get_all_device_type,
    get_available_custom_device,
    get_available_device,
)

__all__ = [
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_custom_device",
    "get_available_device",
    "get_cudnn_version",
    "get_device",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_custom_device",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_device",
]


def is_compiled_with_ipu() -> bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_ipu()
        False
    """
    return False


def is_compiled_with_distribute() -> bool:
    """False: there is one process.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_distribute()
        False
    """
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether a plug-in provides devices of that kind.

    Args:
        device_type: the kind of device.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_custom_device('npu')
        False
    """
    return device_type in get_all_custom_device_type()


def get_cudnn_version() -> None:
    """None: cuDNN is not used.

    Examples:
        >>> import oar
        >>> oar.device.get_cudnn_version() is None
        True
    """
    return None
