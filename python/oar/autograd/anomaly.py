"""Anomaly mode: errors in backward show where the forward call was made."""

from __future__ import annotations

from typing import Any, Literal

from oar import _C
from oar.nn import _path

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def _switch(mode: bool, check_nan: bool) -> tuple[bool, bool]:
    before = _C.anomaly_mode()
    if mode and not before[0]:
        _path.watch()
    elif before[0] and not mode:
        _path.unwatch()
    _C.set_anomaly_mode(mode, check_nan)
    return before


class set_detect_anomaly:
    """Turns anomaly mode on or off, for good, or inside a ``with``.

    In anomaly mode every call on the tape notes the lines of your code that made it, and the path of its layer. If its backward
    fails, the error shows them. With ``check_nan``, a backward that returns NaN fails. Both cost time: use it to find a mistake.

    Args:
        mode: whether anomaly mode is on.
        check_nan: whether NaN in a gradient is an error.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([-1.0], stop_gradient=False)
        >>> with oar.autograd.set_detect_anomaly(True):
        ...     y = oar.sqrt(x)
        ...     try:
        ...         y.backward()
        ...     except RuntimeError as error:
        ...         print('NaN' in str(error), 'forward call' in str(error))
        ...
        True True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> set_detect_anomaly:
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        _switch(*self._before)
        return False


class detect_anomaly:
    """Anomaly mode inside a ``with``: see ``set_detect_anomaly``.

    Args:
        check_nan: whether NaN in a gradient is an error.

    Examples:
        >>> import oar
        >>> x = oar.ones([2], dtype='float32')
        >>> x.stop_gradient = False
        >>> with oar.autograd.detect_anomaly():
        ...     (x * 2).sum().backward()
        ...
        >>> x.grad.tolist()
        [2.0, 2.0]
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._before: list[Any] = []

    def __enter__(self) -> detect_anomaly:
        self._before.append(_switch(True, self._check_nan))
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        _switch(*self._before.pop())
        return False


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    Examples:
        >>> import oar
        >>> oar.autograd.is_anomaly_enabled()
        False
    """
    return _C.anomaly_mode()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether NaN in a gradient is an error.

    Examples:
        >>> import oar
        >>> oar.autograd.is_anomaly_check_nan_enabled()
        False
    """
    return _C.anomaly_mode()[1]
