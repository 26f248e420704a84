"""Weights that are trained as a length and a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework.param_attr import ParamAttr
from oar.nn.initializer import Initializer

__all__ = ["WeightNormParamAttr", "normalised_weight"]


class WeightNormParamAttr(ParamAttr):
    """Attributes of a weight ``g * v / |v|``, of which ``g`` and ``v`` are trained.

    Args:
        dim: the axis along which each slice has its own length; one length for all if None.
        name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip: as for ``ParamAttr``.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=2, weight_attr=oar.static.WeightNormParamAttr(dim=0))
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 2)
        >>> oar.disable_static()
    """

    def __init__(self, dim: int | None = None, name: str | None = None, initializer: Any = None,
                 learning_rate: float = 1.0, regularizer: Any = None, trainable: bool = True,
                 do_model_average: bool = False, need_clip: bool = True) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average, need_clip)
        self.dim = dim


def _length(v: Tensor, dim: int | None) -> Tensor:
    """The norm over all axes but ``dim``, which stays."""
    axes = [i for i in range(v.ndim) if dim is None or i != dim % v.ndim]
    return oar.sqrt(ops.sum(v * v, axes, None, True)) if axes else ops.abs(v)


class _LengthOf(Initializer):
    """Begins with the length of another parameter."""

    def __init__(self, direction: Tensor, dim: int | None) -> None:
        self._direction, self._dim = direction, dim

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _length(self._direction, self._dim)


def normalised_weight(shape: Sequence[int], dtype: Any, attr: WeightNormParamAttr, default: Any) -> Tensor:
    """The weight, computed from its two parameters: ``name_v`` and ``name_g``."""
    from oar.framework.parameter import make_parameter
    from oar.static.program import default_startup_program

    def part(suffix: str, initializer: Any) -> ParamAttr:
        return ParamAttr(f"{attr.name}_{suffix}", initializer, attr.learning_rate, attr.regularizer, attr.trainable,
                         attr.do_model_average, attr.need_clip)

    v = make_parameter(list(shape), dtype, part("v", attr.initializer), default)
    started = default_startup_program().global_block().var(v.name)
    sizes = [size if attr.dim is not None and axis == attr.dim % len(shape) else 1 for axis, size in enumerate(shape)]

    g = make_parameter(sizes, dtype, part("g", _LengthOf(started, attr.dim)))
    return v * (g / _length(v, attr.dim))
