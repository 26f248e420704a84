"""Dropout of channels, and dropout for networks of SELU units."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["AlphaDropout", "Dropout2D", "Dropout3D", "FeatureAlphaDropout"]


class _ChannelDropout(Layer):
    def __init__(self, p: float, data_format: str, name: str | None) -> None:
        super().__init__()
        self.p = p
        self.data_format = data_format
        self.name = name

    def extra_repr(self) -> str:
        return f"p={self.p}, data_format={self.data_format}" + (f", name={self.name}" if self.name else "")


class Dropout2D(_ChannelDropout):
    """Sets whole channels of images to zero with probability ``p`` while training."""

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(p, data_format, name)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.data_format)


class Dropout3D(_ChannelDropout):
    """Sets whole channels of volumes to zero with probability ``p`` while training."""

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(p, data_format, name)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.data_format)


class _AlphaDropout(Layer):
    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.p = p
        self.name = name

    def extra_repr(self) -> str:
        return f"p={self.p}" + (f", name={self.name}" if self.name else "")


class AlphaDropout(_AlphaDropout):
    """Dropout that keeps the mean and variance of a SELU network's values."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_AlphaDropout):
    """``AlphaDropout`` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
