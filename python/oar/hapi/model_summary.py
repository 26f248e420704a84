"""``summary``: the layers of a network as a table."""

from __future__ import annotations

import math
import numbers
from typing import Any

import oar
from oar._C import Tensor
from oar.hapi._calls import as_written

__all__ = ["summary"]


def summary(net: Any, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Prints the layers of a network in the order in which they run: shapes, parameters, memory.

    Args:
        net: the network.
        input_size: the shape of the input, as a tuple or an ``InputSpec``, or a list of them, one for each input. One size
            may be None or -1, which counts as 1.
        dtypes: the dtype of the inputs, or a list of them; float32 when None.
        input: an input to run instead: a tensor, or what else ``forward`` takes as its only argument.

    Returns:
        a dict with ``total_params`` and ``trainable_params``.

    Examples:
        >>> import oar
        >>> info = oar.summary(oar.nn.Sequential(oar.nn.Linear(4, 8), oar.nn.ReLU()), (2, 4))  # doctest: +ELLIPSIS
        ---...
        >>> info
        {'total_params': 40, 'trainable_params': 40}
    """
    if not isinstance(net, oar.nn.Layer):
        raise TypeError(f"[summary] net should be a Layer, but received {type(net).__name__}.")
    if input_size is None and input is None:
        raise ValueError("[summary] input_size and input cannot be None at the same time.")
    sizes = _sizes(_shapes_in(input) if input_size is None else input_size)
    rows: dict[str, dict[str, Any]] = {}
    training = net.training
    hooks = [layer.register_forward_post_hook(_Recorder(rows)) for layer in _shown(net)]
    net.eval()
    try:
        with oar.no_grad(), as_written():
            if input is not None:
                net(input)
            else:
                net(*_inputs(sizes, dtypes))
    finally:
        for hook in hooks:
            hook.remove()
        if training:
            net.train()
    total = sum(row["params"] for row in rows.values())
    trainable = sum(row["trainable"] for row in rows.values())
    print(_table(rows) + _totals(rows, total, trainable, sum(map(math.prod, sizes))))
    return {"total_params": total, "trainable_params": trainable}


def _shapes_in(value: Any) -> Any:
    """The shapes of the tensors that were passed as ``input``."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tuple(item.shape) for item in value]
    raise ValueError(f"[summary] input is {type(value).__name__}; it should be a Tensor, or a list or dict of them. Otherwise "
                     "pass input_size.")


def _sizes(given: Any) -> list[tuple[int, ...]]:
    """The shapes of the inputs, one for each of them."""
    if isinstance(given, oar.static.InputSpec):
        given = [given]
    elif isinstance(given, numbers.Integral):
        given = [(given,)]
    elif isinstance(given, tuple) and not any(isinstance(item, (tuple, list, oar.static.InputSpec)) for item in given):
        given = [given]
    result = []
    for item in given:
        if isinstance(item, numbers.Integral):
            item = (item,)
        elif isinstance(item, oar.static.InputSpec):
            item = tuple(item.shape)
        if not isinstance(item, (tuple, list)):
            raise AssertionError(f"[summary] each item of input_size should be a tuple or an InputSpec, but there is a "
                                 f"{type(item).__name__}. A single shape is a tuple: (1, 28, 28).")
        result.append(_shape(item))
    return result


def _shape(sizes: Any) -> tuple[int, ...]:
    if sum(size is None or size == -1 for size in sizes) > 1:
        raise ValueError(f"[summary] only the batch size can be None or -1, but input_size has {tuple(sizes)}.")
    shape = tuple(1 if size is None or size == -1 else size for size in sizes)
    for size in shape:
        if size <= 0:
            raise ValueError(f"[summary] sizes should be greater than zero, but input_size has {size}.")
    return shape


def _inputs(sizes: list[tuple[int, ...]], dtypes: Any) -> list[Tensor]:
    names = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes or "float32"] * len(sizes)
    if len(names) != len(sizes):
        raise ValueError(f"[summary] there are {len(sizes)} shapes, but {len(names)} dtypes; pass one for each.")
    return [oar.cast(oar.rand(list(size)), dtype) for size, dtype in zip(sizes, names)]


def _shown(net: Any) -> list[Any]:
    """The layers that get a row: all that compute, but not the network itself if it has parts."""
    inside = net.sublayers()
    return [layer for layer in inside if not isinstance(layer, oar.nn.Sequential)] if inside else [net]


class _Recorder:
    """A hook that makes a layer's row; a layer that runs again replaces it."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self._rows = rows

    def __call__(self, layer: Any, inputs: Any, outputs: Any) -> None:
        number = layer.full_name().rpartition("_")[2]
        number = int(number) if number.isdigit() else len(self._rows)
        own = [value for value in layer._parameters.values() if value is not None]
        self._rows[f"{type(layer).__name__}-{number + 1}"] = {
            "input": _shapes(inputs), "output": _shapes(outputs),
            "params": sum(math.prod(value.shape) for value in own),
            "trainable": sum(math.prod(value.shape) for value in own if not value.stop_gradient),
            "numbers": _count(outputs)}


def _shapes(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shapes(item) for item in value]
    return list(value.shape) if hasattr(value, "shape") else None


def _count(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_count, value))
    return math.prod(value.shape) if hasattr(value, "shape") else 0


def _table(rows: dict[str, dict[str, Any]]) -> str:
    cells = [("Layer (type)", "Input Shape", "Output Shape", "Param #")]
    cells += [(name, str(row["input"]), str(row["output"]), f"{row['params']:,}") for name, row in rows.items()]
    widths = [max(least, *(len(line[i]) for line in cells[1:]), 0) for i, least in enumerate((15, 20, 20, 15))]
    lines = [" ".join(f"{cell:^{width}}" for cell, width in zip(line, widths)) for line in cells]
    across = sum(widths) + 5
    return "\n".join(["-" * across, lines[0], "=" * across, *lines[1:], "=" * across]) + "\n"


def _totals(rows: dict[str, dict[str, Any]], total: int, trainable: int, given: int) -> str:
    across = "-" * (len(_table(rows).splitlines()[0]))
    # Four bytes a number; outputs twice, for their gradients.
    inputs, passes, params = (numbers_ * 4 / 1024**2 for numbers_ in (
        given, 2 * sum(row["numbers"] for row in rows.values()), total))
    return "\n".join([
        f"Total params: {total:,}", f"Trainable params: {trainable:,}", f"Non-trainable params: {total - trainable:,}", across,
        f"Input size (MB): {inputs:0.2f}", f"Forward/backward pass size (MB): {passes:0.2f}",
        f"Params size (MB): {params:0.2f}", f"Estimated Total Size (MB): {inputs + passes + params:0.2f}", across]) + "\n"
