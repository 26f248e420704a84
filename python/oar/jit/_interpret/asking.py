"""Tensors for which only the run determines whether they require a gradient: one branch returns a constant, one does not."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret.world import Decline, World

__all__ = ["asks", "check", "check_backward", "marked", "pass_on"]


def asks(world: World, value: Any) -> Any:
    """True or False, or a tensor that holds it."""
    if not isinstance(value, Tensor) or value.stop_gradient:
        return False
    return world.asking[id(value)][1] if id(value) in world.asking else True


def marked(world: World, tensor: Tensor, asked: Any) -> Tensor:
    """The tensor as one that requires a gradient, does not, or may."""
    if isinstance(asked, Tensor):
        if not tensor.stop_gradient:
            world.asking[id(tensor)] = (tensor, asked)
        return tensor
    return tensor if asked or tensor.stop_gradient else tensor.detach()


def pass_on(world: World, made: Any, inputs: Any) -> None:
    """After a call: if all inputs that ask only may do so, the results only may as well."""
    if not world.asking:
        return
    given = _tensors(inputs, [])
    found = [asks(world, t) for t in given]
    flags = [flag for flag in found if isinstance(flag, Tensor)]
    if not flags:
        return
    results = _tensors(made, [])
    if any(r is t for r in results for t in given):
        raise Decline("it writes to a tensor, and a branch determines whether it requires a gradient")
    if any(flag is True for flag in found):
        return
    flag = flags[0]
    for other in flags[1:]:
        flag = flag if other is flag else _C.ops.logical_or(flag, other)
    for tensor in results:
        if not tensor.stop_gradient:
            world.asking[id(tensor)] = (tensor, flag)


def check_backward(world: World, what: str) -> None:
    """Declines ``backward()`` if a branch decides which tensors get a gradient: no gradient is not a gradient of zeros."""
    check(world, what)
    if world.asked_one_way:
        raise Decline(f"{what}, and a branch determines which tensors have a gradient")


def check(world: World, what: str) -> None:
    """Declines what needs to know it now."""
    if world.asking:
        raise Decline(f"{what}, and a branch determines whether a tensor requires a gradient")


def _tensors(value: Any, found: list) -> list[Tensor]:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _tensors(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _tensors(item, found)
    elif isinstance(value, slice):
        _tensors((value.start, value.stop, value.step), found)
    return found
