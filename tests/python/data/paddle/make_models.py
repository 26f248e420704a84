"""Write the models of this folder: `python make_models.py pir` with PaddlePaddle 3.3, `python make_models.py legacy` with 2.6."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import paddle
from paddle import nn
from paddle.static import InputSpec

HERE = pathlib.Path(__file__).parent


class Network(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(2, 4, 3, stride=2, padding=1), nn.BatchNorm2D(4)
        self.rnn, self.head = nn.GRU(4, 3), nn.Linear(3, 5)

    def forward(self, x):
        x = nn.functional.hardswish(self.norm(self.conv(x)))
        x = nn.functional.interpolate(x, scale_factor=2)
        steps = x.flatten(2).transpose([0, 2, 1])
        return nn.functional.softmax(self.head(self.rnn(steps)[0][:, -1]))


class Loop(nn.Layer):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x):
        i = paddle.zeros([1], "int64")
        while i < 4:
            x = paddle.tanh(self.step(x))
            i = i + 1
        return x, i


class Branch(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0:
            y = self.up(x)
        else:
            y = self.down(x) - 1.0
        return y


CASES = {"network": (Network, [None, 2, None, 6], [2, 2, 4, 6]), "loop": (Loop, [None, 3], [2, 3]), "branch": (Branch, [None, 3], [2, 3])}


def strip(path: pathlib.Path) -> None:
    """Leaves out where in the sources the ops come from: paths of one machine."""
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    program.ParseFromString(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    path.write_bytes(program.SerializeToString())


def main(kind: str) -> None:
    paddle.seed(7)
    for name, (make, spec, shape) in CASES.items():
        net = make()
        net.eval()
        path = HERE / f"{name}_{kind}"
        paddle.jit.save(paddle.jit.to_static(net, input_spec=[InputSpec(spec, "float32", "x")], full_graph=True), str(path))
        path.with_suffix(".pdiparams.info").unlink(missing_ok=True)
        if kind == "legacy":
            strip(path.with_suffix(".pdmodel"))
        loaded = paddle.jit.load(str(path))
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        for sign in (1, -1):
            results = loaded(paddle.to_tensor(sign * x))
            listed = results if isinstance(results, (list, tuple)) else [results]
            stored = {f"r{i}": r.numpy() for i, r in enumerate(listed)}
            np.savez(HERE / f"{name}_{kind}{'+' if sign > 0 else '-'}.npz", x=sign * x, **stored)


if __name__ == "__main__":
    main(sys.argv[1])
