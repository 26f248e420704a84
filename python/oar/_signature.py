"""Readable signatures of ops, derived from their schemas on request, and the name that the user called."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import Any

from oar._C import Tensor, is_users_file
from oar._schema_types import python_type, result_type

_EMPTY = inspect.Parameter.empty


def _default(text: str | None) -> Any:
    if text is None:
        return _EMPTY
    try:
        return eval(text, {"__builtins__": {}}, {})  # a literal of our own records
    except NameError:
        return text  # a dtype's name


def signature_of(
    schema: list[dict], broadcasts: bool, results: int, returns_list: bool
) -> inspect.Signature:
    """From the parameters of a schema."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters, optional = [], False
    for p in schema:
        default = _default(p["default"])
        # Python wants defaults from the first one on; a required argument after one is still required.
        if default is _EMPTY and optional:
            default = ...
        optional |= default is not _EMPTY
        annotation = python_type(p["text"], broadcasts)
        parameters.append(inspect.Parameter(p["name"], kind, default=default, annotation=annotation))
    parameters.append(inspect.Parameter("name", kind, default=None, annotation="str | None"))
    if results == 1 and not returns_list and not any(p["written"] or p["name"] == "out" for p in schema):
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
        parameters.append(out)
    return inspect.Signature(parameters, return_annotation=result_type(results, returns_list))


def signature_text(name: str, signature: inspect.Signature) -> str:
    """``sum(x: Tensor, axis: int | None = None) -> Tensor``."""
    text = str(signature.replace(
        parameters=[p.replace(annotation=_Bare(p.annotation)) for p in signature.parameters.values()],
        return_annotation=_Bare(signature.return_annotation)))
    return name + text


class _Bare:
    """An annotation that is printed without quotes."""

    def __new__(cls, annotation: Any) -> Any:
        return super().__new__(cls) if isinstance(annotation, str) else annotation

    def __init__(self, annotation: str) -> None:
        self.text = annotation

    def __repr__(self) -> str:
        return self.text


def _unwrapped(value: Any) -> Any:
    return inspect.unwrap(value)


@functools.lru_cache(maxsize=None)
def _attached_name(function: types.FunctionType) -> str:
    """The name under which a function is a method or property of Tensor; its own name if it is neither."""
    if _unwrapped(vars(Tensor).get(function.__name__)) is function:
        return function.__name__
    for name, value in vars(Tensor).items():
        if _unwrapped(value) is function or (isinstance(value, property) and value.fget is function):
            return name
    return function.__name__


def _is_public(function: types.FunctionType, names: dict[str, Any]) -> bool:
    """Whether users know it: a module lists it, or it is a name of the package itself or of a tensor."""
    name = function.__name__
    listed = name in names.get("__all__", ()) or _unwrapped(getattr(sys.modules["oar"], name, None)) is function
    return listed or _unwrapped(getattr(Tensor, _attached_name(function), None)) is function or _is_property(function)


def _is_property(function: types.FunctionType) -> bool:
    value = vars(Tensor).get(_attached_name(function))
    return isinstance(value, property) and value.fget is function


def _public_function(frame: types.FrameType | None) -> types.FunctionType | None:
    """The outermost function of the package on the way from the user's code to this frame.

    It stops at methods: the caller of a layer learns which function inside it failed.
    """
    found = None
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        code = frame.f_code
        named: Any = frame.f_globals.get(code.co_name)
        function = inspect.unwrap(named)
        if getattr(function, "__code__", None) is code:
            if _is_public(function, frame.f_globals):
                found = function
        elif code.co_varnames[:1] in (("self",), ("cls",)):
            break
        frame = frame.f_back
    return found


def called_as(op: Any) -> tuple[str, str]:
    """The name of the function through which the user called an op, and its signature."""
    function = _public_function(sys._getframe(1))
    name = op.__name__ if function is None else _attached_name(function)
    return name, signature_text(name, inspect.signature(op if function is None else function))


def called_function(_: None) -> tuple[str, str]:
    """The name of the function of the package that the user called; empty if there is none."""
    function = _public_function(sys._getframe(1))
    return ("", "") if function is None else (_attached_name(function), "")
