"""Gradients of weights that are computed later than those of inputs: they fill the time in which a stage would wait."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import oar
from oar import _C, nn
from oar._C import Tensor, ops
from oar.autograd import PyLayer
from oar.nn.layer.layers import Layer

__all__ = ["WeightGradients"]


class WeightGradients:
    """Gradients that a backward pass has left for later."""

    def __init__(self) -> None:
        self.is_on = False
        self._waiting: list[Callable[[], None]] = []

    def split(self, network: Layer) -> int:
        """From now on, backward passes of the linear layers of a network leave the gradients of their weights for later, while it is on.

        Returns:
            how many layers that are.
        """
        layers = [layer for layer in network.sublayers(include_self=True) if type(layer) is nn.Linear]
        for layer in layers:
            layer.forward = functools.partial(_linear, layer, self)  # type: ignore[method-assign]
        return len(layers)

    def put(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)

    def take(self) -> list[Callable[[], None]]:
        """What has been left."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _linear(layer: Any, later: WeightGradients, input: Tensor) -> Tensor:
    is_plain = input.stop_gradient or not _C.is_grad_enabled() or _C.is_capturing() or _C.get_autocast()[0]
    if not later.is_on or is_plain:
        return ops.linear(input, layer.weight, layer.bias)
    return _Linear.apply(input, layer, later)


class _Linear(PyLayer):
    """A linear layer whose backward pass computes the gradient of its input alone."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, layer: Any, later: WeightGradients) -> Tensor:
        ctx.save_for_backward(input)
        ctx.layer, ctx.later = layer, later
        return ops.linear(input, layer.weight, layer.bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (input,) = ctx.saved_tensor()
        layer = ctx.layer

        def add(input: Tensor = input.detach(), gradient: Tensor = gradient.detach()) -> None:
            rows = oar.reshape(gradient, [-1, gradient.shape[-1]])
            if not layer.weight.stop_gradient:
                _add(layer.weight, oar.matmul(oar.reshape(input, [-1, input.shape[-1]]), rows, transpose_x=True))
            if layer.bias is not None and not layer.bias.stop_gradient:
                _add(layer.bias, rows.sum(0))

        ctx.later.put(add)
        return oar.matmul(gradient, layer.weight.detach(), transpose_y=True)


def _add(parameter: Tensor, gradient: Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
