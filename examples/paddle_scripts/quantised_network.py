"""Training with quantised weights: a PyLayer that rounds and passes gradients straight through."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.autograd import PyLayer

from common import arguments, report, same_start


class RoundTo(PyLayer):
    """Rounds to multiples of a step; the gradient passes where the input is within the range."""

    @staticmethod
    def forward(ctx, x, step, levels):
        limit = step * levels
        ctx.save_for_backward(x)
        ctx.limit = limit
        return paddle.round(paddle.clip(x, -limit, limit) / step) * step

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return grad * (x.abs() <= ctx.limit).astype(grad.dtype)


class SmoothSign(PyLayer):
    """The sign, with the derivative of a triangle: two outputs, one of which has no gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        sign = paddle.where(x >= 0, paddle.ones_like(x), -paddle.ones_like(x))
        share = (sign > 0).astype(x.dtype).mean()
        ctx.mark_non_differentiable(share)
        return sign, share

    @staticmethod
    def backward(ctx, grad, grad_share):
        (x,) = ctx.saved_tensor()
        return grad * F.relu(1 - x.abs())


class QuantLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, RoundTo.apply(self.weight, 1 / 64, 64), self.bias)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = QuantLinear(6, 48)
        self.norm = nn.BatchNorm1D(48)
        self.fc2 = QuantLinear(48, 3)
        self.share = None

    def forward(self, x):
        hidden, self.share = SmoothSign.apply(self.norm(self.fc1(x)))
        return self.fc2(hidden)


def clusters(rng, dtype, count=64):
    labels = rng.randint(0, 3, count)
    centres = np.random.RandomState(19).randn(3, 6)
    return (centres[labels] + 0.6 * rng.randn(count, 6)).astype(dtype), labels


def main():
    args = arguments(__doc__)
    net = Net()
    same_start(args.weights, net=net)
    optimizer = paddle.optimizer.Adam(1e-3, parameters=net.parameters())
    rng = np.random.RandomState(20)
    losses = []
    for _ in range(args.steps):
        x, label = (paddle.to_tensor(part) for part in clusters(rng, args.dtype))
        loss = F.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    report(losses, share=net.share)


if __name__ == "__main__":
    main()
