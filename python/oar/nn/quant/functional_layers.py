"""Functions as layers, so that quantisation can observe what they take and return."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor, ops
from oar.nn.layer import Layer

__all__ = [
    "FloatFunctionalLayer", "add", "concat", "divide", "flatten", "matmul", "multiply", "reshape", "subtract", "transpose",
]  # fmt: skip


class FloatFunctionalLayer(Layer):
    """A function of the package as a layer without parameters.

    Examples:
        >>> import oar
        >>> layer = oar.nn.quant.add()
        >>> layer(oar.to_tensor([1.0]), oar.to_tensor([2.0])).tolist()
        [3.0]
    """


class add(FloatFunctionalLayer):
    """``oar.add`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.add()(oar.to_tensor([1.0]), oar.to_tensor([2.0])).tolist()
        [3.0]
    """

    def forward(self, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        return ops.add(x, y)


class subtract(FloatFunctionalLayer):
    """``oar.subtract`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.subtract()(oar.to_tensor([1.0]), oar.to_tensor([2.0])).tolist()
        [-1.0]
    """

    def forward(self, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        return ops.subtract(x, y)


class multiply(FloatFunctionalLayer):
    """``oar.multiply`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.multiply()(oar.to_tensor([3.0]), oar.to_tensor([2.0])).tolist()
        [6.0]
    """

    def forward(self, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        return ops.multiply(x, y)


class divide(FloatFunctionalLayer):
    """``oar.divide`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.divide()(oar.to_tensor([3.0]), oar.to_tensor([2.0])).tolist()
        [1.5]
    """

    def forward(self, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        return ops.divide(x, y)


class reshape(FloatFunctionalLayer):
    """``oar.reshape`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.reshape()(oar.to_tensor([1.0, 2.0]), [2, 1]).tolist()
        [[1.0], [2.0]]
    """

    def forward(self, x: Tensor, shape: Sequence[int], name: str | None = None) -> Tensor:
        return ops.reshape(x, shape)


class transpose(FloatFunctionalLayer):
    """``oar.transpose`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.transpose()(oar.to_tensor([[1.0, 2.0]]), [1, 0]).tolist()
        [[1.0], [2.0]]
    """

    def forward(self, x: Tensor, perm: Sequence[int], name: str | None = None) -> Tensor:
        return ops.transpose(x, perm)


class concat(FloatFunctionalLayer):
    """``oar.concat`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.concat()([oar.to_tensor([1.0]), oar.to_tensor([2.0])]).tolist()
        [1.0, 2.0]
    """

    def forward(self, x: Sequence[Tensor], axis: int = 0, name: str | None = None) -> Tensor:
        return ops.concat(x, axis)


class flatten(FloatFunctionalLayer):
    """``oar.flatten`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.flatten()(oar.to_tensor([[1.0], [2.0]])).tolist()
        [1.0, 2.0]
    """

    def forward(self, x: Tensor, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Tensor:
        return ops.flatten(x, start_axis, stop_axis)


class matmul(FloatFunctionalLayer):
    """``oar.matmul`` as a layer.

    Examples:
        >>> import oar
        >>> oar.nn.quant.matmul()(oar.to_tensor([[1.0, 2.0]]), oar.to_tensor([[3.0], [4.0]])).tolist()
        [[11.0]]
    """

    def forward(
        self, x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
    ) -> Tensor:
        return ops.matmul(x, y, transpose_x, transpose_y)
