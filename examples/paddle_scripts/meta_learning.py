"""Meta-learning (MAML): gradients through inner steps of training, with weights passed to a functional network."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

INNER_RATE, INNER_STEPS, TASKS = 0.05, 2, 4


def forward(weights, x):
    w1, b1, w2, b2, w3, b3 = weights
    x = paddle.tanh(F.linear(x, w1, b1))
    x = paddle.tanh(F.linear(x, w2, b2))
    return F.linear(x, w3, b3)


class Weights(nn.Layer):
    def __init__(self, width=24):
        super().__init__()
        shapes = [[1, width], [width], [width, width], [width], [width, 1], [1]]
        for number, shape in enumerate(shapes):
            self.add_parameter(f"p{number}", self.create_parameter(shape, is_bias=len(shape) == 1))


def adapted(weights, x, y):
    """The weights after some steps on one task; they depend on those given, so gradients flow back."""
    for _ in range(INNER_STEPS):
        loss = F.mse_loss(forward(weights, x), y)
        gradients = paddle.grad(loss, weights, create_graph=True)
        weights = [w - INNER_RATE * g for w, g in zip(weights, gradients)]
    return weights


def sine_task(rng, dtype):
    size, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
    def points():
        x = rng.uniform(-3, 3, (10, 1))
        return paddle.to_tensor(x.astype(dtype)), paddle.to_tensor((size * np.sin(x + phase)).astype(dtype))
    return points(), points()


def main():
    args = arguments(__doc__)
    layer = Weights()
    same_start(args.weights, layer=layer)
    schedule = paddle.optimizer.lr.CosineAnnealingWarmRestarts(5e-3, T_0=20, T_mult=2, eta_min=1e-4)
    optimizer = paddle.optimizer.Adam(schedule, parameters=layer.parameters())
    rng = np.random.RandomState(31)
    losses = []
    for _ in range(args.steps):
        total = 0.0
        for _ in range(TASKS):
            (x, y), (x_test, y_test) = sine_task(rng, args.dtype)
            total = total + F.mse_loss(forward(adapted(layer.parameters(), x, y), x_test), y_test)
        loss = total / TASKS
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(loss.item())
    report(losses, rate=optimizer.get_lr())


if __name__ == "__main__":
    main()
