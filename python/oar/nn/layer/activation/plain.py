"""Activations without settings."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = [
    "Hardsigmoid",
    "Hardswish",
    "LogSigmoid",
    "Mish",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "Silu",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
]


class _Activation(Layer):
    """An activation without settings."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def extra_repr(self) -> str:
        return f"name={self._name}" if self._name else ""


class ReLU(_Activation):
    """``max(x, 0)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.ReLU()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0., 2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Sigmoid()(oar.to_tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.50000000, 0.88079703])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class Tanh(_Activation):
    """The hyperbolic tangent.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Tanh()(oar.to_tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.96402758])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Silu(_Activation):
    """``x * sigmoid(x)``.

    Args:
        inplace: whether the input itself is written.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Silu()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.26894143,  1.76159406])
    """

    def __init__(self, inplace: bool = False, name: str | None = None) -> None:
        super().__init__(name)
        self._inplace = inplace

    def extra_repr(self) -> str:
        return f"inplace={self._inplace}" + (f", name={self._name}" if self._name else "")

    def forward(self, x: Tensor) -> Tensor:
        made = F.silu(x)
        return ops.copy_into(x, made) if self._inplace else made


class ReLU6(_Activation):
    """``min(max(x, 0), 6)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.ReLU6()(oar.to_tensor([-1.0, 8.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0., 6.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu6(x)


class Hardswish(_Activation):
    """``x * min(max(x + 3, 0), 6) / 6``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Hardswish()(oar.to_tensor([-4.0, 1.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.       , 0.66666669])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.hardswish(x)


class Hardsigmoid(_Activation):
    """``min(max(x / 6 + 0.5, 0), 1)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Hardsigmoid()(oar.to_tensor([-4.0, 0.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.50000000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.hardsigmoid(x)


class LogSigmoid(_Activation):
    """The logarithm of the sigmoid.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.LogSigmoid()(oar.to_tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.69314718, -0.12692802])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.log_sigmoid(x)


class Mish(_Activation):
    """``x * tanh(softplus(x))``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Mish()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.30340147,  1.94395900])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.mish(x)


class Softsign(_Activation):
    """``x / (1 + |x|)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Softsign()(oar.to_tensor([-1.0, 3.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.50000000,  0.75000000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softsign(x)


class Swish(_Activation):
    """``x * sigmoid(x)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Swish()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.26894143,  1.76159406])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.swish(x)


class Tanhshrink(_Activation):
    """``x - tanh(x)``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Tanhshrink()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.23840584,  1.03597248])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.tanhshrink(x)
