"""Activations with settings or parameters that shape them."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.framework.parameter import Parameter, dtype_name
from oar.nn import functional as F
from oar.nn.initializer import Constant
from oar.nn.layer.layers import Layer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "Hardshrink",
    "Hardtanh",
    "LeakyReLU",
    "Maxout",
    "PReLU",
    "RReLU",
    "SELU",
    "Softplus",
    "Softshrink",
    "ThresholdedReLU",
]


class GELU(Layer):
    """``x`` times the normal distribution function of ``x``; by tanh when ``approximate``.

    Args:
        approximate: whether to use the approximation by tanh.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.GELU()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.15865526,  1.95449972])
    """

    def __init__(self, approximate: bool = False, name: str | None = None) -> None:
        super().__init__()
        self._approximate = approximate
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, self._approximate)

    def extra_repr(self) -> str:
        return f"approximate={self._approximate}" + (f", name={self._name}" if self._name else "")


class _WithSettings(Layer):
    """An activation with settings, which are its function's further arguments in order."""

    _settings: tuple[str, ...] = ()

    def _keep(self, name: str | None, *values: Any) -> None:
        self._name = name
        for setting, value in zip(self._settings, values):
            setattr(self, f"_{setting}", value)

    def _values(self) -> list[Any]:
        return [getattr(self, f"_{setting}") for setting in self._settings]

    def extra_repr(self) -> str:
        text = ", ".join(f"{setting}={value}" for setting, value in zip(self._settings, self._values()))
        return text + (f", name={self._name}" if self._name else "")


class CELU(_WithSettings):
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` below.

    Args:
        alpha: a factor; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.CELU(alpha=0.5)(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.43233237,  2.        ])
    """

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.celu(x, *self._values())


class ELU(_WithSettings):
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below.

    Args:
        alpha: a factor; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.ELU(alpha=0.5)(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.31606027,  2.        ])
    """

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x, *self._values())


class Hardshrink(_WithSettings):
    """``x`` where ``|x| > threshold``, else 0.

    Args:
        threshold: the threshold; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Hardshrink()(oar.to_tensor([-1.0, 0.3]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.,  0.])
    """

    _settings = ("threshold",)

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, threshold)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardshrink(x, *self._values())


class Hardtanh(_WithSettings):
    """``x`` limited to ``[min, max]``.

    Args:
        min: the lower bound.
        max: the upper bound.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Hardtanh()(oar.to_tensor([-3.0, 0.5]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.       ,  0.50000000])
    """

    _settings = ("min", "max")

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, min, max)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, *self._values())


class LeakyReLU(_WithSettings):
    """``x`` above 0, ``negative_slope * x`` below.

    Args:
        negative_slope: the slope for negative numbers.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.LeakyReLU(0.1)(oar.to_tensor([-2.0, 3.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.20000000,  3.        ])
    """

    _settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, negative_slope)

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, *self._values())


class SELU(_WithSettings):
    """``scale * x`` above 0, ``scale * alpha * (exp(x) - 1)`` below.

    Args:
        scale: the factor of everything.
        alpha: a factor; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.SELU()(oar.to_tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.11133075,  2.10140204])
    """

    _settings = ("scale", "alpha")

    def __init__(self, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, scale, alpha)

    def forward(self, x: Tensor) -> Tensor:
        return F.selu(x, *self._values())


class Softplus(_WithSettings):
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` is above the threshold.

    Args:
        beta: a factor; see the formula above.
        threshold: the threshold; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Softplus()(oar.to_tensor([0.0, 30.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.69314718, 30.       ])
    """

    _settings = ("beta", "threshold")

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, beta, threshold)

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x, *self._values())


class Softshrink(_WithSettings):
    """``x`` moved towards 0 by the threshold.

    Args:
        threshold: the threshold; see the formula above.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Softshrink()(oar.to_tensor([-1.0, 0.3]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.50000000,  0.        ])
    """

    _settings = ("threshold",)

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, threshold)

    def forward(self, x: Tensor) -> Tensor:
        return F.softshrink(x, *self._values())


class ThresholdedReLU(_WithSettings):
    """``x`` above the threshold, else ``value``.

    Args:
        threshold: the threshold; see the formula above.
        value: the result up to the threshold.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.ThresholdedReLU()(oar.to_tensor([0.5, 1.5]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 1.50000000])
    """

    _settings = ("threshold", "value")

    def __init__(self, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, threshold, value)

    def forward(self, x: Tensor) -> Tensor:
        return F.thresholded_relu(x, *self._values())


class Maxout(_WithSettings):
    """The largest of every ``groups`` neighbouring channels.

    Args:
        groups: the number of groups of channels.
        axis: the axis to work along; a negative one counts from the end.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Maxout(groups=2)(oar.ones([1, 4, 3, 3])).shape
        [1, 2, 3, 3]
    """

    _settings = ("groups", "axis")

    def __init__(self, groups: int, axis: int = 1, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, groups, axis)

    def forward(self, x: Tensor) -> Tensor:
        return F.maxout(x, *self._values())


class RReLU(_WithSettings):
    """``x`` above 0; below, ``x`` times a slope that is random between ``lower`` and ``upper`` in training.

    Args:
        lower: the lower end of the slopes.
        upper: the upper end of the slopes.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.RReLU(0.25, 0.75)
        >>> _ = layer.eval()  # the slope is then the mean of both ends
        >>> layer(oar.to_tensor([-8.0, 4.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-4.,  4.])
    """

    _settings = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None) -> None:
        super().__init__()
        self._keep(name, lower, upper)

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self._lower, self._upper, self.training)

    def extra_repr(self) -> str:
        text = f"lower={self._lower}, upper={self._upper}, training={self.training}"
        return text + (f", name={self._name}" if self._name else "")


class PReLU(Layer):
    """``x`` above 0, ``weight * x`` below, with a learned weight: one, or one for each channel.

    Args:
        num_parameters: 1, or the number of channels.
        init: the first value of the slopes.
        weight_attr: a ``ParamAttr`` or an initialiser for the weight; False leaves it out.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PReLU(init=0.25)(oar.to_tensor([-2.0, 4.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [-0.50000000,  4.        ])
    """

    _weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters = num_parameters
        self._init = init
        self._data_format = data_format
        self._name = name
        self._dtype = oar.get_default_dtype()
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, self._dtype, default_initializer=Constant(init)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        text = f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}"
        return f"{text}, dtype={dtype_name(self._dtype)}" + (f", name={self._name}" if self._name else "")
