"""Casting by op: matrix products in the low type, delicate ops in float32."""

from __future__ import annotations

import functools
from typing import Literal

from oar import _C

_LEVELS = ("O0", "OD", "O1", "O2")


class auto_cast:  # noqa: N801
    """A context manager and decorator in which each op's operands are cast according to its record.

    Args:
        enable: whether autocast is on.
        custom_white_list: names of ops that compute in 16 bits as well.
        custom_black_list: names of ops that stay in float32.
        level: 'O1' casts the ops that gain from it; 'O2' casts all but those that need float32.
        dtype: 'float16' or 'bfloat16'.
        use_promote: accepted for compatibility.

    Examples:
        >>> import oar
        >>> x = oar.ones([2, 2])
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     y = x @ x
        ...
        >>> y.dtype
        oar.bfloat16
    """

    def __init__(self, enable: bool = True, custom_white_list=None, custom_black_list=None, level: str = "O1",
                 dtype: str = "float16", use_promote: bool = True):
        if level not in _LEVELS:
            raise ValueError(f"[auto_cast] level must be one of {', '.join(_LEVELS)}, not {level!r}.")
        name = _C.dtype(dtype).name
        if name not in ("float16", "bfloat16"):
            raise ValueError(f"[auto_cast] dtype must be 'float16' or 'bfloat16', not {name!r}.")
        low, full = sorted(custom_white_list or ()), sorted(custom_black_list or ())
        if set(low) & set(full):
            raise ValueError(f"[auto_cast] {sorted(set(low) & set(full))} are in both lists.")
        self._state = (enable and level != "O0", name, low, full)
        self._before: list[tuple] = []

    def __enter__(self):
        self._before.append(_C.set_autocast(*self._state))
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        _C.set_autocast(*self._before.pop())
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return wrapper


amp_guard = auto_cast


def amp_state() -> dict[str, object] | None:
    """What ``auto_cast`` says here: its dtype, and the ops that it casts besides or not at all; None outside of it.

    Examples:
        >>> import oar
        >>> from oar.amp.auto_cast import amp_state
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     print(amp_state()['dtype'])
        ...
        bfloat16
    """
    enabled, dtype, low, full = _C.get_autocast()
    return {"dtype": dtype, "custom_white_list": set(low), "custom_black_list": set(full)} if enabled else None


class _GlobalState:
    """What ``auto_cast`` says, as attributes."""

    use_master_grad = False

    @property
    def amp_dtype(self) -> str:
        """The dtype of ops that are cast, as it is or would be."""
        enabled, dtype, _, _ = _C.get_autocast()
        return dtype if enabled else "float32"


_global_state = _GlobalState()


def amp_global_state() -> _GlobalState:
    """What ``auto_cast`` says here, under another of Paddle's inner names.

    Examples:
        >>> import oar
        >>> from oar.amp.auto_cast import amp_global_state
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     print(amp_global_state().amp_dtype)
        ...
        bfloat16
    """
    return _global_state


def autocast(device_type: str | None = None, dtype: str = "float16", enabled: bool = True, cache_enabled: bool = True) -> auto_cast:
    """``auto_cast`` with the arguments that PyTorch has.

    Args:
        device_type: the kind of device, which changes nothing here.
        dtype: 'float16' or 'bfloat16'.
        enabled: whether autocast is on.
        cache_enabled: accepted for compatibility.

    Returns:
        a context manager.

    Examples:
        >>> import oar
        >>> with oar.autocast('cpu', dtype='bfloat16'):
        ...     print((oar.ones([2, 2]) @ oar.ones([2, 2])).dtype)
        ...
        oar.bfloat16
    """
    return auto_cast(enable=enabled, dtype=dtype)


def is_autocast_enabled(device_type: object = None) -> bool:
    """Whether ``auto_cast`` is on.

    Args:
        device_type: the kind of device, which changes nothing here.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_autocast_enabled()
        False
    """
    return bool(_C.get_autocast()[0])


def get_autocast_dtype(device_type: object = None) -> str:
    """The dtype that ``auto_cast`` computes in here; 'float16' where it is off.

    Args:
        device_type: the kind of device, which changes nothing here.

    Returns:
        the name of a dtype.

    Examples:
        >>> import oar
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     print(oar.get_autocast_dtype())
        ...
        bfloat16
    """
    enabled, dtype, *_ = _C.get_autocast()
    return str(dtype) if enabled else "float16"


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype
