"""Layers that detect objects in images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import nn
from oar._C import Tensor, ops
from oar.nn.layer.conv import _ConvNd, _per_axis

__all__ = ["ConvNormActivation", "DeformConv2D", "PSRoIPool", "RoIAlign", "RoIPool"]


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


class RoIAlign(nn.Layer):
    """``roi_align`` as a layer.

    Args:
        output_size: one number or [height, width] of the result.
        spatial_scale: what boxes are multiplied by to be in pixels of x.

    Examples:
        >>> import oar
        >>> align = oar.vision.ops.RoIAlign(output_size=2)
        >>> boxes = oar.to_tensor([[0.0, 0.0, 4.0, 4.0]])
        >>> align(oar.ones([1, 3, 8, 8]), boxes, oar.to_tensor([1], dtype='int32')).shape
        [1, 3, 2, 2]
    """

    def __init__(self, output_size: int | list[int] | tuple[int, int], spatial_scale: float = 1.0) -> None:
        super().__init__()
        self._output_size = output_size
        self._spatial_scale = spatial_scale

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor, aligned: bool = True) -> Tensor:
        """The regions [count, channels, height, width].

        Args:
            x: images [batch, channels, height, width].
            boxes: [count, 4]: left, top, right and bottom of each.
            boxes_num: how many boxes each image has.
            aligned: boxes are moved by half a pixel.
        """
        return ops.roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, -1, aligned)


class RoIPool(nn.Layer):
    """``roi_pool`` as a layer.

    Args:
        output_size: one number or [height, width] of the result.
        spatial_scale: what boxes are multiplied by to be in pixels of x.

    Examples:
        >>> import oar
        >>> pool = oar.vision.ops.RoIPool(output_size=(4, 3))
        >>> boxes = oar.to_tensor([[0.0, 0.0, 4.0, 4.0]])
        >>> pool(oar.ones([1, 3, 8, 8]), boxes, oar.to_tensor([1], dtype='int32')).shape
        [1, 3, 4, 3]
    """

    def __init__(self, output_size: int | list[int] | tuple[int, int], spatial_scale: float = 1.0) -> None:
        super().__init__()
        self._output_size = output_size
        self._spatial_scale = spatial_scale

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        """The regions [count, channels, height, width].

        Args:
            x: images [batch, channels, height, width].
            boxes: [count, 4]: left, top, right and bottom of each.
            boxes_num: how many boxes each image has.
        """
        return ops.roi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self._output_size}, spatial_scale={self._spatial_scale}"


class PSRoIPool(nn.Layer):
    """``psroi_pool`` as a layer.

    Args:
        output_size: one number or [height, width] of the result.
        spatial_scale: what boxes are multiplied by to be in pixels of x.

    Examples:
        >>> import oar
        >>> pool = oar.vision.ops.PSRoIPool(2)
        >>> boxes = oar.to_tensor([[0.0, 0.0, 4.0, 4.0]])
        >>> pool(oar.ones([1, 12, 8, 8]), boxes, oar.to_tensor([1], dtype='int32')).shape
        [1, 3, 2, 2]
    """

    def __init__(self, output_size: int | list[int] | tuple[int, int], spatial_scale: float = 1.0) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        """The regions [count, channels / (height * width), height, width].

        Args:
            x: images [batch, channels, height, width].
            boxes: [count, 4]: left, top, right and bottom of each.
            boxes_num: how many boxes each image has.
        """
        return ops.psroi_pool(x, boxes, boxes_num, self.output_size, self.spatial_scale)


class ConvNormActivation(nn.Sequential):
    """A convolution of images, a norm and an activation.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: the size of the window.
        stride: the step of the window.
        padding: zeros around the image; if None, so many that the size only depends on the stride.
        groups: input and output channels are split into this many independent parts.
        norm_layer: called with out_channels; None for no norm.
        activation_layer: called without arguments; None for no activation.
        dilation: the step between the elements of the window.
        bias: whether the convolution has a bias; if None, it has one without a norm.

    Examples:
        >>> import oar
        >>> block = oar.vision.ops.ConvNormActivation(3, 8, stride=2)
        >>> block(oar.ones([1, 3, 8, 8])).shape
        [1, 8, 4, 4]
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = nn.BatchNorm2D,
        activation_layer: Callable[..., nn.Layer] | None = nn.ReLU,
        dilation: int = 1,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        has_bias = norm_layer is None if bias is None else bias
        layers: list[nn.Layer] = [
            nn.Conv2D(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups,
                bias_attr=None if has_bias else False,
            )
        ]  # fmt: skip
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer())
        super().__init__(*layers)
