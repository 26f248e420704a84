"""``flops``: how many operations a network takes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import oar
from oar.hapi._calls import as_written, listed
from oar.hapi.static_flops import Table

__all__ = ["flops"]

_COUNTS = ("total_ops", "total_params", "input_shape", "output_shape")


def flops(net: Any, input_size: Any, custom_ops: dict | None = None, print_detail: bool = False) -> int:
    """Counts the multiply-adds of a network's layers for an input, and prints the total.

    Convolutions, linear layers, batch norms, average pools and a few activations are counted; layers of other kinds count
    zero, which is printed.

    Args:
        net: the network.
        input_size: the shape of its input.
        custom_ops: functions ``f(layer, inputs, output)`` by type of layer, which add to ``layer.total_ops``.
        print_detail: print a table of all layers.

    Returns:
        an int; -1, with a warning, if ``net`` is not a ``Layer``.

    Examples:
        >>> import oar
        >>> count = oar.flops(oar.nn.Linear(4, 8), [2, 4])  # doctest: +ELLIPSIS
        <class 'oar.nn...Linear'>'s flops has been counted
        Total Flops: 64     Total Params: 40
        >>> count
        64
    """
    if isinstance(net, oar.static.Program):
        raise NotImplementedError("[flops] counts layers, not ops of a Program; pass the network instead.")
    if not isinstance(net, oar.nn.Layer):
        warnings.warn(f"[flops] net should be a Layer, but received {type(net).__name__}.", stacklevel=2)
        return -1
    return dynamic_flops(net, oar.randn(input_size), custom_ops, print_detail)


def dynamic_flops(model: Any, inputs: Any, custom_ops: dict | None = None, print_detail: bool = False) -> int:
    """As ``flops``, for an input.

    Examples:
        >>> import oar
        >>> from oar.hapi.dynamic_flops import dynamic_flops
        >>> count = dynamic_flops(oar.nn.ReLU(), oar.ones([3]))  # doctest: +ELLIPSIS
        <class 'oar.nn...ReLU'>'s flops has been counted
        Total Flops: 0     Total Params: 0
    """
    leaves = [layer for layer in model.sublayers(include_self=True) if not list(layer.children())]
    training = model.training
    model.eval()
    hooks = _attach(leaves, custom_ops or {})
    try:
        with oar.no_grad(), as_written():
            model(inputs)
        rows = [_row(layer) for layer in leaves if "output_shape" in layer._buffers]
    finally:
        for hook in hooks:
            hook.remove()
        for layer in leaves:
            for name in _COUNTS:
                layer._buffers.pop(name, None)
        if training:
            model.train()
    if print_detail:
        table = Table(["Layer Name", "Input Shape", "Output Shape", "Params", "Flops"])
        for row in rows:
            table.add_row(row)
        table.print_table()
    total = sum(row[4] for row in rows)
    print(f"Total Flops: {total}     Total Params: {sum(row[3] for row in rows)}")
    return total


def _attach(leaves: list[Any], custom_ops: dict) -> list[Any]:
    """Hooks that count; what each type of layer counts is printed."""
    hooks, known, told = [], _counters(), set()
    for layer in leaves:
        kind = type(layer)
        counter = custom_ops.get(kind) or known.get(kind)
        if kind not in told:
            told.add(kind)
            if kind in custom_ops:
                print(f"Customize Function has been applied to {kind}")
            elif counter is not None:
                print(f"{kind}'s flops has been counted")
            else:
                print(f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.")
        layer.register_buffer("total_ops", oar.zeros([1], dtype="int64"))
        layer.register_buffer("total_params", oar.zeros([1], dtype="int64"))
        if counter is not None:
            hooks.append(layer.register_forward_post_hook(counter))
        hooks += [layer.register_forward_post_hook(count_parameters), layer.register_forward_post_hook(count_io_info)]
    return hooks


def count_parameters(layer: Any, inputs: Any, output: Any) -> None:
    """Writes the number of a layer's parameters into its buffer ``total_params``: a hook after the layer's call.

    Args:
        layer: the layer.
        inputs: what it was called with.
        output: what it returned.
    """
    layer.total_params[0] = sum(math.prod(p.shape) for p in layer.parameters())


def count_io_info(layer: Any, inputs: Any, output: Any) -> None:
    """Keeps the shapes of a layer's first input and result in its buffers: a hook after the layer's call.

    Args:
        layer: the layer.
        inputs: what it was called with.
        output: what it returned.
    """
    layer.register_buffer("input_shape", oar.to_tensor(inputs[0].shape, dtype="int64"))
    layer.register_buffer("output_shape", oar.to_tensor(listed(output)[0].shape, dtype="int64"))


def _row(layer: Any) -> list[Any]:
    return [layer.full_name(), layer.input_shape.tolist(), layer.output_shape.tolist(), int(layer.total_params.item()),
            int(layer.total_ops.item())]


def _counters() -> dict[type, Callable]:
    nn = oar.nn
    table: dict[type, Callable] = dict.fromkeys((nn.ReLU, nn.ReLU6, nn.Dropout), _count_nothing)
    table.update(dict.fromkeys((nn.Conv1D, nn.Conv2D, nn.Conv3D, nn.Conv1DTranspose, nn.Conv2DTranspose, nn.Conv3DTranspose),
                               _count_convolution))
    table.update(dict.fromkeys((nn.BatchNorm2D, nn.BatchNorm), _count_norm))
    table.update(dict.fromkeys((nn.AvgPool1D, nn.AvgPool2D, nn.AvgPool3D), _count_results))
    table.update(dict.fromkeys((nn.AdaptiveAvgPool1D, nn.AdaptiveAvgPool2D, nn.AdaptiveAvgPool3D), _count_adaptive_pool))
    table[nn.LeakyReLU] = _count_inputs
    table[nn.Linear] = _count_linear
    return table


def __getattr__(name: str) -> Any:
    if name == "register_hooks":  # for programs that count by themselves: what each type of layer counts
        return _counters()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _add(layer: Any, count: float) -> None:
    layer.total_ops += abs(int(count))


def _count_nothing(layer: Any, inputs: Any, output: Any) -> None:
    pass


def _count_inputs(layer: Any, inputs: Any, output: Any) -> None:
    _add(layer, math.prod(inputs[0].shape))


def _count_results(layer: Any, inputs: Any, output: Any) -> None:
    _add(layer, math.prod(output.shape))


def _count_convolution(layer: Any, inputs: Any, output: Any) -> None:
    each = inputs[0].shape[1] / layer._groups * math.prod(layer.weight.shape[2:]) + (layer.bias is not None)
    _add(layer, math.prod(output.shape) * each)


def _count_norm(layer: Any, inputs: Any, output: Any) -> None:
    _add(layer, 2 * math.prod(inputs[0].shape))  # statistics are known in eval mode: a scale and a shift


def _count_linear(layer: Any, inputs: Any, output: Any) -> None:
    _add(layer, layer.weight.shape[0] * math.prod(output.shape))


def _count_adaptive_pool(layer: Any, inputs: Any, output: Any) -> None:
    window = math.prod(before // after for before, after in zip(inputs[0].shape[2:], output.shape[2:]))
    _add(layer, (window + 1) * math.prod(output.shape))
