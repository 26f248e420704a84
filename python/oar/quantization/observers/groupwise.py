"""The largest absolute values of groups of rows of a weight."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.nn.layer import Layer
from oar.quantization.factory import ObserverFactory
from oar.quantization.observers.scaled import ScaleObserver

__all__ = ["GroupWiseWeightObserver", "GroupWiseWeightObserverLayer"]

_LEAST = 1e-8


class GroupWiseWeightObserver(ObserverFactory):
    """Observers of weights [in, out] that find a scale for each column of each group of rows.

    Args:
        quant_bits: the bits of an integer.
        group_size: how many rows share a scale, 64 or 128.

    Examples:
        >>> from oar.quantization.observers import GroupWiseWeightObserver
        >>> print(GroupWiseWeightObserver(quant_bits=4, group_size=64))
        GroupWiseWeightObserver(quant_bits=4,group_size=64)
    """

    def __init__(self, quant_bits: int = 8, group_size: int = 128) -> None:
        super().__init__(quant_bits=quant_bits, group_size=group_size)

    def _get_class(self) -> type[GroupWiseWeightObserverLayer]:
        return GroupWiseWeightObserverLayer


class GroupWiseWeightObserverLayer(ScaleObserver):
    """The observer of one weight.

    Args:
        layer: the layer of the weight.
        quant_bits: the format.
        group_size: how many rows share a scale.
    """

    def __init__(self, layer: Layer, quant_bits: int = 8, group_size: int = 128) -> None:
        super().__init__(layer, quant_bits)
        if group_size not in (64, 128):
            raise ValueError(f"[GroupWiseWeightObserver] group_size is {group_size}; it can be 64 or 128.")
        self.group_size = group_size

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 2 or input.shape[0] % self.group_size:
            raise ValueError(
                f"[GroupWiseWeightObserver] the weight has shape {list(input.shape)}. It must be a matrix whose rows are a "
                f"multiple of group_size, {self.group_size}."
            )
        groups = ops.reshape(input.detach(), [-1, self.group_size, input.shape[1]])
        self._max = ops.clip(ops.cast(ops.max(ops.abs(groups), 1), "float32"), _LEAST)
        return input
