"""Functions and layers that detect objects in images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oar._C import Tensor, ops
from oar.nn.layer.conv import _ConvNd, _per_axis

if TYPE_CHECKING:
    from oar._ops import deform_conv2d
else:
    deform_conv2d = ops.deform_conv2d

__all__ = ["DeformConv2D", "deform_conv2d"]


class DeformConv2D(_ConvNd):
    """Convolution of images whose taps read where offsets move them, between pixels bilinearly.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: one number or [height, width]; likewise ``stride``, ``padding`` and ``dilation``.
        deformable_groups: the number of groups of input channels, each with its own offsets.
        groups: input and output channels are split into this many independent parts.
        weight_attr: attributes of the weight.
        bias_attr: attributes of the bias; False for none.

    Examples:
        >>> import oar
        >>> conv = oar.vision.ops.DeformConv2D(3, 4, 3)
        >>> images, offsets = oar.ones([1, 3, 8, 8]), oar.zeros([1, 18, 6, 6])
        >>> conv(images, offsets).shape
        [1, 4, 6, 6]
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        deformable_groups: int = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        if deformable_groups < 1 or in_channels % deformable_groups:
            raise ValueError(
                f"in_channels ({in_channels}) must be divisible by deformable_groups ({deformable_groups})."
            )
        super().__init__(
            in_channels, out_channels, kernel_size, False, 2, stride, _per_axis(padding, 2, "padding"), "zeros", 0,
            dilation, groups, weight_attr, bias_attr, "NCHW",
        )  # fmt: skip
        self._deformable_groups = deformable_groups

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """The result [batch, out_channels, out_height, out_width].

        Args:
            x: images [batch, in_channels, height, width].
            offset: [batch, 2 * deformable_groups * taps, out_height, out_width]: how far down, then how far right each
                tap of a deformable group reads.
            mask: [batch, deformable_groups * taps, out_height, out_width]: what each tap reads is multiplied by it.
        """
        return ops.deform_conv2d(
            x, offset, self.weight, self.bias, self._stride, self._padding, self._dilation, self._deformable_groups,
            self._groups, mask,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = "" if self._deformable_groups == 1 else f", deformable_groups={self._deformable_groups}"
        return super().extra_repr() + parts
