"""Layers that pad, resize and rearrange images."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = [
    "ChannelShuffle", "Fold", "LocalResponseNorm", "Pad1D", "Pad2D", "Pad3D", "PixelShuffle", "PixelUnshuffle",
    "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D", "ZeroPad1D", "ZeroPad2D", "ZeroPad3D",
]


class _WithName(Layer):
    """Shows its arguments by the attributes that ``_shown`` lists."""

    _shown: tuple[str, ...] = ()

    def _arguments(self, **arguments: Any) -> None:
        super().__init__()
        for key, value in arguments.items():
            setattr(self, f"_{key}", value)
        self._shown = tuple(arguments)

    def extra_repr(self) -> str:
        given = ("name", "scale_factor", "size")  # shown only where they are
        shown = {key: getattr(self, f"_{key}") for key in self._shown}
        return ", ".join(f"{key}={value}" for key, value in shown.items() if key not in given or value is not None)


class _Pad(_WithName):
    _axes: int

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "",
                 name: str | None = None) -> None:
        pads = [padding] * (2 * self._axes) if isinstance(padding, int) else padding
        self._arguments(padding=pads, mode=mode, value=value, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self._padding, self._mode, self._value, self._data_format)


class Pad1D(_Pad):
    """Sequences with elements put around them: ``padding`` is a number or [left, right]; see ``functional.pad``."""

    _axes = 1

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCL",
                 name: str | None = None) -> None:
        super().__init__(padding, mode, value, data_format, name)


class Pad2D(_Pad):
    """Images with pixels put around them: ``padding`` is a number or [left, right, top, bottom]."""

    _axes = 2

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCHW",
                 name: str | None = None) -> None:
        super().__init__(padding, mode, value, data_format, name)


class Pad3D(_Pad):
    """Volumes with elements put around them: ``padding`` is a number or [left, right, top, bottom, front, back]."""

    _axes = 3

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCDHW",
                 name: str | None = None) -> None:
        super().__init__(padding, mode, value, data_format, name)


class ZeroPad1D(Pad1D):
    """Sequences with zeros around them."""

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)
        self._shown = ("padding", "data_format", "name")


class ZeroPad2D(Pad2D):
    """Images with zeros around them."""

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)
        self._shown = ("padding", "data_format", "name")


class ZeroPad3D(Pad3D):
    """Volumes with zeros around them."""

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)
        self._shown = ("padding", "data_format", "name")


class Upsample(_WithName):
    """Images at another size; see ``functional.interpolate``."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False,
                 align_mode: int = 0, data_format: str | None = None, name: str | None = None) -> None:
        self._arguments(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
                        align_mode=align_mode, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self._size, self._scale_factor, self._mode, self._align_corners, self._align_mode,
                             self._data_format)


class UpsamplingNearest2D(Upsample):
    """Images at another size, each pixel the nearest one."""

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW",
                 name: str | None = None) -> None:
        super().__init__(size, scale_factor, "nearest", False, 0, data_format, name)
        self._shown = ("size", "scale_factor", "data_format", "name")


class UpsamplingBilinear2D(Upsample):
    """Images at another size, bilinearly, the corners kept."""

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW",
                 name: str | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True, 0, data_format, name)
        self._shown = ("size", "scale_factor", "data_format", "name")


class PixelShuffle(_WithName):
    """Channels become pixels of a larger image; see ``functional.pixel_shuffle``."""

    def __init__(self, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        self._arguments(upscale_factor=upscale_factor, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)


class PixelUnshuffle(_WithName):
    """Blocks of pixels become channels: the reverse of ``PixelShuffle``."""

    def __init__(self, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        self._arguments(downscale_factor=downscale_factor, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)


class ChannelShuffle(_WithName):
    """Mixes groups of channels; see ``functional.channel_shuffle``."""

    def __init__(self, groups: int, data_format: str = "NCHW", name: str | None = None) -> None:
        self._arguments(groups=groups, data_format=data_format, name=name)

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self._groups, self._data_format)


class Unfold(_WithName):
    """Windows of images as columns; see ``functional.unfold``."""

    def __init__(self, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None) -> None:
        self._arguments(kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings, strides=strides, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self._kernel_sizes, self._strides, self._paddings, self._dilations)


class Fold(_WithName):
    """Columns added up to images; see ``functional.fold``."""

    def __init__(self, output_sizes: Any, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None) -> None:
        self._arguments(output_sizes=output_sizes, kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings,
                        strides=strides, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self._output_sizes, self._kernel_sizes, self._strides, self._paddings, self._dilations)


class LocalResponseNorm(_WithName):
    """Channels damped by the strength of their neighbours; see ``functional.local_response_norm``."""

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0,
                 data_format: str = "NCHW", name: str | None = None) -> None:
        self._arguments(size=size, alpha=alpha, beta=beta, k=k, data_format=data_format, name=name)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self._size, self._alpha, self._beta, self._k, self._data_format)
