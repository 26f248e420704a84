"""Helpers of programs: optional imports, versions, functions that go out of use."""

from __future__ import annotations

import functools
import importlib
import re
import types
import warnings
from collections.abc import Callable

from oar import _C

__all__ = ["deprecated", "require_version", "try_import"]


def try_import(module_name: str, err_msg: str | None = None) -> types.ModuleType:
    """The module of that name; if it is not installed, an ImportError that says how to get it.

    Args:
        module_name: the name of the module.
        err_msg: the text of the error, or None.

    Examples:
        >>> import oar
        >>> oar.utils.try_import('math').sqrt(4.0)
        2.0
    """
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        package = {"cv2": "opencv-python"}.get(module_name, module_name.split(".")[0])
        text = err_msg or f"{module_name} is needed here and cannot be imported. `pip install {package}` installs it."
        raise ImportError(text) from error


def deprecated(update_to: str = "", since: str = "", reason: str = "", level: int = 0) -> Callable:
    """Marks a function as deprecated. Level 0 only changes its docstring, 1 warns at each call, 2 is an
    error.

    Args:
        update_to: what to use instead.
        since: the version that deprecated it.
        reason: why.
        level: 0 documents it, 1 warns at each call, 2 raises.

    Examples:
        >>> import oar
        >>> @oar.utils.deprecated(update_to='new', since='1.0', level=0)
        ... def old():
        ...     return 1
        ...
        >>> old()
        1
    """

    def mark(function: Callable) -> Callable:
        text = f"{function.__module__}.{function.__name__} is deprecated"
        text += f" since {since}" if since else ""
        text += f"; use {update_to} instead" if update_to else ""
        text += f". Reason: {reason}" if reason else ""
        function.__doc__ = f"Deprecated: {text}.\n\n{function.__doc__ or ''}"
        if level == 0:
            return function

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if level > 1:
                raise RuntimeError(text)
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return wrapper

    return mark


def strtobool(val: str) -> bool:
    """The truth value that a word of a configuration or of the environment stands for.

    Args:
        val: 'y', 'yes', 't', 'true', 'on', '1', or the opposite of one, in any case.

    Returns:
        a bool.

    Examples:
        >>> from oar.utils import strtobool
        >>> strtobool("on"), strtobool("False")
        (True, False)
    """
    word = val.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"[strtobool] {val!r} is no truth value. hint: pass one such as 'true' or 'false'.")


def _numbers(version: str, what: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise TypeError(f"[require_version] {what} must be a string such as '1.4.0', not {type(version).__name__}.")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(f"[require_version] {what} is {version!r}; it must look like '1.4.0'.")
    return tuple([*map(int, version.split(".")), 0, 0, 0][:4])


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raises unless Oar's version is between min_version and max_version.

    Args:
        min_version: the oldest version that will do.
        max_version: the newest version that will do, or None.

    Examples:
        >>> import oar
        >>> oar.utils.require_version('0.0.1')
    """
    least = _numbers(min_version, "min_version")
    most = None if max_version is None else _numbers(max_version, "max_version")
    here = _numbers(re.split(r"[^\d.]", _C.version)[0].rstrip("."), "Oar's version")
    if here < least or (most is not None and here > most):
        wanted = f"{min_version} or newer" if most is None else f"from {min_version} to {max_version}"
        raise RuntimeError(f"[require_version] this is Oar {_C.version}; a version {wanted} is needed.")
