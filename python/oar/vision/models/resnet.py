"""ResNet (He and others, 2015), ResNeXt (Xie and others, 2016) and wide ResNet (Zagoruyko and Komodakis, 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import nn
from oar._C import ArgumentValueError, Tensor
from oar.vision.models._utils import load_weights

__all__ = [
    "ResNet", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "resnext101_32x4d", "resnext101_64x4d",
    "resnext152_32x4d", "resnext152_64x4d", "resnext50_32x4d", "resnext50_64x4d", "wide_resnet101_2",
    "wide_resnet50_2",
]  # fmt: skip

# How many blocks each of the four stages has.
_STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicBlock(nn.Layer):
    """Two 3 by 3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = None,
    ) -> None:
        super().__init__()
        if dilation > 1:
            raise NotImplementedError(f"[BasicBlock] dilation is {dilation}; it can only be 1.")
        norm = norm_layer or nn.BatchNorm2D
        self.conv1 = nn.Conv2D(inplanes, planes, 3, stride=stride, padding=1, bias_attr=False)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class BottleneckBlock(nn.Layer):
    """A 3 by 3 convolution between two of 1 by 1, of which the second widens, beside a shortcut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2D
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2D(width, width, 3, stride=stride, padding=dilation, dilation=dilation, groups=groups,
                               bias_attr=False)  # fmt: skip
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2D(width, planes * self.expansion, 1, bias_attr=False)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet(nn.Layer):
    """ResNet: four stages of blocks, each added to what enters it.

    Args:
        block: ``resnet.BasicBlock`` or ``resnet.BottleneckBlock`` of this package.
        depth: the number of layers: 18, 34, 50, 101 or 152.
        width: the channels of each group of a bottleneck in the first stage.
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.
        groups: the groups of the 3 by 3 convolutions of bottlenecks.

    Examples:
        >>> import oar
        >>> from oar.vision.models.resnet import BasicBlock, ResNet
        >>> ResNet(BasicBlock, 18, num_classes=10)(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(
        self,
        block: type[BasicBlock | BottleneckBlock],
        depth: int = 50,
        width: int = 64,
        num_classes: int = 1000,
        with_pool: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if depth not in _STAGES:
            raise ArgumentValueError(f"[ResNet] depth is {depth}; it can be {', '.join(map(str, _STAGES))}.")
        self.groups = groups
        self.base_width = width
        self.num_classes = num_classes
        self.with_pool = with_pool
        self._norm_layer = nn.BatchNorm2D
        self.inplanes = 64
        self.dilation = 1
        self.conv1 = nn.Conv2D(3, 64, kernel_size=7, stride=2, padding=3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        counts = _STAGES[depth]
        self.layer1 = self._make_layer(block, 64, counts[0], 1)
        self.layer2 = self._make_layer(block, 128, counts[1], 2)
        self.layer3 = self._make_layer(block, 256, counts[2], 2)
        self.layer4 = self._make_layer(block, 512, counts[3], 2)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        """Blocks of one width. The first has the stride, and a convolution in its shortcut where the shape changes. Paddle's name and
        arguments: networks of other packages extend this class, with blocks of their own."""
        norm, before, width = self._norm_layer, self.dilation, planes * block.expansion
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample = None
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(nn.Conv2D(self.inplanes, width, 1, stride=stride, bias_attr=False), norm(width))
        layers = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, norm)]
        self.inplanes = width
        layers += [block(width, planes, groups=self.groups, base_width=self.base_width, norm_layer=norm) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width].
        """
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.with_pool:
            x = self.avgpool(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def _resnet(
    arch: str, depth: int, pretrained: bool, kwargs: dict[str, Any], width: int | None = None, groups: int | None = None
) -> ResNet:  # fmt: skip
    if width is not None:
        kwargs["width"] = width
    if groups is not None:
        kwargs["groups"] = groups
    model = ResNet(BasicBlock if depth < 50 else BottleneckBlock, depth, **kwargs)
    if pretrained:
        load_weights(model, arch)
    return model


def resnet18(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 18 layers.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`ResNet`, other than block and depth.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.resnet18(num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """
    return _resnet("resnet18", 18, pretrained, kwargs)


def resnet34(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 34 layers. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnet34()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        21797672
    """
    return _resnet("resnet34", 34, pretrained, kwargs)


def resnet50(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 50 layers. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnet50()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        25557032
    """
    return _resnet("resnet50", 50, pretrained, kwargs)


def resnet101(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 101 layers. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnet101()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        44549160
    """
    return _resnet("resnet101", 101, pretrained, kwargs)


def resnet152(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 152 layers. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnet152()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        60192808
    """
    return _resnet("resnet152", 152, pretrained, kwargs)


def resnext50_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, with 32 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext50_32x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        25028904
    """
    return _resnet("resnext50_32x4d", 50, pretrained, kwargs, width=4, groups=32)


def resnext50_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, with 64 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext50_64x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        45192488
    """
    return _resnet("resnext50_64x4d", 50, pretrained, kwargs, width=4, groups=64)


def resnext101_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, with 32 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext101_32x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        44177704
    """
    return _resnet("resnext101_32x4d", 101, pretrained, kwargs, width=4, groups=32)


def resnext101_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, with 64 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext101_64x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        83455272
    """
    return _resnet("resnext101_64x4d", 101, pretrained, kwargs, width=4, groups=64)


def resnext152_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, with 32 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext152_32x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        59951400
    """
    return _resnet("resnext152_32x4d", 152, pretrained, kwargs, width=4, groups=32)


def resnext152_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, with 64 groups of 4 channels. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.resnext152_64x4d()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        114971944
    """
    return _resnet("resnext152_64x4d", 152, pretrained, kwargs, width=4, groups=64)


def wide_resnet50_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 50 layers whose bottlenecks are twice as wide. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.wide_resnet50_2()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        68883240
    """
    return _resnet("wide_resnet50_2", 50, pretrained, kwargs, width=128)


def wide_resnet101_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 101 layers whose bottlenecks are twice as wide. The arguments are those of :func:`resnet18`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.wide_resnet101_2()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        126886696
    """
    return _resnet("wide_resnet101_2", 101, pretrained, kwargs, width=128)
