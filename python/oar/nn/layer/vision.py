"""Layers that pad, resize and rearrange images."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn._axes import Axes, for_axes
from oar.nn.layer.layers import Layer

__all__ = [
    "ChannelShuffle", "CircularPad1D", "CircularPad2D", "CircularPad3D", "ConstantPad1D", "ConstantPad2D",
    "ConstantPad3D", "Fold", "LocalResponseNorm", "Pad1D", "Pad2D", "Pad3D", "PixelShuffle", "PixelUnshuffle",
    "ReflectionPad1D", "ReflectionPad2D", "ReflectionPad3D", "ReplicationPad1D", "ReplicationPad2D", "ReplicationPad3D",
    "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D", "ZeroPad1D", "ZeroPad2D", "ZeroPad3D",
]


class _WithName(Layer):
    """Shows its arguments by the attributes that ``_shown`` lists."""

    _shown: tuple[str, ...] = ()
    _prefix = "_"  # of the attributes

    def _arguments(self, **arguments: Any) -> None:
        super().__init__()
        for key, value in arguments.items():
            setattr(self, f"{self._prefix}{key}", value)
        self._shown = tuple(arguments)

    def extra_repr(self) -> str:
        given = ("name", "scale_factor", "size")  # shown only where they are
        shown = {key: getattr(self, f"{self._prefix}{key}") for key in self._shown}
        return ", ".join(f"{key}={value}" for key, value in shown.items() if key not in given or value is not None)


def _pad(axes: Axes) -> type[_WithName]:
    class Pad(_WithName):
        """Adds elements around {inputs}; see ``functional.pad``.

        Args:
            padding: how many elements to add: a number, or {sides}.
            mode: 'constant', 'reflect', 'replicate' or 'circular'.
            value: the value of the new elements.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.Pad{n}D(1, mode='reflect')(oar.ones([1, 3, {sizes:4}])).shape
            [1, 3, {sizes:6}]
        """

        def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = axes.first,
                     name: str | None = None) -> None:
            pads = [int(padding)] * (2 * axes.count) if isinstance(padding, Integral) else padding
            self._arguments(padding=pads, mode=mode, value=value, data_format=data_format, name=name)

        def forward(self, x: Tensor) -> Tensor:
            return F.pad(x, self._padding, self._mode, self._value, self._data_format)

    return Pad


Pad1D, Pad2D, Pad3D = _PADS = for_axes("Pad{n}D", _pad)


def _zero_pad(axes: Axes) -> type[_WithName]:
    class ZeroPad(_PADS[axes.count - 1]):  # type: ignore[misc]
        """Adds zeros around {inputs}.

        Args:
            padding: how many elements to add: a number, or {sides}.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.ZeroPad{n}D(1)(oar.ones([1, 3, {sizes:4}])).shape
            [1, 3, {sizes:6}]
        """

        def __init__(self, padding: Any, data_format: str = axes.first, name: str | None = None) -> None:
            super().__init__(padding, "constant", 0.0, data_format, name)
            self._shown = ("padding", "data_format", "name")

    return ZeroPad


ZeroPad1D, ZeroPad2D, ZeroPad3D = for_axes("ZeroPad{n}D", _zero_pad)


def _constant_pad(axes: Axes) -> type[_WithName]:
    class ConstantPad(_PADS[axes.count - 1]):  # type: ignore[misc]
        """Adds elements of one value around {inputs}.

        Args:
            padding: how many elements to add: a number, or {sides}.
            value: the value.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.ConstantPad{n}D(1, 7.0)(oar.ones([1, 3, {sizes:4}])).shape
            [1, 3, {sizes:6}]
        """

        def __init__(self, padding: Any, value: float, data_format: str = axes.first, name: str | None = None) -> None:
            super().__init__(padding, "constant", value, data_format, name)

    return ConstantPad


def _pad_of(mode: str, class_name: str, brief: str) -> Callable[[Axes], type[_WithName]]:
    def template(axes: Axes) -> type[_WithName]:
        class PadOfMode(_PADS[axes.count - 1]):  # type: ignore[misc]
            def __init__(self, padding: Any, data_format: str = axes.first, name: str | None = None) -> None:
                super().__init__(padding, mode, 0.0, data_format, name)

        PadOfMode.__doc__ = f"""Adds {brief} around {{inputs}}.

        Args:
            padding: how many elements to add: a number, or {{sides}}.
            data_format: {{formats}}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.{class_name}{{n}}D(1)(oar.ones([1, 3, {{sizes:4}}])).shape
            [1, 3, {{sizes:6}}]
        """
        return PadOfMode

    return template


ConstantPad1D, ConstantPad2D, ConstantPad3D = for_axes("ConstantPad{n}D", _constant_pad)
ReflectionPad1D, ReflectionPad2D, ReflectionPad3D = for_axes(
    "ReflectionPad{n}D", _pad_of("reflect", "ReflectionPad", "the elements mirrored at the border"))
ReplicationPad1D, ReplicationPad2D, ReplicationPad3D = for_axes(
    "ReplicationPad{n}D", _pad_of("replicate", "ReplicationPad", "copies of the elements at the border"))
CircularPad1D, CircularPad2D, CircularPad3D = for_axes(
    "CircularPad{n}D", _pad_of("circular", "CircularPad", "the elements of the opposite border"))


class Upsample(_WithName):
    """Images at another size; see ``functional.interpolate``.

    Args:
        size: the sizes of the result, or None.
        scale_factor: how much larger the result is, if size is None.
        mode: 'nearest', 'bilinear', 'linear', 'trilinear', 'bicubic' or 'area'.
        align_corners: whether the corner pixels are aligned at their centres.
        align_mode: 1 measures pixels by their corners, 0 by their centres.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        recompute_scale_factor: True takes the scale from the sizes, which are rounded.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Upsample(scale_factor=2)(oar.ones([1, 3, 4, 4])).shape
        [1, 3, 8, 8]
    """

    _prefix = ""  # programs read and set these

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False,
                 align_mode: int = 0, data_format: str | None = None, name: str | None = None, *,
                 recompute_scale_factor: bool | None = None) -> None:
        self._arguments(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
                        align_mode=align_mode, data_format=data_format, name=name)
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.align_mode, self.data_format,
                             recompute_scale_factor=self.recompute_scale_factor)


class UpsamplingNearest2D(Upsample):
    """Images at another size, each pixel the nearest one.

    Args:
        size: the sizes of the result, or None.
        scale_factor: how much larger the result is, if size is None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.UpsamplingNearest2D(size=[8, 8])(oar.ones([1, 3, 4, 4])).shape
        [1, 3, 8, 8]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW",
                 name: str | None = None) -> None:
        super().__init__(size, scale_factor, "nearest", False, 0, data_format, name)
        self._shown = ("size", "scale_factor", "data_format", "name")


