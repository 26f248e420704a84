"""What every quanter is."""

from __future__ import annotations

import abc
from typing import Any

from oar._C import Tensor
from oar.nn.layer import Layer

__all__ = ["BaseQuanter"]


class BaseQuanter(Layer, metaclass=abc.ABCMeta):
    """A layer that rounds a tensor as a quantised format would, and knows the format.

    A quanter of your own is a subclass, decorated with ``quanter``, which has an example.

    Examples:
        >>> from oar.quantization import BaseQuanter
        >>> sorted(BaseQuanter.__abstractmethods__)
        ['bit_length', 'forward', 'quant_axis', 'scales', 'zero_points']
    """

    @abc.abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """The tensor after rounding, as floats.

        Args:
            input: the tensor.
        """

    @abc.abstractmethod
    def scales(self) -> Any:
        """What the largest number of the format stands for; None if that is not known."""

    @abc.abstractmethod
    def zero_points(self) -> Any:
        """The integers that stand for 0; None for 0."""

    @abc.abstractmethod
    def quant_axis(self) -> Any:
        """The axis of the scales; -1 or None if there is one for the whole tensor."""

    @abc.abstractmethod
    def bit_length(self) -> Any:
        """How many bits a number has; of 8-bit floats those of the exponent and of the mantissa, such as (4, 3)."""
