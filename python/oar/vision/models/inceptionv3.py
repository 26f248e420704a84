"""Inception v3 (Szegedy and others, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oar import concat, nn
from oar._C import Tensor
from oar.framework import ParamAttr
from oar.vision._layers import ConvNormActivation
from oar.vision.models._utils import load_weights

__all__ = ["InceptionV3", "inception_v3"]


class _Conv(NamedTuple):
    """A convolution of a path: its name in the module, the channels that it returns, its window and its stride. One with a
    stride of 1 keeps the size, the others do not look beyond the edge."""

    name: str
    channels: int
    window: Any = 1
    stride: int = 1


_Step = tuple[_Conv, ...]  # convolutions of the same input; the results of two are joined
_SQUARE_7 = ((1, 7), (7, 1))  # a 7 by 7 window as two steps


def _convolution(entering: int, conv: _Conv) -> ConvNormActivation:
    height, width = conv.window if isinstance(conv.window, tuple) else (conv.window, conv.window)
    padding: Any = (height // 2, width // 2) if conv.stride == 1 else 0
    return ConvNormActivation(entering, conv.channels, conv.window, conv.stride, padding)


def _path(*convs: _Conv) -> tuple[_Step, ...]:
    return tuple((conv,) for conv in convs)


class _Mixed(nn.Layer):
    """Paths side by side, joined with a pooled one.

    Args:
        entering: the channels of the input.
        paths: each a sequence of steps.
        pooled: the channels to which averages of 3 by 3 windows are convolved; None: the largest of each window, at
            half the size.
    """

    def __init__(self, entering: int, paths: Sequence[Sequence[_Step]], pooled: int | None) -> None:
        super().__init__()
        self._paths = [[[conv.name for conv in step] for step in path] for path in paths]
        for path in paths:
            channels = entering
            for step in path:
                for conv in step:
                    self.add_sublayer(conv.name, _convolution(channels, conv))
                channels = sum(conv.channels for conv in step)
        self._projected = pooled is not None
        if pooled is None:
            self.branch_pool: nn.Layer = nn.MaxPool2D(kernel_size=3, stride=2)
        else:
            self.branch_pool = nn.AvgPool2D(kernel_size=3, stride=1, padding=1, exclusive=False)
            self.branch_pool_conv = ConvNormActivation(entering, pooled, 1)

    def _along(self, path: list[list[str]], x: Tensor) -> Tensor:
        for step in path:
            results = [getattr(self, name)(x) for name in step]
            x = results[0] if len(results) == 1 else concat(results, axis=1)
        return x

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.branch_pool(x)
        if self._projected:
            pooled = self.branch_pool_conv(pooled)
        return concat([*(self._along(path, x) for path in self._paths), pooled], axis=1)


class InceptionStem(nn.Layer):
    """The convolutions before the modules: an eighth of the size, 192 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1a_3x3 = ConvNormActivation(3, 32, 3, 2, 0)
        self.conv_2a_3x3 = ConvNormActivation(32, 32, 3, 1, 0)
        self.conv_2b_3x3 = ConvNormActivation(32, 64, 3, 1, 1)
        self.max_pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=0)
        self.conv_3b_1x1 = ConvNormActivation(64, 80, 1, 1, 0)
        self.conv_4a_3x3 = ConvNormActivation(80, 192, 3, 1, 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.conv_2b_3x3(self.conv_2a_3x3(self.conv_1a_3x3(x))))
        return self.max_pool(self.conv_4a_3x3(self.conv_3b_1x1(x)))


def _module_a(entering: int, pooled: int) -> _Mixed:
    """Windows of 1, 3 and 5, at 35 by 35 positions of an image of 299 by 299."""
    one = _path(_Conv("branch1x1", 64))
    five = _path(_Conv("branch5x5_1", 48), _Conv("branch5x5_2", 64, 5))
    double = _path(_Conv("branch3x3dbl_1", 64), _Conv("branch3x3dbl_2", 96, 3), _Conv("branch3x3dbl_3", 96, 3))
    return _Mixed(entering, (one, five, double), pooled)


