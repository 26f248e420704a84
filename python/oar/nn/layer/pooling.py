"""Pooling layers: each keeps the arguments of the function of its name in ``nn.functional``."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn._axes import Axes, for_axes
from oar.nn.layer.layers import Layer

__all__ = [
    "AdaptiveAvgPool1D",
    "AdaptiveAvgPool2D",
    "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D",
    "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "FractionalMaxPool2D",
    "FractionalMaxPool3D",
    "LPPool1D",
    "LPPool2D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxUnPool1D",
    "MaxUnPool2D",
    "MaxUnPool3D",
]


class _Pool(Layer):
    """What pooling layers share: their text, by the names of arguments and of the attributes that keep them."""

    _shown = {"kernel_size": "ksize", "stride": "stride", "padding": "padding"}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, attribute)}" for name, attribute in self._shown.items())


class MaxPool1D(_Pool):
    """The largest value of each window.

    Args:
        kernel_size: an integer or one for each spatial axis.
        stride: the same; ``kernel_size`` when None.
        padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
        return_mask: also return the places of the largest values.
        ceil_mode: keep windows that reach over the edge.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MaxPool1D(2)(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]))
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[3., 4.]]])
    """

    _shown = {"kernel_size": "kernel_size", "stride": "stride", "padding": "padding"}

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.return_mask = return_mask
        self.ceil_mode = ceil_mode
        self.name = name

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode)


def _max_pool(axes: Axes) -> type[_Pool]:
    function = f"max_pool{axes.count}d"

    class MaxPool(_Pool):
        """The largest value of each window.

        Args:
            kernel_size: an integer or one for each spatial axis.
            stride: the same; ``kernel_size`` when None.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
            return_mask: also return the places of the largest values.
            ceil_mode: keep windows that reach over the edge.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.MaxPool{n}D(2)(oar.ones([1, 3, {sizes:8}])).shape
            [1, 3, {sizes:4}]
        """

        def __init__(
            self,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            return_mask: bool = False,
            ceil_mode: bool = False,
            data_format: str = axes.first,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self.ksize = kernel_size
            self.stride = stride
            self.padding = padding
            self.return_mask = return_mask
            self.ceil_mode = ceil_mode
            self.data_format = data_format
            self.name = name

        def forward(self, x: Tensor) -> Any:
            return getattr(F, function)(
                x, self.ksize, self.stride, self.padding, self.return_mask, self.ceil_mode, self.data_format,
            )  # fmt: skip

    return MaxPool


MaxPool2D, MaxPool3D = for_axes("MaxPool{n}D", _max_pool, (2, 3))


class AvgPool1D(_Pool):
    """The mean of each window.

    Args:
        kernel_size: an integer or one for each spatial axis.
        stride: the same; ``kernel_size`` when None.
        padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
        exclusive: padding does not count towards the mean.
        ceil_mode: keep windows that reach over the edge.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.AvgPool1D(2)(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]))
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[2., 3.]]])
    """

    _shown = {"kernel_size": "kernel_size", "stride": "stride", "padding": "padding"}

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.exclusive = exclusive
        self.ceil_mode = ceil_mode
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode)


def _avg_pool(axes: Axes) -> type[_Pool]:
    function = f"avg_pool{axes.count}d"

    class AvgPool(_Pool):
        """The mean of each window.

        Args:
            kernel_size: an integer or one for each spatial axis.
            stride: the same; ``kernel_size`` when None.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
            ceil_mode: keep windows that reach over the edge.
            exclusive: padding does not count towards the mean.
            divisor_override: divide by this instead of the window's size.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.AvgPool{n}D(2)(oar.ones([1, 3, {sizes:8}])).shape
            [1, 3, {sizes:4}]
        """

        def __init__(
            self,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            ceil_mode: bool = False,
            exclusive: bool = True,
            divisor_override: float | None = None,
            data_format: str = axes.first,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self.ksize = kernel_size
            self.stride = stride
            self.padding = padding
            self.ceil_mode = ceil_mode
            self.exclusive = exclusive
            self.divisor = divisor_override
            self.data_format = data_format
            self.name = name

        def forward(self, x: Tensor) -> Tensor:
            return getattr(F, function)(
                x, self.ksize, self.stride, self.padding, self.ceil_mode, self.exclusive, self.divisor,
                self.data_format,
            )  # fmt: skip

    return AvgPool


AvgPool2D, AvgPool3D = for_axes("AvgPool{n}D", _avg_pool, (2, 3))


def _lp_pool(axes: Axes) -> type[_Pool]:
    function = f"lp_pool{axes.count}d"
    kept = "kernel_size" if axes.count == 1 else "ksize"  # Paddle's names of the attribute

    class LPPool(_Pool):
        """The root of the sum of the powers of each window.

        Args:
            norm_type: the power p; the maximum for infinity.
            kernel_size: an integer or one for each spatial axis.
            stride: the same; ``kernel_size`` when None.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
            ceil_mode: keep windows that reach over the edge.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.LPPool{n}D(2.0, 2)(oar.ones([1, 3, {sizes:8}])).shape
            [1, 3, {sizes:4}]
        """

        _shown = {"norm_type": "norm_type", "kernel_size": kept, "stride": "stride", "padding": "padding"}

        def __init__(
            self,
            norm_type: float,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            ceil_mode: bool = False,
            data_format: str = axes.first,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self.norm_type = float(norm_type)
            setattr(self, kept, kernel_size)
            self.stride = stride
            self.padding = padding
            self.ceil_mode = ceil_mode
            self.data_format = data_format
            self.name = name

        def forward(self, x: Tensor) -> Tensor:
            return getattr(F, function)(
                x, self.norm_type, getattr(self, kept), self.stride, self.padding, self.ceil_mode, self.data_format,
            )  # fmt: skip

    return LPPool


LPPool1D, LPPool2D = for_axes("LPPool{n}D", _lp_pool, (1, 2))


class AdaptiveAvgPool1D(_Pool):
    """Means over windows chosen so that the result has ``output_size``.

    Args:
        output_size: an integer or one for each spatial axis; None keeps a size.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.AdaptiveAvgPool1D(2)(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]))
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[2., 3.]]])
    """

    _shown = {"output_size": "output_size"}

    def __init__(self, output_size: Any, name: str | None = None) -> None:
        super().__init__()
        self.output_size = output_size
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


def _adaptive_avg_pool(axes: Axes) -> type[_Pool]:
    function = f"adaptive_avg_pool{axes.count}d"

    class AdaptiveAvgPool(_Pool):
        """Means over windows chosen so that the result has ``output_size``.

        Args:
            output_size: an integer or one for each spatial axis; None keeps a size.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.AdaptiveAvgPool{n}D(1)(oar.ones([2, 3, {sizes:7}])).shape
            [2, 3, {sizes:1}]
        """

        _shown = {"output_size": "_output_size"}

        def __init__(self, output_size: Any, data_format: str = axes.first, name: str | None = None) -> None:
            super().__init__()
            self._output_size = self.output_size = output_size
            self._data_format = data_format
            self._name = name

        def forward(self, x: Tensor) -> Tensor:
            return getattr(F, function)(x, self._output_size, self._data_format)

    return AdaptiveAvgPool


AdaptiveAvgPool2D, AdaptiveAvgPool3D = for_axes("AdaptiveAvgPool{n}D", _adaptive_avg_pool, (2, 3))


class AdaptiveMaxPool1D(_Pool):
    """Largest values over windows chosen so that the result has ``output_size``.

    Args:
        output_size: an integer or one for each spatial axis; None keeps a size.
        return_mask: also return the places of the largest values.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.AdaptiveMaxPool1D(2)(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]))
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[3., 4.]]])
    """

    _shown = {"output_size": "output_size", "return_mask": "return_mask"}

    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_mask = return_mask
        self.name = name

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_mask)


def _adaptive_max_pool(axes: Axes) -> type[_Pool]:
    function = f"adaptive_max_pool{axes.count}d"

    class AdaptiveMaxPool(_Pool):
        """Largest values over windows chosen so that the result has ``output_size``.

        Args:
            output_size: an integer or one for each spatial axis; None keeps a size.
            return_mask: also return the places of the largest values.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.AdaptiveMaxPool{n}D(1)(oar.ones([2, 3, {sizes:7}])).shape
            [2, 3, {sizes:1}]
        """

        _shown = {"output_size": "_output_size", "return_mask": "_return_mask"}

        def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None) -> None:
            super().__init__()
            self._output_size = output_size
            self._return_mask = return_mask
            self._name = name

        def forward(self, x: Tensor) -> Any:
            return getattr(F, function)(x, self._output_size, self._return_mask)

    return AdaptiveMaxPool


AdaptiveMaxPool2D, AdaptiveMaxPool3D = for_axes("AdaptiveMaxPool{n}D", _adaptive_max_pool, (2, 3))


def _fractional_max_pool(axes: Axes) -> type[_Pool]:
    function = f"fractional_max_pool{axes.count}d"

    class FractionalMaxPool(_Pool):
        """Largest values over ``output_size`` windows at random places.

        Args:
            output_size: an integer or one for each spatial axis; None keeps a size.
            kernel_size: an integer or one for each spatial axis.
            random_u: determines the positions of windows, in (0, 1); random at each call if None.
            return_mask: also return the places of the largest values.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.FractionalMaxPool{n}D(3, random_u=0.5)(oar.ones([1, 1, {sizes:7}])).shape
            [1, 1, {sizes:3}]
        """

        _shown = {"output_size": "_output_size", "return_mask": "_return_mask"}

        def __init__(
            self,
            output_size: Any,
            kernel_size: Any = None,
            random_u: float | None = None,
            return_mask: bool = False,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self._output_size = output_size
            self._kernel_size = kernel_size
            self._random_u = random_u
            self._return_mask = return_mask
            self._name = name

        def forward(self, x: Tensor) -> Any:
            return getattr(F, function)(x, self._output_size, self._kernel_size, self._random_u, self._return_mask)

    return FractionalMaxPool


FractionalMaxPool2D, FractionalMaxPool3D = for_axes("FractionalMaxPool{n}D", _fractional_max_pool, (2, 3))


def _max_unpool(axes: Axes) -> type[_Pool]:
    function = f"max_unpool{axes.count}d"

    class MaxUnPool(_Pool):
        """Puts values at their positions in the mask of a max pooling; the rest is zero.

        Args:
            kernel_size: an integer or one for each spatial axis.
            stride: the same; ``kernel_size`` when None.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
            data_format: {formats}.
            output_size: the size of the result; the smallest one when None.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> pooled, places = nn.MaxPool{n}D(2, return_mask=True)(oar.rand([1, 1, {sizes:4}]))
            >>> nn.MaxUnPool{n}D(2)(pooled, places).shape
            [1, 1, {sizes:4}]
        """

        _shown = {"output_size": "output_size"}

        def __init__(
            self,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            data_format: str = axes.first,
            output_size: Any = None,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self.ksize = kernel_size
            self.stride = stride
            self.padding = padding
            self.data_format = data_format
            self.output_size = output_size
            self.name = name

        def forward(self, x: Tensor, indices: Tensor) -> Tensor:
            return getattr(F, function)(
                x, indices, self.ksize, self.stride, self.padding, self.data_format, self.output_size,
            )  # fmt: skip

    return MaxUnPool


MaxUnPool1D, MaxUnPool2D, MaxUnPool3D = for_axes("MaxUnPool{n}D", _max_unpool)
