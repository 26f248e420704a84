"""Arguments by name, and their ``input_spec``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor
from oar.jit.structure import is_array, is_container, items_of
from oar.static.input_spec import InputSpec

__all__ = ["argument_names", "example_arguments", "of_call", "open_sizes", "positional_names"]


def argument_names(call: Callable, args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
    """The tensors of a call with names such as ``x`` or ``batch['mask'][0]``, in the order of the key."""
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()
    for name, value in zip(positional_names(call, len(args)), args):
        _collect(name, value, found, seen)
    for name, value in kwargs.items():
        _collect(name, value, found, seen)
    return found


def positional_names(call: Callable, count: int) -> list[str]:
    """The names of so many positional arguments of a function."""
    names: list[str] = []
    try:
        for p in inspect.signature(call).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
    except (TypeError, ValueError):
        pass
    return names + [f"x{i}" for i in range(len(names), count)]


def _collect(name: str, value: Any, found: list[tuple[str, Any]], seen: set[int]) -> None:
    """The tensors that a call's key counts, in its order: one that occurs twice counts once."""
    if is_array(value):
        found.append((name, value))
    elif (isinstance(value, Tensor) or is_container(value)) and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Tensor):
            found.append((name, value))
        for key, item in items_of(value):
            _collect(f"{name}[{key!r}]", item, found, seen)


def of_call(call: Callable, args: tuple, kwargs: dict) -> list[Any] | None:
    """A call's arguments with a spec for each tensor, sizes as they are; None where they cannot be passed by position."""
    try:
        bound = inspect.signature(call).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    names = positional_names(call, len(bound.args))
    return None if bound.kwargs else [_as_spec(value, name, ()) for value, name in zip(bound.args, names)]


def _as_spec(value: Any, name: str, outer: tuple[int, ...]) -> Any:
    """``outer`` holds the identities of the containers around the value: one that holds itself stays as it is."""
    if id(value) in outer:
        return value
    outer = (*outer, id(value))
    if isinstance(value, Tensor) or is_array(value):
        return InputSpec(value.shape, value.dtype, name, getattr(value, "stop_gradient", True))
    if isinstance(value, dict):
        return {key: _as_spec(item, f"{name}_{key}", outer) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_as_spec(item, f"{name}_{i}", outer) for i, item in enumerate(value))
    return value


def open_sizes(call: Callable, spec: Any, args: tuple, kwargs: dict, tensors: list[Tensor]) -> dict[int, str]:
    """The sizes that the specs leave open, by index among all sizes. A tensor that contradicts its spec is taken as it is."""
    if spec is None:
        return {}
    wanted: list[InputSpec | None] = []
    seen: set[int] = set()
    listed = list(spec) if isinstance(spec, (list, tuple)) else [spec]
    names = positional_names(call, max(len(args), len(listed)))
    for i, value in enumerate(args):
        _pair(listed[i] if i < len(listed) else None, value, wanted, seen)
    for name, value in kwargs.items():
        place = names.index(name) if name in names else len(listed)
        _pair(listed[place] if place < len(listed) else None, value, wanted, seen)
    found: dict[int, str] = {}
    known: dict[str, tuple[int, str]] = {}
    place = 0
    for (name, _), one, tensor in zip(argument_names(call, args, kwargs), wanted, tensors):
        if one is not None and _fits(name, one, tensor, known):
            for axis, size in enumerate(one.shape):
                if size is None or isinstance(size, str):
                    found[place + axis] = size or f"{one.name or name}_{axis}".replace("[", "_").replace("]", "")
        place += len(tensor.shape)
    return found


def _pair(spec: Any, value: Any, wanted: list[InputSpec | None], seen: set[int]) -> None:
    """One spec or None for every tensor of a value."""
    if not is_array(value):
        if id(value) in seen or not (isinstance(value, Tensor) or is_container(value)):
            return
        seen.add(id(value))
    if isinstance(value, Tensor) or is_array(value):
        wanted.append(InputSpec.from_tensor(spec) if isinstance(spec, Tensor) else
                      spec if isinstance(spec, InputSpec) else None)
    for key, item in items_of(value):
        _pair(_part(spec, key), item, wanted, seen)


def _part(spec: Any, key: Any) -> Any:
    if isinstance(spec, dict):
        return spec.get(key)
    return spec[key] if isinstance(spec, (tuple, list)) and isinstance(key, int) and key < len(spec) else None


def _fits(name: str, spec: InputSpec, tensor: Tensor, known: dict[str, tuple[int, str]]) -> bool:
    """Whether a tensor is as its spec says. Warns if it is not: Paddle runs such calls, and so do we."""
    received = f"a tensor of shape {list(tensor.shape)} and dtype {tensor.dtype}"
    problem = None
    if tensor.dtype != spec.dtype:
        problem = "the dtypes differ"
    elif len(tensor.shape) != len(spec.shape):
        problem = f"the ranks are {len(spec.shape)} and {len(tensor.shape)}"
    else:
        for axis, (size, given) in enumerate(zip(spec.shape, tensor.shape)):
            if isinstance(size, str):
                before, where = known.setdefault(size, (given, f"{name}, axis {axis}"))
                if before != given:
                    problem = f"{size} is {given} at axis {axis}, but {before} in {where}"
            elif size is not None and size != given:
                problem = f"axis {axis} is {given}"
    if problem:
        warnings.warn(
            f"[to_static] argument '{name}' should be {spec}, but received {received}: {problem}. The call is captured for "
            "this tensor; correct the input_spec, or the call.",
            stacklevel=6,
        )
    return problem is None


def example_arguments(spec: Any) -> tuple:
    """Arguments that fit the specs: zeros, with small numbers for the open sizes."""
    symbols: dict[str, int] = {}

    def make(one: Any) -> Any:
        if isinstance(one, InputSpec):
            shape: list[Any] = []
            for axis, size in enumerate(one.shape):
                name = size if isinstance(size, str) else f"{id(one)}_{axis}"
                is_open = size is None or isinstance(size, str)
                shape.append(symbols.setdefault(name, 4 + len(symbols)) if is_open else size)
            tensor = oar.zeros(shape, dtype=one.dtype)
            tensor.stop_gradient = one.stop_gradient
            return tensor
        if isinstance(one, dict):
            return {key: make(item) for key, item in one.items()}
        if isinstance(one, (list, tuple)):
            return type(one)(map(make, one))
        return one

    return tuple(make(one) for one in (spec if isinstance(spec, (list, tuple)) else [spec]))
