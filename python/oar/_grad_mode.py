"""Switches for recording gradients."""

from __future__ import annotations

import functools

from oar import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


class _Mode:
    """A context manager and decorator that sets the mode for its extent."""

    _enabled = False
    _before: Any = None  # the modes to return to: (the latest, those before it)

    if TYPE_CHECKING:  # else the type of an instance would be what __new__ returns, which is anything

        def __init__(self, func: Any = None) -> None: ...

    def __new__(cls, func: Any = None) -> Any:
        if func is not None and callable(func):  # used as a decorator without brackets
            return cls()(func)
        return object.__new__(cls)

    def __enter__(self) -> _Mode:
        self._before = (_C.set_grad_enabled(self._enabled), self._before)
        return self

    def __exit__(self, kind: object = None, error: object = None, trace: object = None) -> Literal[False]:
        mode, self._before = self._before
        _C.set_grad_enabled(mode)
        return False

    def __call__(self, func: _Function) -> _Function:
        import inspect

        make = type(self)
        if inspect.isgeneratorfunction(func):
            @functools.wraps(func)
            def wrapper(*args, **kwargs):
                with make():
                    generator = func(*args, **kwargs)
                while True:
                    try:
                        with make():
                            value = next(generator)
                    except StopIteration as stop:
                        return stop.value
                    yield value
        else:
            @functools.wraps(func)
            def wrapper(*args, **kwargs):
                with make():
                    return func(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


class no_grad(_Mode):  # noqa: N801
    """Within it, nothing is recorded.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> with oar.no_grad():
        ...     y = x * 2
        ...
        >>> y.stop_gradient
        True
    """


class enable_grad(_Mode):  # noqa: N801
    """Within it, calls are recorded, even inside ``no_grad``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> with oar.no_grad(), oar.enable_grad():
        ...     y = x * 2
        ...
        >>> y.stop_gradient
        False
    """

    _enabled = True


class set_grad_enabled(_Mode):  # noqa: N801
    """Records or not from here on, or for the extent of a ``with``.

    Args:
        mode: whether to record.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> with oar.set_grad_enabled(False):
        ...     y = x * 2
        ...
        >>> y.stop_gradient
        True
    """

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self._enabled = bool(mode)
        self._before = (_C.set_grad_enabled(self._enabled), None)

    def clone(self) -> set_grad_enabled:
        """Another one with the same mode, for a decorator that is called more than once."""
        return type(self)(self._enabled)

    def __enter__(self) -> set_grad_enabled:
        return self

    def __call__(self, func: _Function) -> _Function:
        self.__exit__()
        mode = self._enabled

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with set_grad_enabled(mode):
                return func(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


def is_grad_enabled() -> bool:
    """Whether calls are recorded.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_grad_enabled()
        True
        >>> with oar.no_grad():
        ...     print(oar.is_grad_enabled())
        ...
        False
    """
    return _C.is_grad_enabled()
