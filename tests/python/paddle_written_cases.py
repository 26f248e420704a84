"""What is written for Paddle and read again: name -> (layer or function, sizes of its input, dtype)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import oar
from oar import nn

functional = nn.functional


class Recurrent(nn.Layer):
    def __init__(self, kind: type[nn.Layer], **how: Any) -> None:
        super().__init__()
        self.layers, self.head = kind(5, 6, **how), nn.Linear(12 if how.get("direction") else 6, 3)

    def forward(self, x):
        steps, _ = self.layers(x)
        return self.head(steps[:, -1]), steps


class Encoder(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(50, 16), nn.Linear(16, 5)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)

    def forward(self, ids):
        return functional.softmax(self.head(self.layers(self.table(ids)).mean(1)))


class Windows(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.line, self.volume, self.back = nn.Conv1D(6, 4, 3, padding=1), nn.Conv3D(1, 2, 3, padding=1), nn.Conv2DTranspose(1, 3, 3, stride=2, padding=1)
        self.groups, self.instance, self.batch, self.rows = nn.GroupNorm(2, 6), nn.InstanceNorm1D(6), nn.BatchNorm1D(6), nn.LayerNorm([6, 5])

    def forward(self, x):
        image = x.unsqueeze(1)
        volume = image.unsqueeze(2)
        return (self.line(x), self.volume(volume), self.back(image), self.groups(x), self.instance(x), self.batch(x), self.rows(x),
                functional.max_pool1d(x, 2), functional.avg_pool2d(image, 3, 2, padding=1, exclusive=False, ceil_mode=True),
                functional.max_pool3d(volume, (1, 2, 2)), functional.adaptive_avg_pool2d(image, [3, 2]), functional.adaptive_max_pool2d(image, 1),
                functional.interpolate(image, scale_factor=2, mode="bilinear"), functional.interpolate(image, size=[7, 4], mode="nearest"),
                functional.interpolate(image, size=[7, 9], mode="bicubic"), functional.interpolate(x, size=[9], mode="linear", data_format="NCW"),
                functional.unfold(image, 3), functional.pad(image, [1, 1, 2, 2], mode="reflect"))


def channels_last(x):
    image = x.unsqueeze(-1)
    return functional.max_pool2d(functional.conv2d(image, oar.ones([2, 1, 3, 3]), padding=1, data_format="NHWC"), 2, data_format="NHWC")


def slices(x):
    return (x[:, -1], x[:, 1:-1:2], x[..., None, ::-1], x[:, :, 2], x[0], x[:, 1:3, 1:-1], x[:, 5:0:-2], oar.flip(x, [1]),
            oar.strided_slice(x, [1, 2], [0, 4], [6, 0], [2, -2]))


def assignments(x):
    made = x * 1
    made[:, 1:3] = 0.5
    made[:, ::2, 1] = x[:, ::2, 2]
    made[0] = 1.0
    made[:, -1] = x[:, 0]
    return made


def shapes(x):
    rows = x.shape[0]
    return (x.reshape([rows, -1]), oar.zeros([rows, 3]) + 1, x.transpose([0, 2, 1]).reshape([-1, 6]), oar.tile(x, [1, 2, 1]),
            oar.expand(x[:, :1], [-1, 4, -1]), oar.concat([x, x], -1), oar.stack([x, x], 1), oar.squeeze(x[:, :1], 1), oar.unsqueeze(x, [1, -1]),
            oar.split(x, 2, 1)[1], functional.pad(x, [1, 2], data_format="NCL"), oar.tril(x), oar.triu(x, 1), oar.full_like(x, 2.0))


def reductions(x):
    return (x.sum(), x.mean(1), x.max([1, 2], keepdim=True), oar.prod(x, 1), oar.logsumexp(x, -1), oar.argmax(x, 1), oar.argmax(x),
            oar.cumsum(x, 1), *oar.topk(x, 2, -1), oar.sort(x, 1), oar.argsort(x, -1, descending=True), (x > 0).any(1), (x > -9).all(), x.std(1))


def selections(x):
    at = oar.to_tensor([1, 0, 2])
    return (x[:, at], oar.gather(x, at, 1), oar.where(x > 0, x, -x), oar.take_along_axis(x, oar.argsort(x, 1), 1),
            oar.gather_nd(x, oar.to_tensor([[0, 1], [1, 2]])), functional.one_hot(oar.argmax(x, -1), 5), oar.clip(x, -0.5, 0.5),
            oar.masked_select(x, x > 0), oar.nonzero(x > 0))


_ELEMENTS = ("relu relu6 silu swish mish gelu elu celu selu leaky_relu hardswish hardsigmoid hardtanh hardshrink softshrink tanhshrink softplus "
             "softsign log_sigmoid softmax log_softmax").split()
_MATH = "exp tanh abs floor ceil round sign square sin cos tan atan sinh cosh asinh erf expm1 trunc isnan isfinite".split()


def elements(x):
    functions = [getattr(functional, name) for name in _ELEMENTS] + [getattr(oar, name) for name in _MATH]
    return (*(f(x) for f in functions), x + 1, 1 - x, x / 4, x**2, x // 0.3, x % 0.7, oar.maximum(x, x * 2), x > 0, ~(x > 0),
            oar.cast(x, "int64"), oar.atan2(x, x + 1), functional.prelu(x, oar.to_tensor([0.3])))


def loop(x):
    count, made = oar.static.nn.while_loop(lambda i, y: (i < 3).all(), lambda i, y: (i + 1, y * 1.1 + x), [oar.zeros([1], "int64"), x])
    return made, count


def branch(x):
    return oar.static.nn.cond(x.sum() > 0, lambda: x * 2 + 1, lambda: x - 1) + 1


FUNCTIONS: tuple[Callable, ...] = (slices, assignments, shapes, reductions, selections, elements, loop, branch, channels_last)
LAYERS: dict[str, Callable[[], nn.Layer]] = {
    "lstm": lambda: Recurrent(nn.LSTM, num_layers=2, direction="bidirect"),
    "gru": lambda: Recurrent(nn.GRU, num_layers=2),
    "backwards": lambda: Recurrent(nn.GRU, direction="bidirect"),
    "simple": lambda: Recurrent(nn.SimpleRNN, activation="relu"),
    "windows": Windows,
    "encoder": Encoder,
}
CASES = [*LAYERS, *(f.__name__ for f in FUNCTIONS)]


def case(name: str) -> tuple[Callable, list[oar.static.InputSpec], np.ndarray]:
    """The layer or function, what it takes and an input."""
    oar.seed(0)
    if name in LAYERS:
        made: Any = LAYERS[name]()
        made.eval()
    else:
        made = next(f for f in FUNCTIONS if f.__name__ == name)
    stream = np.random.RandomState(1)
    if name == "encoder":
        return made, [oar.static.InputSpec([None, 7], "int64", "x")], stream.randint(0, 50, [3, 7])
    return made, [oar.static.InputSpec([None, 6, 5], "float32", "x")], stream.randn(3, 6, 5).astype("float32")


def results(function: Callable, x: np.ndarray) -> list[np.ndarray]:
    with oar.no_grad():
        made = function(oar.to_tensor(x))
    return [t.numpy() for t in (made if isinstance(made, (list, tuple)) else [made])]
