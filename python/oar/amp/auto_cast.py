"""Casting by op: matrix products in the low type, delicate ops in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from oar import _C
from oar.amp.amp_lists import ALWAYS_FULL, own_names

__all__ = [
    "amp_global_state", "amp_guard", "amp_state", "auto_cast", "autocast", "get_autocast_cpu_dtype", "get_autocast_dtype",
    "get_autocast_gpu_dtype", "is_autocast_enabled",
]  # fmt: skip

_LEVELS = ("O0", "OD", "O1", "O2")
_DTYPES = ("float16", "bfloat16")
_F = TypeVar("_F", bound=Callable[..., Any])


class auto_cast:  # noqa: N801
    """A context manager and decorator in which each op's operands are cast according to its record.

    Args:
        enable: whether autocast is on.
        custom_white_list: names of ops that compute in 16 bits as well, Paddle's or Oar's: ``'elementwise_add'`` or ``'add'``.
        custom_black_list: names of ops that compute in float32 as well.
        level: ``'O1'`` computes the ops that gain from it in 16 bits and delicate ones in float32; the others follow their
            operands, and compute in float32 where one of these is. ``'O2'`` is for networks whose parameters ``decorate``
            has cast: delicate ops follow their operands, too. ``'OD'`` computes all ops but those that gain in float32.
            ``'O0'`` casts nothing.
        dtype: ``'float16'`` or ``'bfloat16'``.
        use_promote: at level O2, False casts to 16 bits also where an operand is in float32.

    Examples:
        >>> import oar
        >>> x = oar.ones([2, 2])
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     y = x @ x
        ...     z = y.sum()
        ...
        >>> y.dtype, z.dtype
        (oar.bfloat16, oar.float32)
        >>> with oar.amp.auto_cast(dtype='bfloat16', custom_black_list=['matmul_v2']):
        ...     y = x @ x
        ...
        >>> y.dtype
        oar.float32
    """

    def __init__(
        self,
        enable: bool = True,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        level: str = "O1",
        dtype: Any = "float16",
        use_promote: bool = True,
    ) -> None:
        upper = level.upper() if isinstance(level, str) else level
        if upper not in _LEVELS:
            raise ValueError(f"[auto_cast] level must be one of {', '.join(_LEVELS)}, not {level!r}.")
        name = _name_of(dtype)
        if name not in _DTYPES:
            if enable:
                raise ValueError(f"[auto_cast] dtype must be 'float16' or 'bfloat16', not {dtype!r}.")
            name = "float16"  # off: it says nothing
        low, full = _lists(custom_white_list, custom_black_list)
        self._state = (bool(enable) and upper != "O0", name, low, full, "O1" if upper == "O0" else upper, bool(use_promote))
        self._before: list[tuple] = []

    def __enter__(self) -> auto_cast:
        self._before.append(_C.set_autocast(*self._state))
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        _C.set_autocast(*self._before.pop())
        return False

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


amp_guard = auto_cast


def _name_of(dtype: Any) -> str:
    try:
        return _C.dtype(dtype.lower() if isinstance(dtype, str) else dtype).name
    except (TypeError, ValueError):
        return str(dtype)


def _lists(white: Iterable[str] | None, black: Iterable[str] | None) -> tuple[list[str], list[str]]:
    """The ops whose record is overridden: those for the low type, those for float32."""
    for what, names in (("custom_white_list", white), ("custom_black_list", black)):
        if isinstance(names, str):
            raise TypeError(f"[auto_cast] {what} should be a list, tuple or set of names, but received the string {names!r}. "
                            f"Pass [{names!r}].")
    given_low, given_full = set(white or ()), set(black or ())
    both = given_low & given_full
    if both:
        raise ValueError(f"[auto_cast] {', '.join(sorted(both))}: in custom_white_list and in custom_black_list. Remove it from "
                         "one of them.")
    low = own_names(given_low) if given_low else set()
    full = own_names(given_full) if given_full else set()
    return sorted(low - full), sorted((ALWAYS_FULL - low) | full)


def amp_state() -> dict[str, object] | None:
    """What ``auto_cast`` says here: its dtype and level, and the ops that it casts besides or not at all; None outside of it.

    Examples:
        >>> import oar
        >>> from oar.amp.auto_cast import amp_state
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     print(amp_state()['dtype'])
        ...
        bfloat16
    """
    enabled, dtype, low, full, level, promote = _C.get_autocast()
    if not enabled:
        return None
    return {"enable": True, "custom_white_list": set(low), "custom_black_list": set(full) - ALWAYS_FULL, "level": level,
            "dtype": dtype, "use_promote": promote}


class _GlobalState:
    """What ``auto_cast`` said last, as attributes."""

    use_master_grad = False

    @property
    def amp_dtype(self) -> str:
        """The dtype of the last ``auto_cast`` that was on, here or before; 'float32' before the first."""
        return _C.last_autocast_dtype()


_global_state = _GlobalState()


def amp_global_state() -> _GlobalState:
    """What ``auto_cast`` said last, under another of Paddle's inner names.

    Examples:
        >>> import oar
        >>> from oar.amp.auto_cast import amp_global_state
        >>> with oar.amp.auto_cast(dtype='bfloat16'):
        ...     pass
        ...
        >>> amp_global_state().amp_dtype
        'bfloat16'
    """
    return _global_state


def autocast(
    device_type: str | None = None, dtype: Any = "float16", enabled: bool = True, cache_enabled: bool = True
) -> auto_cast:
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
