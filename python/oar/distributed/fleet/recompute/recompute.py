"""``recompute`` and ``recompute_sequential``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.distributed.fleet.recompute._block import Block
from oar.distributed.fleet.recompute._program import recomputed_in_program

__all__ = ["recompute", "recompute_sequential"]


def recompute(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function without keeping what its derivative needs; the function runs again when the derivative is computed.

    So a network needs the memory of its blocks' inputs and of one block at a time, for about a third more work. Results and
    gradients are the same to the bit, and gradients of any order can be computed. Calls can be nested: a block inside of a block
    keeps nothing either.

    The function must compute the same when it runs again. It draws the same random numbers, with the same mixed precision. What
    it changes outside, such as the running statistics of a batch norm, it changes twice. In a captured function
    (``oar.jit.to_static``) the program computes the values of the block again in its backward half, from the random numbers of the
    forward half.

    Args:
        function: a layer or a function.
        args: its arguments. Tensors may be in tuples, lists and dicts.
        kwargs: its keyword arguments, and these options:

            - ``preserve_rng_state`` (True): draw the same random numbers when the function runs again. Without it, a function
              that draws random numbers gets wrong gradients.
            - ``use_reentrant`` (True): accepted for compatibility. Both values do the same: gradients reach the parameters even
              if no argument requires a gradient.
            - ``offload_indices`` (``[]``): positions of tensor arguments that wait in the memory of the host for the second run. Those
              on the CPU are there already.

    Returns:
        what the function returns.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> from oar.distributed.fleet.utils import recompute
        >>> block = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 4))
        >>> x = oar.ones([2, 4])
        >>> recompute(block, x).sum().backward()
        >>> block[0].weight.grad.shape
        [4, 16]
    """
    preserve = _flag("preserve_rng_state", kwargs.pop("preserve_rng_state", True))
    _flag("use_reentrant", kwargs.pop("use_reentrant", True))
    offload = _positions(kwargs.pop("offload_indices", None), args)
    if not callable(function):
        raise TypeError(f"[recompute] function must be a layer or a function, but received {type(function).__name__}. "
                        "Pass what is to be called first, then its arguments.")
    return run_block(function, args, kwargs, preserve, offload)


def run_block(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], preserve_rng_state: bool = True,
    offload: frozenset[int] | bool = False,
) -> Any:  # fmt: skip
    """Calls the function as a block that runs again for the derivative, here or in the program that is being captured."""
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    if _C.is_capturing():
        return recomputed_in_program(function, args, kwargs)
    if _has_other_kinds((args, kwargs)):
        return function(*args, **kwargs)  # a batched or dual tensor belongs to its transform, which may end before the derivative
    return Block(function, args, kwargs, preserve_rng_state, offload).run(args, kwargs)


def _has_other_kinds(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.is_dense()
    if isinstance(value, dict):
        return any(_has_other_kinds(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_has_other_kinds(item) for item in value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, int)):
        raise TypeError(f"[recompute] {name} must be True or False, but received {value!r}.")
    return bool(value)


def _positions(indices: Any, args: tuple[Any, ...]) -> frozenset[int]:
    if indices is None:
        return frozenset()
    if not isinstance(indices, (list, tuple, set, frozenset)) or not all(type(i) is int for i in indices):
        raise TypeError(f"[recompute] offload_indices must be a list of positions of arguments, but received {indices!r}.")
    for i in indices:
        if not 0 <= i < len(args) or not isinstance(args[i], Tensor):
            what = f"argument {i} is a {type(args[i]).__name__}" if 0 <= i < len(args) else f"there are {len(args)} arguments"
            raise ValueError(f"[recompute] offload_indices has {i}, but {what}. List positions of positional arguments that are tensors.")
    return frozenset(indices)


def recompute_sequential(
    ctx: dict[str, Any], functions: Callable[..., Any] | Sequence[Callable[..., Any]], *args: Any, **kwargs: Any
) -> Any:
    """Calls layers one after the other, in segments of which all but the last are recomputed.

    Args:
        ctx: the options: ``'segments'`` (1), into how many segments the layers are divided, and ``'preserve_rng_state'``
            (True), see ``recompute``. The derivative begins with the last segment, which is therefore not worth recomputing: with one
            segment nothing is.
        functions: an ``nn.Sequential``, or a list of layers or functions. Each gets the result of the one before it.
        args: the arguments of the first.
        kwargs: the keyword arguments of the first.

    Returns:
        the result of the last.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> from oar.incubate.distributed.fleet import recompute_sequential
        >>> net = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 2))
        >>> recompute_sequential({'segments': 3}, net, oar.ones([8, 10])).shape
        [8, 2]
    """
    if not isinstance(ctx, dict):
        raise TypeError(f"[recompute_sequential] ctx must be a dict such as {{'segments': 2}}, but received {type(ctx).__name__}.")
    layers: list[Any] = list(functions.children() if hasattr(functions, "children") else functions)  # type: ignore[arg-type]
    segments = ctx.get("segments", 1)
    if not isinstance(segments, int) or not 1 <= segments <= max(len(layers), 1):
        raise ValueError(f"[recompute_sequential] segments is {segments!r}, but there are {len(layers)} layers. "
                         f"Pass an integer from 1 to {max(len(layers), 1)}.")
    preserve = _flag("preserve_rng_state", ctx.get("preserve_rng_state", True))
    size = len(layers) // segments
    for number in range(segments):
        last = number == segments - 1
        part = layers[number * size :] if last else layers[number * size : (number + 1) * size]
        result = _in_turn(part, args, kwargs) if last else run_block(lambda *a, part=part, **k: _in_turn(part, a, k), args, kwargs, preserve)
        args, kwargs = (result,), {}
    return args[0]


def _in_turn(layers: list[Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not layers:
        return args[0] if len(args) == 1 else args
    result = layers[0](*args, **kwargs)
    for layer in layers[1:]:
        result = layer(result)
    return result
