"""Dropout of channels, and dropout for networks of SELU units."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn._axes import Axes, for_axes
from oar.nn.layer.layers import Layer

__all__ = ["AlphaDropout", "Dropout2D", "Dropout3D", "FeatureAlphaDropout"]


def _channel_dropout(axes: Axes) -> type[Layer]:
    function = f"dropout{axes.count}d"

    class ChannelDropout(Layer):
        """Sets whole channels of {inputs} to zero with probability ``p`` while training.

        Args:
            p: the probability of setting a channel to zero.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.Dropout{n}D(0.5)(oar.ones([2, 3, {sizes:4}])).shape
            [2, 3, {sizes:4}]
        """

        def __init__(self, p: float = 0.5, data_format: str = axes.first, name: str | None = None) -> None:
            super().__init__()
            self.p = p
            self.data_format = data_format
            self.name = name

        def forward(self, input: Tensor) -> Tensor:
            return getattr(F, function)(input, self.p, self.training, self.data_format)

        def extra_repr(self) -> str:
            return f"p={self.p}, data_format={self.data_format}" + (f", name={self.name}" if self.name else "")

    return ChannelDropout


Dropout2D, Dropout3D = for_axes("Dropout{n}D", _channel_dropout, (2, 3))


class _AlphaDropout(Layer):
    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.p = p
        self.name = name

    def extra_repr(self) -> str:
        return f"p={self.p}" + (f", name={self.name}" if self.name else "")


class AlphaDropout(_AlphaDropout):
    """Dropout that keeps the mean and variance of a SELU network's values.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.AlphaDropout(0.5)
        >>> _ = layer.eval()
        >>> layer(oar.to_tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [ 1., -2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_AlphaDropout):
    """``AlphaDropout`` of whole channels.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.FeatureAlphaDropout(0.5)(oar.ones([2, 3, 4, 4])).shape
        [2, 3, 4, 4]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
