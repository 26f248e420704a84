"""The CPU: memory of tensors, and the random stream."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar._framework import get_rng_state as _get_rng_state
from oar._framework import seed as _seed
from oar._framework import set_rng_state as _set_rng_state
from oar.device._plugged import available, memory_unknown

__all__ = [
    "device_count", "empty_cache", "get_rng_state", "manual_seed", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "reset_max_memory_allocated", "reset_max_memory_reserved", "set_rng_state",
]  # fmt: skip


def device_count() -> int:
    """The number of devices beside the CPU that the package itself drives: 0. Plug-ins count theirs.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.device.device_count()
        0
    """
    return 0


def _of_cpu(what: str, device: Any) -> None:
    name = available(what, device)
    if name != "cpu":
        raise memory_unknown(what, name)


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors take.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> before = oar.device.memory_allocated()
        >>> x = oar.zeros([1000])
        >>> oar.device.memory_allocated() - before >= 4000
        True
    """
    _of_cpu("memory_allocated", device)
    return _C.memory_stats()["allocated"]


def memory_reserved(device: Any = None) -> int:
    """The bytes that the allocator holds, for tensors that are there and for those to come. Very small tensors need none.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> x = oar.ones([1 << 20])
        >>> oar.device.memory_reserved() >= 4 << 20
        True
    """
    _of_cpu("memory_reserved", device)
    return _C.memory_stats()["reserved"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors took at once.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.device.reset_max_memory_allocated()
        >>> before = oar.device.max_memory_allocated()
        >>> x = oar.zeros([1000])
        >>> del x
        >>> oar.device.max_memory_allocated() - before >= 4000
        True
    """
    _of_cpu("max_memory_allocated", device)
    return _C.memory_stats()["peak_allocated"]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator held at once.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.device.max_memory_reserved() >= oar.device.memory_reserved()
        True
    """
    _of_cpu("max_memory_reserved", device)
    return _C.memory_stats()["peak_reserved"]


def reset_max_memory_allocated(device: Any = None) -> None:
    """From now on ``max_memory_allocated`` and ``max_memory_reserved`` tell the most since this call.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Examples:
        >>> import oar
        >>> oar.device.reset_max_memory_allocated()
        >>> oar.device.max_memory_allocated() == oar.device.memory_allocated()
        True
    """
    _of_cpu("reset_max_memory_allocated", device)
    _C.reset_peak_memory()


def reset_max_memory_reserved(device: Any = None) -> None:
    """The same as ``reset_max_memory_allocated``: both maxima start anew together.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Examples:
        >>> import oar
        >>> oar.device.reset_max_memory_reserved()
        >>> oar.device.max_memory_reserved() == oar.device.memory_reserved()
        True
    """
    reset_max_memory_allocated(device)


def empty_cache() -> None:
    """Returns the memory that the allocator holds without need to the system.

    Examples:
        >>> import oar
        >>> oar.device.empty_cache()
    """
    _C.release_cached_memory()


def get_rng_state(device: Any = None) -> Tensor:
    """The place in the random stream.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Returns:
        a tensor, for ``set_rng_state``.

    Examples:
        >>> import oar
        >>> state = oar.device.get_rng_state()
        >>> first = oar.rand([2])
        >>> oar.device.set_rng_state(state)
        >>> bool((oar.rand([2]) == first).all())
        True
    """
    return _get_rng_state()[0]


def set_rng_state(new_state: Tensor, device: Any = None) -> None:
    """Goes back to a place that ``get_rng_state`` gave.

    Args:
        new_state: what ``get_rng_state`` returned.
        device: the device, ``'cpu'``; None is the current one.

    Examples:
        >>> import oar
        >>> oar.device.set_rng_state(oar.device.get_rng_state())
    """
    _set_rng_state(new_state)


def manual_seed(seed: int) -> None:
    """Starts the random stream anew.

    Args:
        seed: the seed.

    Examples:
        >>> import oar
        >>> oar.device.manual_seed(7)
        >>> first = oar.rand([2])
        >>> oar.device.manual_seed(7)
        >>> bool((oar.rand([2]) == first).all())
        True
    """
    _seed(seed)
