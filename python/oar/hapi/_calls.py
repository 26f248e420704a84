"""Calls of a network, a loss or a metric, with errors that say which tensors went where."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["as_written", "call", "forward_names", "listed", "to_array", "to_tensors"]


def listed(value: Any) -> list[Any]:
    """A list: of the value itself, unless it is one."""
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def to_tensors(values: Any) -> list[Tensor]:
    """Tensors of arrays, numbers and tensors."""
    return [value if isinstance(value, Tensor) else oar.to_tensor(value) for value in listed(values)]


def to_array(value: Any) -> Any:
    """The array of a tensor; anything else as it is."""
    return value.numpy() if isinstance(value, Tensor) else value


def plain_function(target: Any) -> Callable:
    """The function that a layer, a static function or a callable object runs."""
    function = getattr(target, "forward", target)
    return getattr(function, "dygraph_function", function)


def forward_names(network: Any) -> tuple[list[str], bool]:
    """The names of the arguments of ``forward``, and whether it takes any number of them."""
    kinds = inspect.Parameter
    parameters = list(inspect.signature(plain_function(network)).parameters.values())
    if parameters and parameters[0].name == "self":  # a plain function that was put in place of a method
        parameters = parameters[1:]
    named = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    return named, any(p.kind == kinds.VAR_POSITIONAL for p in parameters)


def call(where: str, target: Callable, args: Sequence[Any], what: str) -> Any:
    """Calls ``target``; if it does not take that many arguments, the error names ``what`` they are.

    Args:
        where: the method of the user's call, for the message.
        target: a layer or a function.
        args: its arguments.
        what: what the arguments are, and how to change that.
    """
    try:
        return target(*args)
    except TypeError as error:
        try:
            signature = inspect.signature(plain_function(target))
            signature.bind(*args)
        except TypeError:
            name = getattr(target, "__name__", type(target).__name__)
            raise TypeError(f"[{where}] {name} takes {signature}, but was called with {len(args)} "
                            f"argument{'' if len(args) == 1 else 's'}: {what}") from error
        except ValueError:  # a function without a signature
            pass
        raise


@contextlib.contextmanager
def as_written() -> Iterator[None]:
    """Static functions run as plain Python in here: hooks see their layers."""
    if "oar.jit" not in sys.modules:  # then there are none
        yield
        return
    from oar.jit.api import enable_to_static, options

    enabled = options.enabled
    if enabled:
        enable_to_static(False)
    try:
        yield
    finally:
        if enabled:
            enable_to_static(True)
