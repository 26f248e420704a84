"""Compiles functions whose arguments are annotated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor
from oar.incubate.cc import typing as cc_typing

__all__ = ["compile"]


def _annotations_of(func: Callable[..., Any]) -> dict[str, cc_typing.Tensor]:
    found = {name: parameter.annotation for name, parameter in inspect.signature(func).parameters.items()}
    for name, annotation in found.items():
        if not isinstance(annotation, cc_typing.Tensor):
            raise TypeError(f"[compile] argument {name} of {func.__name__} must be annotated with oar.incubate.cc.typing.Tensor.")
    return found


def _check(name: str, tensor: Tensor, wanted: cc_typing.Tensor, sizes: dict[str, int], dtypes: dict[str, str]) -> None:
    """Compares a tensor with its annotation; names get their meaning from the first tensor that has them."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"[compile] argument {name} must be a Tensor, not {type(tensor).__name__}.")
    dtype = tensor.dtype.name
    if dtype not in wanted.dtype.candidates or dtypes.setdefault(wanted.dtype.name, dtype) != dtype:
        allowed = dtypes.get(wanted.dtype.name) or " or ".join(wanted.dtype.candidates)
        raise ValueError(f"[compile] argument {name} has dtype {dtype}; its annotation asks for {allowed}.")
    fits = tensor.ndim == len(wanted.shape)
    for size, dim in zip(tensor.shape, wanted.shape):
        dim = cc_typing.DimVar(dim) if isinstance(dim, int) else dim
        meant = dim.name_or_value
        meant = meant if isinstance(meant, int) else sizes.setdefault(meant, size)
        fits = fits and size == meant and (dim.min is None or size >= dim.min) and (dim.max is None or size <= dim.max)
    if not fits:
        raise ValueError(f"[compile] argument {name} has shape {list(tensor.shape)}, which its annotation "
                         f"[{', '.join(map(str, wanted.shape))}] does not allow, given the other arguments.")


def compile(
    func: Callable[..., Any], train: bool = False, ap_path: str = "", ap_workspace_dir: str = "", backend_device: str = "cpu",
    target_framework: str = "paddle", compile_engine: str = "PCC",
) -> Callable[..., Any]:  # fmt: skip
    """A function as a compiled program, for tensors that fit its annotations.

    Args:
        func: the function. Each argument is annotated with ``oar.incubate.cc.typing.Tensor``.
        train: whether gradients are computed; must be False.
        ap_path: accepted for compatibility.
        ap_workspace_dir: accepted for compatibility.
        backend_device: accepted for compatibility: the program runs where its tensors are.
        target_framework: accepted for compatibility.
        compile_engine: accepted for compatibility.

    Returns:
        a function.

    Examples:
        >>> import oar
        >>> import oar.incubate.cc as cc
        >>> import oar.incubate.cc.typing as t
        >>> n, dtype = t.DimVar('n'), t.DTypeVar('T', 'float32', 'float64')
        >>> def twice(x: t.Tensor([n], dtype), y: t.Tensor([n], dtype)):
        ...     return (x + y) * 2
        ...
        >>> cc.compile(twice)(oar.ones([2]), oar.ones([2])).tolist()
        [4.0, 4.0]
    """
    if train:
        raise ValueError("[compile] train must be False: what is compiled here has no gradient. Use oar.jit.to_static.")
    annotations = _annotations_of(func)
    program = oar.jit.to_static(func)

    @functools.wraps(func)
    def compiled(*args: Any) -> Any:
        if len(args) != len(annotations):
            raise TypeError(f"[compile] {func.__name__} takes {len(annotations)} tensors, not {len(args)}.")
        sizes: dict[str, int] = {}
        dtypes: dict[str, str] = {}
        for (name, wanted), tensor in zip(annotations.items(), args):
            _check(name, tensor, wanted, sizes, dtypes)
        with oar.no_grad():
            return program(*args)

    return compiled
