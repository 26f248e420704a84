"""Activations as layers."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["GELU", "LogSoftmax", "ReLU", "Sigmoid", "Silu", "Softmax", "Tanh"]


class _Activation(Layer):
    """An activation without settings."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def extra_repr(self) -> str:
        return f"name={self._name}" if self._name else ""


class ReLU(_Activation):
    """``max(x, 0)``."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Silu(_Activation):
    """``x * sigmoid(x)``."""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


class GELU(Layer):
    """``x`` times the normal distribution function of ``x``; by tanh when ``approximate``."""

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__()
        self._approximate = approximate
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, self._approximate)

    def extra_repr(self) -> str:
        return f"approximate={self._approximate}" + (f", name={self._name}" if self._name else "")


class _AlongAxis(Layer):
    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis = axis
        self._name = name

    def forward(self, x: Tensor) -> Any:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"axis={self._axis}" + (f", name={self._name}" if self._name else "")


class Softmax(_AlongAxis):
    """``exp(x) / sum(exp(x))`` along one axis."""

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self._axis)


class LogSoftmax(_AlongAxis):
    """The logarithm of ``Softmax``, computed without overflow."""

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self._axis)
