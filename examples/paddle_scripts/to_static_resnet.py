"""A residual network under to_static with InputSpec: branches on values, and training that resumes from files."""

import os
import tempfile

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.static import InputSpec

from common import arguments, report, same_start


class ConvNorm(nn.Layer):
    def __init__(self, inputs, outputs, size, stride=1):
        super().__init__()
        self.conv = nn.Conv2D(inputs, outputs, size, stride, padding=size // 2, bias_attr=False,
                              weight_attr=paddle.ParamAttr(initializer=nn.initializer.KaimingNormal()))
        self.norm = nn.BatchNorm2D(outputs, momentum=0.9)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Layer):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.conv2 = ConvNorm(inputs, outputs, 3, stride), ConvNorm(outputs, outputs, 3)
        self.shortcut = ConvNorm(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        return F.relu(kept + self.conv2(F.relu(self.conv1(x))))


class ResNet(nn.Layer):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = ConvNorm(3, 8, 3)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 2))
        self.head = nn.Linear(16, classes)

    def forward(self, x, scale):
        x = self.blocks(F.relu(self.stem(x)))
        logits = self.head(x.mean(axis=[2, 3]))
        if scale > 1:
            logits = logits / scale
        return logits


def stripes(rng, dtype, count=8):
    """Stripes in one of four directions."""
    labels = rng.randint(0, 4, count)
    y, x = np.mgrid[0:16, 0:16] / 16
    angle = (labels * np.pi / 4)[:, None, None]
    wave = np.sin(12 * (x * np.cos(angle) + y * np.sin(angle)) + rng.uniform(0, 6, (count, 1, 1)))
    return (wave[:, None] + 0.3 * rng.randn(count, 3, 16, 16)).astype(dtype), labels


def build(dtype):
    model = ResNet()
    schedule = paddle.optimizer.lr.PiecewiseDecay([15, 50], [0.02, 0.01, 0.005])
    optimizer = paddle.optimizer.Momentum(schedule, parameters=model.parameters(), weight_decay=5e-4)
    spec = [InputSpec([None, 3, 16, 16], dtype, "image"), InputSpec([1], dtype, "scale")]
    return model, paddle.jit.to_static(model, input_spec=spec), schedule, optimizer


def train(steps, static, schedule, optimizer, rng, dtype):
    losses = []
    static.train()
    scale = paddle.full([1], 2.0, dtype)
    for _ in range(steps):
        image, label = stripes(rng, dtype)
        loss = F.cross_entropy(static(paddle.to_tensor(image), scale), paddle.to_tensor(label))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(float(loss))
    return losses


def main():
    args = arguments(__doc__)
    rng = np.random.RandomState(18)
    model, static, schedule, optimizer = build(args.dtype)
    same_start(args.weights, model=model)
    losses = train(args.steps // 2, static, schedule, optimizer, rng, args.dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resnet")
        paddle.save(model.state_dict(), path + ".pdparams")
        paddle.save(optimizer.state_dict(), path + ".pdopt")
        paddle.utils.unique_name.switch()
        model, static, schedule, optimizer = build(args.dtype)
        model.set_state_dict(paddle.load(path + ".pdparams"))
        optimizer.set_state_dict(paddle.load(path + ".pdopt"))
    losses += train(args.steps - args.steps // 2, static, schedule, optimizer, rng, args.dtype)
    report(losses, rate=schedule.last_lr)


if __name__ == "__main__":
    main()
