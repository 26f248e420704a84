"""The arithmetic of Paddle's older ops, by their shapes. Profiles use the costs in the records of ops instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

__all__ = ["flops", "register_flops"]

Shapes = dict[str, list[Sequence[int]]]
Rule = Callable[[Shapes, dict[str, Any]], int]
_rules: dict[str, Rule] = {}


def register_flops(op_type: str) -> Callable[[Rule], Rule]:
    """A decorator for a function that counts the arithmetic of an op from shapes and attributes.

    Args:
        op_type: the name of the op.

    Returns:
        a decorator.

    Examples:
        >>> from oar.utils.flops import flops, register_flops
        >>> @register_flops('cube')
        ... def cube(input_shapes, attrs):
        ...     return 2 * input_shapes['X'][0][0]
        ...
        >>> flops('cube', {'X': [[5]]}, {})
        10
    """

    def register(rule: Rule) -> Rule:
        _rules[op_type] = rule
        return rule

    return register


def flops(op_type: str, input_shapes: Shapes, attrs: dict[str, Any]) -> int:
    """The arithmetic of a call; 0 for an op that is not known, or shapes that do not fit it.

    Args:
        op_type: Paddle's older name of the op, such as ``matmul_v2``.
        input_shapes: for each input, a list of shapes.
        attrs: its attributes.

    Returns:
        a number.

    Examples:
        >>> from oar.utils.flops import flops
        >>> flops('matmul_v2', {'X': [[4, 8]], 'Y': [[8, 2]]}, {})
        128
    """
    rule = _rules.get(op_type)
    if rule is None:
        return 0
    try:
        return rule(input_shapes, attrs)
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def _for_each_element(count: int) -> Rule:
    return lambda shapes, attrs: count * prod(shapes["X"][0])


for _name in ("elu", "leaky_relu", "pool", "prelu", "relu", "relu6", "silu"):
    register_flops(_name)(_for_each_element(1))
for _name, _count in (("softmax", 3), ("gelu", 5)):
    register_flops(_name)(_for_each_element(_count))
for _name in ("c_embedding", "dropout", "reshape2", "transpose2"):
    register_flops(_name)(lambda shapes, attrs: 0)


def _broadcast(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Sizes of the common shape, from the last axis."""
    length = max(len(first), len(second))
    padded = [[1] * (length - len(shape)) + list(shape) for shape in (first, second)]
    return [max(pair) for pair in zip(*padded)]


def _elementwise(shapes: Shapes, attrs: dict[str, Any]) -> int:
    return prod(_broadcast(shapes["X"][0], shapes["Y"][0]))


for _name in ("elementwise_add", "elementwise_div", "elementwise_mul"):
    register_flops(_name)(_elementwise)


@register_flops("layer_norm")
def _layer_norm(shapes: Shapes, attrs: dict[str, Any]) -> int:
    return (8 if attrs.get("epsilon") else 7) * prod(shapes["X"][0])


def _matmul(shapes: Shapes, attrs: dict[str, Any]) -> int:
    x = list(shapes["X" if "X" in shapes else "x"][0])
    y = list(shapes["Y" if "Y" in shapes else "y"][0])
    if attrs.get("transpose_X") or attrs.get("transpose_x") or attrs.get("trans_x"):
        x[-2:] = x[:-3:-1]
    if attrs.get("transpose_Y") or attrs.get("transpose_y") or attrs.get("trans_y"):
        y[-2:] = y[:-3:-1]
    return 2 * prod(_broadcast(x[:-2], y[:-2])) * x[-2] * x[-1] * y[-1]


for _name in ("matmul", "matmul_v2"):
    register_flops(_name)(_matmul)


@register_flops("conv2d")
def _conv2d(shapes: Shapes, attrs: dict[str, Any]) -> int:
    sizes, weight = shapes["Input"][0], shapes["Filter"][0]

    def for_axes(name: str) -> list[int]:
        value = attrs[name]
        return list(value) if isinstance(value, (list, tuple)) else [value] * (len(sizes) - 2)

    places = [
        (size + 2 * padding - (dilation * (kernel - 1) + 1)) // stride + 1
        for size, kernel, padding, stride, dilation in zip(
            sizes[2:], weight[2:], for_axes("paddings"), for_axes("strides"), for_axes("dilations")
        )
    ]
    results = sizes[0] * prod(places)
    sums = 2 * prod(weight[2:]) * sizes[1] * (weight[0] // attrs["groups"]) * results
    return sums + (weight[0] * results if shapes.get("Bias") else 0)
