"""``to_static`` and its switches."""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit.report import as_dict, options, total
from oar.jit.static_function import StaticFunction
from oar.nn.layer.layers import Layer

__all__ = [
    "capture_counts",
    "enable_to_static",
    "ignore_module",
    "not_to_static",
    "set_code_level",
    "set_verbosity",
    "sot_mode_guard",
    "to_static",
]


def to_static(
    function: Any = None, input_spec: Any = None, build_strategy: Any = None, backend: str | None = None, **kwargs: Any
) -> Any:
    """Lets a function, a method or a layer run as a captured program. A decorator, with or without arguments.

    The first call captures: the function runs once on symbolic tensors, and the ops it calls become a program, with its
    gradients. Later calls run the program. A change of anything that the function read captures it again; a
    function that needs the values of its tensors in Python runs in segments. See docs/to-static.md.

    Args:
        function: a function, a method, or a ``Layer``, whose ``forward`` is replaced.
        input_spec: ``InputSpec`` objects, in the structure of the arguments. Sizes that are None, -1 or a name are open
            from the first capture on; others are checked.
        build_strategy: taken for compatibility; programs have one way of being built.
        backend: None or ``'CINN'``, which mean the same here.
        full_graph: True: numbers that the function derives from the values of tensors, ``int(t)`` and the like among them, are
            tensors, as in a static program. False: they are Python numbers, as in eager mode. By default False, unless the
            environment says ``ENABLE_FALL_BACK=False``. What can be captured whole always is.
        property: taken for compatibility.

    Examples:
        >>> import oar
        >>> @oar.jit.to_static
        ... def f(x):
        ...     return (x * x).sum()
        ...
        >>> f(oar.to_tensor([1.0, 2.0])).item()
        5.0
    """
    if backend not in ("CINN", None):
        raise ValueError(f"The backend of to_static should be 'CINN' or None, but received {backend}.")
    unknown = set(kwargs) - {"property", "full_graph"}
    if unknown:
        raise TypeError(f"to_static() got an unexpected keyword argument {sorted(unknown)[0]!r}.")
    given = kwargs.get("full_graph")
    keeps_tensors = os.environ.get("ENABLE_FALL_BACK", "True") in ("False", "0") if given is None else bool(given)

    def decorate(target: Any) -> Any:
        if isinstance(target, Layer):
            return _static_layer(target, input_spec, keeps_tensors)
        if isinstance(target, StaticFunction):
            return StaticFunction(target._function, input_spec or target._input_spec, target._instance, keeps_tensors)
        if inspect.ismethod(target):
            return StaticFunction(target.__func__, input_spec, target.__self__, keeps_tensors)
        if not callable(target):
            raise TypeError(f"to_static() takes a function or a Layer, but received {type(target).__name__}.")
        return StaticFunction(target, input_spec, None, keeps_tensors)

    return decorate if function is None else decorate(function)


def _static_layer(layer: Layer, input_spec: Any, keeps_tensors: bool) -> Layer:
    forward = layer.forward
    if isinstance(forward, StaticFunction):
        warnings.warn(f"{type(layer).__name__}.forward is static already; it is made static again.", stacklevel=4)
        forward = forward.rollback()
    function = getattr(forward, "__func__", forward)
    instance = layer if inspect.ismethod(forward) else None
    layer.forward = StaticFunction(function, input_spec, instance, keeps_tensors)  # type: ignore[method-assign]
    return layer


@contextlib.contextmanager
def sot_mode_guard(value: bool) -> Iterator[None]:
    """Sets the opposite of the default of ``full_graph`` for the functions that become static inside.

    Args:
        value: False for ``full_graph=True``.

    Examples:
        >>> import oar
        >>> with oar.jit.api.sot_mode_guard(False):
        ...     f = oar.jit.to_static(lambda x: int(x))
        ...
        >>> f(oar.to_tensor(2.5)).dtype
        oar.int32
    """
    before = os.environ.get("ENABLE_FALL_BACK")
    os.environ["ENABLE_FALL_BACK"] = str(bool(value))
    try:
        yield
    finally:
        if before is None:
            del os.environ["ENABLE_FALL_BACK"]
        else:
            os.environ["ENABLE_FALL_BACK"] = before


def not_to_static(func: Callable | None = None) -> Callable:
    """Leaves a function as it is where ``to_static`` is applied to it.

    Args:
        func: the function.

    Examples:
        >>> import oar
        >>> @oar.jit.not_to_static
        ... def helper(x):
        ...     return x + 1
        ...
        >>> helper(oar.to_tensor([1.0])).item()
        2.0
    """
    if func is None:
        return not_to_static
    func._oar_not_to_static = True  # type: ignore[attr-defined]
    _C.static_rules_changed()
    return func


def ignore_module(modules: list[Any]) -> None:
    """Accepted for compatibility: whatever a function reads is guarded, in every module.

    Args:
        modules: a list of modules.

    Examples:
        >>> import oar
        >>> import json
        >>> oar.jit.ignore_module([json])
    """


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Whether static functions run as programs; False: as they are written.

    Args:
        enable_to_static_bool: whether static functions run as programs.

    Examples:
        >>> import oar
        >>> oar.jit.enable_to_static(False)  # static functions run as plain Python: for debugging
        >>> oar.jit.enable_to_static(True)
    """
    if not isinstance(enable_to_static_bool, bool):
        raise TypeError(
            f"enable_to_static() takes a bool, but received {type(enable_to_static_bool).__name__}."
        )
    options.enabled = enable_to_static_bool
    _C.static_rules_changed()


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Above 0: prints why each capture was done, and why a function is not captured.

    Args:
        level: 0 is silent.
        also_to_stdout: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.jit.set_verbosity(1)  # tells on the error stream what is captured, and why
        >>> oar.jit.set_verbosity(0)
    """
    options.verbosity = level


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Above 0: prints every program that is captured.

    Args:
        level: 0 is silent.
        also_to_stdout: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.jit.set_code_level(0)
    """
    options.code_level = level


def capture_counts(function: Any = None) -> dict[str, int]:
    """The number of captures, and of calls by how they ran (``whole``, ``segments``, ``eager``), for one function or all.

    Args:
        function: a static function; None counts all.

    Examples:
        >>> import oar
        >>> f = oar.jit.to_static(lambda x: x * 2)
        >>> for _ in range(3):
        ...     _ = f(oar.ones([2]))
        ...
        >>> oar.jit.capture_counts(f)
        {'captures': 1, 'whole': 3, 'segments': 0, 'eager': 0}
    """
    if isinstance(function, Layer):
        function = function.forward
    if function is None:
        return as_dict(total)
    if not isinstance(function, StaticFunction):
        raise TypeError(f"capture_counts() takes a static function or layer, but received {type(function).__name__}.")
    return as_dict(function._counts)


def set_dynamic_shape(variable: Tensor, shape_list: Sequence[int]) -> None:
    """Says which sizes of a tensor of a captured function are open: -1. Nothing to do: a size that changes is captured as open.

    Args:
        variable: the tensor.
        shape_list: its sizes.
    """
    if not isinstance(variable, Tensor):
        raise TypeError(f"[set_dynamic_shape] variable must be a tensor, not {type(variable).__name__}.")
