"""Activations that look along an axis."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.activation.plain import _Activation
from oar.nn.layer.layers import Layer

__all__ = ["GLU", "LogSoftmax", "Softmax", "Softmax2D"]


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
    """``exp(x) / sum(exp(x))`` along one axis.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Softmax()(oar.to_tensor([[1.0, 2.0, 3.0]]))
        Tensor(shape=[1, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.09003057, 0.24472845, 0.66524088]])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self._axis)


class LogSoftmax(_AlongAxis):
    """The logarithm of ``Softmax``, computed without overflow.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.LogSoftmax()(oar.to_tensor([[1.0, 2.0, 3.0]]))
        Tensor(shape=[1, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[-2.40760612, -1.40760601, -0.40760604]])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self._axis)


class GLU(_AlongAxis):
    """The first half along an axis, times the sigmoid of the second.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.GLU()(oar.to_tensor([[1.0, 2.0, 0.0, 10.0]]))
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.50000000, 1.99990916]])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(x, self._axis)


class Softmax2D(_Activation):
    """``Softmax`` over the channels of ``[batch, channels, height, width]``, or without the batch.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Softmax2D()(oar.zeros([1, 4, 1, 1])).flatten()
        Tensor(shape=[4], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.25000000, 0.25000000, 0.25000000, 0.25000000])
    """

    def forward(self, x: Tensor) -> Tensor:
        assert x.ndim in (3, 4), f"Softmax2D takes a tensor with 3 or 4 axes, but received one of shape {x.shape}."
        return F.softmax(x, axis=-3)
