"""DenseNet (Huang and others, 2016)."""

from __future__ import annotations

from typing import Any

from oar import concat, nn
from oar._C import ArgumentValueError, Tensor
from oar.framework import ParamAttr
from oar.vision.models._utils import load_weights

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201", "densenet264"]

# By the number of layers: channels of the first convolution, channels that each layer adds, layers of each block.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
    264: (64, 32, (6, 12, 64, 48)),
}


class BNACConvLayer(nn.Layer):
    """A batch norm, ReLU and a convolution."""

    def __init__(self, channels: int, filters: int, size: int) -> None:
        super().__init__()
        self._batch_norm = nn.BatchNorm(channels, act="relu")
        self._conv = nn.Conv2D(channels, filters, size, padding=size // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv(self._batch_norm(x))


class DenseLayer(nn.Layer):
    """Adds channels to those that enter."""

    def __init__(self, channels: int, growth: int, bn_size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.bn_ac_func1 = BNACConvLayer(channels, bn_size * growth, 1)
        self.bn_ac_func2 = BNACConvLayer(bn_size * growth, growth, 3)
        if dropout:
            self.dropout_func = nn.Dropout(p=dropout, mode="downscale_in_infer")

    def forward(self, x: Tensor) -> Tensor:
        added = self.bn_ac_func2(self.bn_ac_func1(x))
        return concat([x, self.dropout_func(added) if self.dropout else added], axis=1)


class DenseBlock(nn.Layer):
    """Layers, each of which reads the channels of all that come before it."""

    def __init__(self, channels: int, count: int, bn_size: int, growth: int, dropout: float, name: str) -> None:
        super().__init__()
        for i in range(count):
            self.add_sublayer(f"{name}_{i + 1}", DenseLayer(channels + i * growth, growth, bn_size, dropout))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = layer(x)
        return x


class TransitionLayer(nn.Layer):
    """Fewer channels, at half the size."""

    def __init__(self, channels: int, leaving: int) -> None:
        super().__init__()
        self.conv_ac_func = BNACConvLayer(channels, leaving, 1)
        self.pool2d_avg = nn.AvgPool2D(kernel_size=2, stride=2, padding=0)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool2d_avg(self.conv_ac_func(x))


class ConvBNLayer(nn.Layer):
    """The first convolution, with a batch norm and ReLU."""

    def __init__(self, channels: int, filters: int, size: int, stride: int, padding: int) -> None:
        super().__init__()
        self._conv = nn.Conv2D(channels, filters, size, stride, padding, bias_attr=False)
        self._batch_norm = nn.BatchNorm(filters, act="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self._batch_norm(self._conv(x))


class DenseNet(nn.Layer):
    """DenseNet: four blocks whose layers read the results of all layers before.

    Args:
        layers: their number: 121, 161, 169, 201 or 264.
        bn_size: the width inside a layer, as a multiple of the channels that it adds.
        dropout: the probability that a number that a layer adds is dropped.
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.DenseNet(num_classes=10).eval()
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(
        self,
        layers: int = 121,
        bn_size: int = 4,
        dropout: float = 0.0,
        num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:
        super().__init__()
        if layers not in _SIZES:
            raise ArgumentValueError(f"[DenseNet] layers is {layers}; it can be {', '.join(map(str, _SIZES))}.")
        self.num_classes = num_classes
        self.with_pool = with_pool
        channels, growth, counts = _SIZES[layers]
        self.conv1_func = ConvBNLayer(3, channels, 7, 2, 3)
        self.pool2d_max = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self._blocks: list[str] = []
        for i, count in enumerate(counts, 2):
            self._add(f"db_conv_{i}", DenseBlock(channels, count, bn_size, growth, dropout, f"conv{i}"))
            channels += count * growth
            if i < len(counts) + 1:
                self._add(f"tr_conv{i}_blk", TransitionLayer(channels, channels // 2))
                channels //= 2
        self.batch_norm = nn.BatchNorm(channels, act="relu")
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            bound = channels**-0.5
            uniform = ParamAttr(initializer=nn.initializer.Uniform(-bound, bound))
            self.out = nn.Linear(channels, num_classes, weight_attr=uniform)

    def _add(self, name: str, layer: nn.Layer) -> None:
        self.add_sublayer(name, layer)
        self._blocks.append(name)

    def forward(self, input: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            input: images [batch, 3, height, width].
        """
        x = self.pool2d_max(self.conv1_func(input))
        for name in self._blocks:
            x = getattr(self, name)(x)
        x = self.batch_norm(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.out(x.flatten(1)) if self.num_classes > 0 else x


def _densenet(layers: int, pretrained: bool, kwargs: dict[str, Any]) -> DenseNet:
    model = DenseNet(layers=layers, **kwargs)
    if pretrained:
        load_weights(model, f"densenet{layers}")
    return model


def densenet121(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 121 layers.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`DenseNet`, other than layers.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.densenet121()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        7978856
    """
    return _densenet(121, pretrained, kwargs)


def densenet161(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 161 layers. The arguments are those of :func:`densenet121`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.densenet161()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        28681000
    """
    return _densenet(161, pretrained, kwargs)


def densenet169(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 169 layers. The arguments are those of :func:`densenet121`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.densenet169()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        14149480
    """
    return _densenet(169, pretrained, kwargs)


def densenet201(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 201 layers. The arguments are those of :func:`densenet121`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.densenet201()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        20013928
    """
    return _densenet(201, pretrained, kwargs)


def densenet264(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 264 layers. The arguments are those of :func:`densenet121`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.densenet264()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        33337704
    """
    return _densenet(264, pretrained, kwargs)
