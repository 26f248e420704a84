"""Dropout and a sum."""

from __future__ import annotations

from oar import nn
from oar._C import Tensor
from oar.incubate.nn import functional as fused

__all__ = ["FusedDropoutAdd"]


class FusedDropoutAdd(nn.Layer):
    """dropout(x) + y.

    Args:
        p: the probability of a zero.
        mode: 'upscale_in_train' or 'downscale_in_infer'.

    Examples:
        >>> import oar
        >>> layer = oar.incubate.nn.FusedDropoutAdd(0.5).eval()
        >>> layer(oar.ones([2]), oar.ones([2])).tolist()
        [2.0, 2.0]
    """

    def __init__(self, p: float = 0.5, mode: str = "upscale_in_train", name: str | None = None) -> None:
        super().__init__()
        self.p = p
        self.mode = mode
        self.name = name

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum.

        Args:
            x: the input.
            y: the second input.
        """
        return fused.fused_dropout_add(x, y, self.p, self.training, self.mode)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"
