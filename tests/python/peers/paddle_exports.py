"""Networks that Paddle exports for test_paddle_exports.py: its side, which runs in its environment.

A line of standard input is a JSON list: a case and the prefix of the files to write. Inputs and results go to the prefix with `.npz`. The
case "read" runs files that Oar wrote.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

SEQUENCES = ("LSTM", "GRU", "SimpleRNN")
VISION = ("LeNet", "alexnet", "vgg11", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v1", "mobilenet_v2",
          "mobilenet_v3_small", "mobilenet_v3_large", "squeezenet1_0", "squeezenet1_1", "densenet121", "googlenet", "inception_v3",
          "shufflenet_v2_x0_25", "shufflenet_v2_swish")
OTHERS = ("encoder", "loop", "branch", "elements", "shapes", "windows")
CASES = (*VISION, *SEQUENCES, *OTHERS)


def layers(paddle):
    """The networks that are no part of Paddle."""
    nn, f = paddle.nn, paddle.nn.functional

    class Sequence(nn.Layer):
        def __init__(self, kind):
            super().__init__()
            self.table, self.rnn, self.head = nn.Embedding(50, 12), kind(12, 16, num_layers=2, direction="bidirect"), nn.Linear(32, 5)

        def forward(self, ids):
            states, _ = self.rnn(self.table(ids))
            return self.head(states[:, -1]), paddle.argmax(self.head(states), -1)

    class Encoder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(50, 16), nn.Linear(16, 5)
            self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)

        def forward(self, ids):
            return f.softmax(self.head(self.layers(self.table(ids)).mean(1)))

    class Loop(nn.Layer):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(6, 6)

        def forward(self, x):
            i = paddle.zeros([1], "int64")
            while i < 5:
                x = paddle.tanh(self.step(x))
                i = i + 1
            return x, i

    class Branch(nn.Layer):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            if x.sum() > 0:
                y = self.up(x)
            else:
                y = self.down(x) - 1.0
            return y

    class Elements(nn.Layer):
        def forward(self, x):
            return (f.silu(x), f.hardswish(x), f.mish(x), f.leaky_relu(x), f.elu(x), f.gelu(x), f.softplus(x), f.log_softmax(x), paddle.rsqrt(x * x + 1),
                    paddle.pow(x.abs(), 1.5), paddle.clip(x, -0.5, 0.5), paddle.floor(x) // 2, paddle.remainder(x, 2 * paddle.ones_like(x)),
                    paddle.where(x > 0, x, -x), (x > 0) & (x < 1), paddle.isnan(x), x.astype("int32"), 2 * x - 1, paddle.erf(x))

    class Shapes(nn.Layer):
        def forward(self, x):
            a, b = paddle.split(x, 2, axis=1)
            values, places = paddle.topk(x, 3)
            return (paddle.stack([a, b]).flatten(1), values, places, paddle.concat([a, paddle.expand(b[:, :1], [-1, 2])], 1), paddle.tile(x, [2, 3]),
                    paddle.roll(x, 1, 1), paddle.flip(x, [1]), paddle.unbind(x, 1)[0], f.one_hot(places, 10), paddle.argsort(x), paddle.std(x, 1),
                    paddle.prod(x, 1), paddle.logsumexp(x, 1), paddle.tril(x), paddle.cumsum(x, axis=-1), paddle.norm(x, p=2, axis=-1),
                    f.normalize(x, axis=1), paddle.gather(x, paddle.to_tensor([0, 2]), axis=1), paddle.einsum("bi,bi->b", x, x),
                    x.reshape([x.shape[0], 2, -1]), x.unsqueeze(1).transpose([1, 0, 2]), paddle.arange(0, 6, 1, dtype="float32") * x, x.max(-1))

    class Windows(nn.Layer):
        def __init__(self):
            super().__init__()
            self.group, self.instance, self.layer, self.slope = nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.LayerNorm(6), nn.PReLU(4)
            self.up, self.line = nn.Conv2DTranspose(4, 4, 3, stride=2, padding=1, output_padding=1), nn.Conv1D(4, 4, 3, padding=1)

        def forward(self, x):
            return (self.slope(self.instance(self.group(x))), self.layer(x), self.up(x), self.line(x.flatten(2)),
                    f.interpolate(x, scale_factor=0.5, mode="bilinear"), f.interpolate(x, size=[7, 9]), f.interpolate(x, size=[7, 9], mode="bicubic"),
                    f.pad(x, [1, 1, 2, 2], mode="reflect"), f.pixel_shuffle(x, 2), f.unfold(x, 2), f.max_pool2d(x, 2), f.avg_pool2d(x, 3, 2, 1),
                    f.adaptive_max_pool2d(x, 2), f.adaptive_avg_pool2d(x, (2, 3)), f.avg_pool1d(x.flatten(2), 2))

    return {"encoder": Encoder, "loop": Loop, "branch": Branch, "elements": Elements, "shapes": Shapes, "windows": Windows,
            **{name: lambda name=name: Sequence(getattr(nn, name)) for name in SEQUENCES}}


def data(case: str) -> tuple[list[int | None], np.ndarray]:
    """The sizes that the program knows, and an input."""
    rng = np.random.default_rng(3)
    if case in SEQUENCES or case == "encoder":
        return [None, 7], rng.integers(0, 50, [3, 7])
    if case in ("loop", "branch", "elements", "shapes"):
        return [None, 6], rng.normal(size=[2, 6]).astype("float32")
    if case == "windows":
        return [None, 4, 6, 6], rng.normal(size=[2, 4, 6, 6]).astype("float32")
    size = {"LeNet": 28, "inception_v3": 299}.get(case, 224)
    channels = 1 if case == "LeNet" else 3
    return [None, channels, size, size], rng.normal(size=[1, channels, size, size]).astype("float32")


def read(paddle, prefix: str) -> None:
    """The results of a model that Oar wrote: by a layer, which Paddle 3 makes of its own format alone, and by a predictor."""
    with np.load(prefix + ".npz") as stored:
        x = stored["x"]
    found = {}
    legacy = os.path.isfile(prefix + ".pdmodel")
    if not legacy:
        results = paddle.jit.load(prefix)(paddle.to_tensor(x))
        listed = results if isinstance(results, (list, tuple)) else [results]
        found.update({f"r{i}": r.numpy() for i, r in enumerate(listed)})
    again = predicted(paddle, prefix + (".pdmodel" if legacy else ".json"), prefix + ".pdiparams", x)
    found.update({f"p{i}": r for i, r in enumerate(again)})
    np.savez(prefix + "_read.npz", **found)


def predicted(paddle, program: str, weights: str, x) -> list:
    config = paddle.inference.Config(program, weights)
    config.disable_gpu()
    config.disable_onednn()  # it cannot run Paddle's own `interpolate` in PIR, and on some processors it writes outside its memory
    predictor = paddle.inference.create_predictor(config)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def main() -> None:
    import paddle

    paddle.disable_signal_handler()  # it waits for ever after a crash inside malloc
    made = layers(paddle)
    for line in sys.stdin:
        case, prefix = json.loads(line)
        paddle.seed(5)
        if case == "read":
            try:
                read(paddle, prefix)
                print("done", flush=True)
            except Exception as error:  # noqa: BLE001  (the next case has nothing to do with it)
                print("failed:", " ".join(str(error).split()), flush=True)
            continue
        net = made[case]() if case in made else getattr(paddle.vision.models, case)()
        net.eval()
        sizes, x = data(case)
        spec = paddle.static.InputSpec(sizes, str(x.dtype), "x")
        paddle.jit.save(paddle.jit.to_static(net, input_spec=[spec], full_graph=True), prefix)
        results = paddle.jit.load(prefix)(paddle.to_tensor(x))
        listed = results if isinstance(results, (list, tuple)) else [results]
        np.savez(prefix + ".npz", x=x, **{f"r{i}": r.numpy() for i, r in enumerate(listed)})
        print("done", flush=True)


if __name__ == "__main__":
    main()
