"""GoogLeNet (Szegedy and others, 2014)."""

from __future__ import annotations

from typing import Any

from oar import concat, nn
from oar._C import Tensor
from oar.framework import ParamAttr
from oar.nn import functional as F
from oar.vision.models._utils import load_weights

__all__ = ["GoogLeNet", "googlenet"]

# The inception modules: channels that enter, those of the 1 by 1 path, squeezed and returned by the 3 by 3 path, the same
# of the 5 by 5 path, and those of the pooled path.
_MODULES = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


def _uniform(fan_in: int) -> ParamAttr:
    bound = (3.0 / fan_in) ** 0.5
    return ParamAttr(initializer=nn.initializer.Uniform(-bound, bound))


class ConvLayer(nn.Layer):
    """A convolution that keeps the size, up to its stride."""

    def __init__(self, channels: int, filters: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self._conv = nn.Conv2D(channels, filters, size, stride, padding=(size - 1) // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv(x)


class Inception(nn.Layer):
    """Four paths side by side, with ReLU after they are joined."""

    def __init__(self, channels: int, one: int, three_in: int, three: int, five_in: int, five: int, pooled: int) -> None:
        super().__init__()
        self._conv1 = ConvLayer(channels, one, 1)
        self._conv3r = ConvLayer(channels, three_in, 1)
        self._conv3 = ConvLayer(three_in, three, 3)
        self._conv5r = ConvLayer(channels, five_in, 1)
        self._conv5 = ConvLayer(five_in, five, 5)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=1, padding=1)
        self._convprj = ConvLayer(channels, pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        paths = [self._conv1(x), self._conv3(self._conv3r(x)), self._conv5(self._conv5r(x)), self._convprj(self._pool(x))]
        return F.relu(concat(paths, axis=1))


class GoogLeNet(nn.Layer):
    """GoogLeNet, also called Inception v1: nine inception modules. It returns its scores and those of two classifiers half
    way, which help the training.

    Args:
        num_classes: the classes that it tells apart; not above 0: no classifiers.
        with_pool: whether the features are averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.GoogLeNet(num_classes=10)
        >>> [scores.shape for scores in net(oar.zeros([1, 3, 192, 192]))]
        [[1, 10], [1, 10], [1, 10]]
    """

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.with_pool = with_pool
        self._conv = ConvLayer(3, 64, 7, 2)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2)
        self._conv_1 = ConvLayer(64, 64, 1)
        self._conv_2 = ConvLayer(64, 192, 3)
        for name, sizes in _MODULES.items():
            self.add_sublayer(f"_ince{name}", Inception(*sizes))
        if with_pool:
            self._pool_5 = nn.AdaptiveAvgPool2D(1)
            self._pool_o1 = nn.AvgPool2D(kernel_size=5, stride=3)
            self._pool_o2 = nn.AvgPool2D(kernel_size=5, stride=3)
        if num_classes > 0:
            self._add_classifiers(num_classes)

    def _add_classifiers(self, num_classes: int) -> None:
        self._drop = nn.Dropout(p=0.4, mode="downscale_in_infer")
        self._fc_out = nn.Linear(1024, num_classes, weight_attr=_uniform(1024))
        self._conv_o1 = ConvLayer(512, 128, 1)
        self._fc_o1 = nn.Linear(1152, 1024, weight_attr=_uniform(2048))
        self._drop_o1 = nn.Dropout(p=0.7, mode="downscale_in_infer")
        self._out1 = nn.Linear(1024, num_classes, weight_attr=_uniform(1024))
        self._conv_o2 = ConvLayer(528, 128, 1)
        self._fc_o2 = nn.Linear(1152, 1024, weight_attr=_uniform(2048))
        self._drop_o2 = nn.Dropout(p=0.7, mode="downscale_in_infer")
        self._out2 = nn.Linear(1024, num_classes, weight_attr=_uniform(1024))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of the classes: the network's own, and those of the two classifiers half way.

        Args:
            inputs: images [batch, 3, 224, 224].
        """
        x = self._pool(self._conv(inputs))
        x = self._pool(self._conv_2(self._conv_1(x)))
        x = self._pool(self._ince3b(self._ince3a(x)))
        first = self._ince4a(x)
        second = self._ince4d(self._ince4c(self._ince4b(first)))
        x = self._pool(self._ince4e(second))
        x = self._ince5b(self._ince5a(x))
        if self.with_pool:
            x, first, second = self._pool_5(x), self._pool_o1(first), self._pool_o2(second)
        if self.num_classes > 0:
            x = self._fc_out(self._drop(x).squeeze([2, 3]))
            first = F.relu(self._fc_o1(self._conv_o1(first).flatten(1)))
            first = self._out1(self._drop_o1(first))
            second = self._fc_o2(self._conv_o2(second).flatten(1))  # Paddle has no ReLU here
            second = self._out2(self._drop_o2(second))
        return x, first, second


def googlenet(pretrained: bool = False, **kwargs: Any) -> GoogLeNet:
    """GoogLeNet.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`GoogLeNet`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> scores, first, second = oar.vision.models.googlenet()(oar.zeros([1, 3, 192, 192]))
        >>> scores.shape
        [1, 1000]
    """
    model = GoogLeNet(**kwargs)
    if pretrained:
        load_weights(model, "googlenet")
    return model
