"""Layers of a converted model: tensors are rounded to a quantised format and turned back into floats."""

from __future__ import annotations

import abc
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn.layer import Layer
from oar.nn.quant._rounding import along_axis, largest_of, per_group

__all__ = ["ConvertibleQuantedLayer", "LinearDequanter", "LinearQuanter", "LinearQuanterDequanter"]


class _Linear(Layer):
    """Scales and a zero point, which are saved with the model.

    Args:
        scales: what the largest number of the format stands for: one number, one for each index of ``quant_axis``, or a
            matrix with a row for each group of rows.
        zero_point: the integer that stands for 0; None is 0.
        quant_axis: the axis of the scales; None or -1 for one scale.
        bit_length: the bits of an integer; (4, 3) and (5, 2) are 8-bit floats.
        group_size: how many rows share a scale, if the scales are a matrix.
    """

    def __init__(
        self,
        scales: Any,
        zero_point: Any = None,
        quant_axis: int | None = None,
        bit_length: int | tuple[int, int] = 8,
        group_size: int = 128,
    ) -> None:
        super().__init__()
        scales = oar.to_tensor(scales, dtype="float32").detach()
        zero_point = ops.zeros_like(scales) if zero_point is None else oar.to_tensor(zero_point, dtype="float32").detach()
        self.register_buffer("_scales", scales)
        self.register_buffer("_zero_point", zero_point)
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._qmax, self._float = largest_of(bit_length)
        self._qmin = -self._qmax if self._float else -self._qmax - 1
        self._bit_length = sum(bit_length) + 1 if isinstance(bit_length, tuple) else bit_length
        self._group_size = group_size
        # A matrix of scales with a zero point has a scale for each element.
        self._grouped = scales.ndim > 1 and not bool(ops.any(zero_point != 0))

    def _step(self, x: Tensor) -> Tensor:
        """What one step of the integers stands for, in a shape that broadcasts with x."""
        if self._grouped:
            return per_group(self._scales, self._group_size) / self._qmax
        if self._scales.ndim > 1:
            return self._scales
        return along_axis(self._scales, x, self._quant_axis) / self._qmax

    def _offset(self, x: Tensor) -> Tensor:
        if self._grouped:
            return per_group(self._zero_point, self._group_size)
        return self._zero_point if self._zero_point.ndim > 1 else along_axis(self._zero_point, x, self._quant_axis)

    @classmethod
    def from_quanter(cls, quanter: Any) -> Any:
        """With the scales, the zero point and the format that a quanter or an observer found.

        Args:
            quanter: a ``BaseQuanter`` that has seen data.
        """
        return cls(
            quanter.scales(),
            zero_point=quanter.zero_points(),
            quant_axis=quanter.quant_axis(),
            bit_length=quanter.bit_length(),
            group_size=getattr(quanter, "group_size", 128),
        )


class LinearQuanter(_Linear):
    """Divides by the scale and rounds to the numbers of the format, which the result holds in the dtype of the input.

    Examples:
        >>> import oar
        >>> from oar.nn.quant.format import LinearQuanter
        >>> LinearQuanter(2.0)(oar.to_tensor([1.0, -2.0, 5.0])).tolist()
        [64.0, -127.0, 127.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        steps = ops.cast(input, "float32") / self._step(input)
        if self._float:
            found = ops.cast(ops.clip(steps, self._qmin, self._qmax), self._float)
        else:
            found = ops.clip(ops.round(steps) + self._offset(input), self._qmin, self._qmax)
        return ops.cast(found, input.dtype)


class LinearDequanter(_Linear):
    """Numbers of the format times the scale.

    Examples:
        >>> import oar
        >>> from oar.nn.quant.format import LinearDequanter
        >>> LinearDequanter(2.0)(oar.to_tensor([127.0, -127.0])).tolist()
        [2.0, -2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        steps = ops.cast(input, "float32")
        return ops.cast((steps if self._float else steps - self._offset(input)) * self._step(input), input.dtype)


class LinearQuanterDequanter(Layer):
    """A quanter, then a dequanter; either may be None.

    Args:
        quanter: a ``LinearQuanter``.
        dequanter: a ``LinearDequanter``.
    """

    def __init__(self, quanter: LinearQuanter | None, dequanter: LinearDequanter | None) -> None:
        super().__init__()
        self._quanter = quanter
        self._dequanter = dequanter

    def forward(self, input: Tensor) -> Tensor:
        out = input if self._quanter is None else self._quanter(input)
        return out if self._dequanter is None else self._dequanter(out)

    @staticmethod
    def from_quanter(quanter: Any) -> LinearQuanterDequanter:
        """Both, with what a quanter or an observer found.

        Args:
            quanter: a ``BaseQuanter`` that has seen data.
        """
        return LinearQuanterDequanter(LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter))


class ConvertibleQuantedLayer(Layer, metaclass=abc.ABCMeta):
    """A layer whose weights and inputs are quantised, and that ``QAT.convert`` and ``PTQ.convert`` make ready for use.

    A subclass says by name which quanter belongs to which weight, and which quanters see activations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.converted = False

    @abc.abstractmethod
    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """The names of weights, each with the name of its quanter."""

    @abc.abstractmethod
    def activation_quanters(self) -> list[str]:
        """The names of the quanters of activations."""

    def _converted(self, name: str) -> LinearQuanterDequanter | None:
        quanter = getattr(self, name, None)
        if quanter is None:
            return None
        setattr(self, name, LinearQuanterDequanter.from_quanter(quanter))
        return getattr(self, name)

    def _convert(self, remain_weight: bool = False) -> None:  # type: ignore[override]
        if self.converted:
            raise AssertionError("[convert] the layer is converted already. Convert a model once.")
        for weight_name, quanter_name in self.weights_to_quanters():
            pair = self._converted(quanter_name)
            if pair is not None and pair._quanter is not None and not remain_weight:
                weight = getattr(self, weight_name)
                weight.set_value(pair._quanter(weight))
                pair._quanter = None
        for quanter_name in self.activation_quanters():
            self._converted(quanter_name)
        self.converted = True
