"""The linear layer with its weight as PyTorch has it, [out, in]."""

from __future__ import annotations

import math
from typing import Any

from oar._C import Tensor
from oar.compat.nn import functional
from oar.nn.initializer import Uniform
from oar.nn.layer.layers import Layer

__all__ = ["Linear"]


class Linear(Layer):
    """input times the transposed weight, plus the bias. Both start as uniform numbers within one over the root of
    ``in_features``.

    Args:
        in_features: the size of the input's last axis.
        out_features: the size of the output's last axis.
        bias: whether there is a bias.
        device: the device; None is the current one.
        dtype: the dtype of the parameters; None is the default one.

    Examples:
        >>> import oar
        >>> layer = oar.compat.nn.Linear(3, 4)
        >>> layer.weight.shape, layer(oar.ones([2, 3])).shape
        ([4, 3], [2, 4])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bound = 1.0 / math.sqrt(in_features) if in_features else 0.0
        self._start = Uniform(-bound, bound)
        self.weight = self.create_parameter([out_features, in_features], dtype=dtype, default_initializer=self._start)
        self.bias = self.create_parameter([out_features], dtype=dtype, is_bias=True,
                                          default_initializer=self._start) if bias else None  # fmt: skip
        if device is not None:
            self.to(device)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        for parameter in self.parameters():
            self._start(parameter)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
