"""A linear layer over ``fused_linear``."""

from __future__ import annotations

from typing import Any

from oar import nn
from oar._C import Tensor
from oar.incubate.nn import functional as fused

__all__ = ["FusedLinear"]


class FusedLinear(nn.Layer):
    """x @ weight + bias.

    Args:
        in_features: the size of the input.
        out_features: the size of the result.
        weight_attr: attributes of the weight.
        bias_attr: attributes of the bias; False for none.
        transpose_weight: whether the weight is stored as [out_features, in_features].

    Examples:
        >>> import oar
        >>> oar.incubate.nn.FusedLinear(4, 3)(oar.ones([2, 4])).shape
        [2, 3]
    """

    def __init__(self, in_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
                 transpose_weight: bool = False, name: str | None = None) -> None:
        super().__init__()
        shape = [out_features, in_features] if transpose_weight else [in_features, out_features]
        self.weight = self.create_parameter(shape, attr=weight_attr)
        self.bias = self.create_parameter([out_features], attr=bias_attr, is_bias=True)
        self.transpose_weight = transpose_weight
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        """The result [..., out_features].

        Args:
            input: [..., in_features].
        """
        return fused.fused_linear(input, self.weight, self.bias, self.transpose_weight)