def _module_b(entering: int) -> _Mixed:
    """From 35 to 17 positions."""
    three = _path(_Conv("branch3x3", 384, 3, 2))
    double = _path(_Conv("branch3x3dbl_1", 64), _Conv("branch3x3dbl_2", 96, 3), _Conv("branch3x3dbl_3", 96, 3, 2))
    return _Mixed(entering, (three, double), None)


def _module_c(entering: int, inside: int) -> _Mixed:
    """Windows of 7, split into rows and columns, at 17 by 17 positions."""
    across, down = _SQUARE_7
    one = _path(_Conv("branch1x1", 192))
    seven = _path(_Conv("branch7x7_1", inside), _Conv("branch7x7_2", inside, across), _Conv("branch7x7_3", 192, down))
    double = _path(
        _Conv("branch7x7dbl_1", inside), _Conv("branch7x7dbl_2", inside, down), _Conv("branch7x7dbl_3", inside, across),
        _Conv("branch7x7dbl_4", inside, down), _Conv("branch7x7dbl_5", 192, across),
    )  # fmt: skip
    return _Mixed(entering, (one, seven, double), 192)


def _module_d(entering: int) -> _Mixed:
    """From 17 to 8 positions."""
    across, down = _SQUARE_7
    three = _path(_Conv("branch3x3_1", 192), _Conv("branch3x3_2", 320, 3, 2))
    seven = _path(_Conv("branch7x7x3_1", 192), _Conv("branch7x7x3_2", 192, across), _Conv("branch7x7x3_3", 192, down),
                  _Conv("branch7x7x3_4", 192, 3, 2))  # fmt: skip
    return _Mixed(entering, (three, seven), None)


def _module_e(entering: int) -> _Mixed:
    """Rows and columns of 3 side by side, at 8 by 8 positions."""
    one = _path(_Conv("branch1x1", 320))
    three = (*_path(_Conv("branch3x3_1", 384)),
             (_Conv("branch3x3_2a", 384, (1, 3)), _Conv("branch3x3_2b", 384, (3, 1))))  # fmt: skip
    double = (*_path(_Conv("branch3x3dbl_1", 448), _Conv("branch3x3dbl_2", 384, 3)),
              (_Conv("branch3x3dbl_3a", 384, (1, 3)), _Conv("branch3x3dbl_3b", 384, (3, 1))))  # fmt: skip
    return _Mixed(entering, (one, three, double), 192)


class InceptionV3(nn.Layer):
    """Inception v3: eleven modules of five kinds.

    Args:
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.InceptionV3(num_classes=10).eval()
        >>> net(oar.zeros([1, 3, 75, 75])).shape
        [1, 10]
    """

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.with_pool = with_pool
        self.inception_stem = InceptionStem()
        self.inception_block_list = nn.LayerList([
            _module_a(192, 32), _module_a(256, 64), _module_a(288, 64), _module_b(288),
            _module_c(768, 128), _module_c(768, 160), _module_c(768, 160), _module_c(768, 192), _module_d(768),
            _module_e(1280), _module_e(2048),
        ])  # fmt: skip
        if with_pool:
            self.avg_pool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.dropout = nn.Dropout(p=0.2, mode="downscale_in_infer")
            bound = 2048**-0.5
            uniform = ParamAttr(initializer=nn.initializer.Uniform(-bound, bound))
            self.fc = nn.Linear(2048, num_classes, weight_attr=uniform)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width], at least 75 by 75.
        """
        x = self.inception_stem(x)
        for module in self.inception_block_list:
            x = module(x)
        if self.with_pool:
            x = self.avg_pool(x)
        return self.fc(self.dropout(x.reshape([-1, 2048]))) if self.num_classes > 0 else x


def inception_v3(pretrained: bool = False, **kwargs: Any) -> InceptionV3:
    """Inception v3.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`InceptionV3`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.inception_v3()
        ...
        >>> sum(p.size for p in net.parameters() if not p.stop_gradient)
        23834568
    """
    model = InceptionV3(**kwargs)
    if pretrained:
        load_weights(model, "inception_v3")
    return model