class UpsamplingBilinear2D(Upsample):
    """Images at another size, bilinearly, the corners kept.

    Args:
        size: the sizes of the result, or None.
        scale_factor: how much larger the result is, if size is None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.UpsamplingBilinear2D(size=[1, 3])(oar.to_tensor([[[[0.0, 1.0]]]])).flatten()
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.50000000, 1.        ])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW",
                 name: str | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True, 0, data_format, name)
        self._shown = ("size", "scale_factor", "data_format", "name")


def _check_shuffle(layer: str, what: str, number: Any, data_format: str) -> None:
    if not isinstance(number, int):
        raise TypeError(f"[{layer}] {what} should be an integer, but is {number!r}.")
    if number <= 0:
        raise ValueError(f"[{layer}] {what} should be positive, but is {number}.")
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"[{layer}] data_format must be 'NCHW' or 'NHWC', not {data_format!r}.")


class PixelShuffle(_WithName):
    """Channels become pixels of a larger image; see ``functional.pixel_shuffle``.

    Args:
        upscale_factor: the factor by which images become larger.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PixelShuffle(2)(oar.ones([1, 8, 4, 4])).shape
        [1, 2, 8, 8]
    """

    def __init__(self, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        _check_shuffle("PixelShuffle", "upscale_factor", upscale_factor, data_format)
        self._arguments(upscale_factor=upscale_factor, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)


class PixelUnshuffle(_WithName):
    """Blocks of pixels become channels: the reverse of ``PixelShuffle``.

    Args:
        downscale_factor: the factor by which images become smaller.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PixelUnshuffle(2)(oar.ones([1, 2, 8, 8])).shape
        [1, 8, 4, 4]
    """

    def __init__(self, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        _check_shuffle("PixelUnshuffle", "downscale_factor", downscale_factor, data_format)
        self._arguments(downscale_factor=downscale_factor, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)


class ChannelShuffle(_WithName):
    """Mixes groups of channels; see ``functional.channel_shuffle``.

    Args:
        groups: the number of groups of channels.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.ChannelShuffle(2)(oar.arange(4, dtype='float32').reshape([1, 4, 1, 1])).flatten()
        Tensor(shape=[4], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0., 2., 1., 3.])
    """

    def __init__(self, groups: int, data_format: str = "NCHW", name: str | None = None) -> None:
        _check_shuffle("ChannelShuffle", "groups", groups, data_format)
        self._arguments(groups=groups, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self._groups, self._data_format)


class Unfold(_WithName):
    """Windows of images as columns; see ``functional.unfold``.

    Args:
        kernel_sizes: the size of the windows.
        dilations: the distance between the taps of a window.
        paddings: how many zeros to add on each side.
        strides: the distance of neighbouring windows.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Unfold(2)(oar.ones([1, 3, 4, 4])).shape
        [1, 12, 9]
    """

    def __init__(self, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None) -> None:
        self._arguments(kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings, strides=strides, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self._kernel_sizes, self._strides, self._paddings, self._dilations)


class Fold(_WithName):
    """Columns added up to images; see ``functional.fold``.

    Args:
        output_sizes: the sizes of the images.
        kernel_sizes: the size of the windows.
        dilations: the distance between the taps of a window.
        paddings: how many zeros to add on each side.
        strides: the distance of neighbouring windows.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Fold([4, 4], 2, strides=2)(oar.ones([1, 4, 4])).shape
        [1, 1, 4, 4]
    """

    def __init__(self, output_sizes: Any, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None) -> None:
        self._arguments(output_sizes=output_sizes, kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings,
                        strides=strides, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self._output_sizes, self._kernel_sizes, self._strides, self._paddings, self._dilations)


class LocalResponseNorm(_WithName):
    """Channels damped by the strength of their neighbours; see ``functional.local_response_norm``.

    Args:
        size: the number of channels that count.
        alpha: a factor; see the formula above.
        beta: a factor; see the formula above.
        k: the constant in the divisor.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.LocalResponseNorm(3)(oar.ones([1, 3, 4, 4])).shape
        [1, 3, 4, 4]
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0,
                 data_format: str = "NCHW", name: str | None = None) -> None:
        self._arguments(size=size, alpha=alpha, beta=beta, k=k, data_format=data_format, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self._size, self._alpha, self._beta, self._k, self._data_format)
