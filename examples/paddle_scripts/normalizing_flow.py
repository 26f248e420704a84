"""A normalising flow (RealNVP) on two moons: coupling layers, log-determinants and transformed distributions."""

import numpy as np
import paddle
from paddle import nn
from paddle.distribution import AffineTransform, Independent, Normal, TransformedDistribution

from common import arguments, report, same_start


class Coupling(nn.Layer):
    """Half of the numbers decide how the other half is scaled and moved."""

    def __init__(self, flip, width=24):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        fixed, moved = paddle.split(x, 2, axis=1)
        if self.flip:
            fixed, moved = moved, fixed
        scale, shift = paddle.chunk(self.net(fixed), chunks=2, axis=1)
        scale = paddle.tanh(scale)
        moved = moved * scale.exp() + shift
        halves = [moved, fixed] if self.flip else [fixed, moved]
        return paddle.concat(halves, axis=1), scale.sum(axis=1)


class Flow(nn.Layer):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = nn.LayerList([Coupling(flip=bool(n % 2)) for n in range(depth)])
        self.place = self.create_parameter([2], default_initializer=nn.initializer.Constant(0.1))
        self.size = self.create_parameter([2], default_initializer=nn.initializer.Constant(0.5))

    def base(self):
        unit = Normal(paddle.zeros_like(self.place), paddle.ones_like(self.place))
        return Independent(TransformedDistribution(unit, [AffineTransform(self.place, self.size.exp())]), 1)

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, logarithm = layer(x)
            total = total + logarithm
        return self.base().log_prob(x) + total


def moons(rng, dtype, count=64):
    angle, side = rng.uniform(0, np.pi, count), rng.randint(0, 2, count)
    x = np.where(side, 1 - np.cos(angle), np.cos(angle)) - 0.5
    y = np.where(side, 0.5 - np.sin(angle), np.sin(angle)) - 0.25
    return (np.stack([x, y], 1) + 0.05 * rng.randn(count, 2)).astype(dtype)


def main():
    args = arguments(__doc__)
    flow = Flow()
    same_start(args.weights, flow=flow)
    optimizer = paddle.optimizer.Rprop(learning_rate=1e-3, learning_rate_range=(1e-5, 1e-2), parameters=flow.parameters())
    rng = np.random.RandomState(30)
    points = paddle.to_tensor(moons(rng, args.dtype, 128))
    losses = []
    for _ in range(args.steps):
        loss = -flow.log_prob(points).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    held_out = flow.log_prob(paddle.to_tensor(moons(rng, args.dtype, 32)))
    report(losses, held_out=held_out.mean())


if __name__ == "__main__":
    main()
