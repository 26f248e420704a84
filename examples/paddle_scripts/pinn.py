"""A physics-informed network for the heat equation: derivatives of the output by its inputs inside the loss."""

import numpy as np
import paddle
from paddle import nn

from common import arguments, report, same_start

DIFFUSIVITY = 0.1


class Network(nn.Layer):
    """Fully connected, with a learned slope in every tanh."""

    def __init__(self, sizes=(2, 24, 24, 24, 1)):
        super().__init__()
        init = nn.initializer.XavierNormal()
        self.layers = nn.LayerList([
            nn.Linear(a, b, weight_attr=paddle.ParamAttr(initializer=init), bias_attr=nn.initializer.Constant(0.0))
            for a, b in zip(sizes, sizes[1:])])
        self.slopes = nn.ParameterList([
            self.create_parameter([1], default_initializer=nn.initializer.Constant(1.0)) for _ in sizes[1:-1]])

    def forward(self, x, t):
        h = paddle.concat([x, t], axis=1)
        for layer, slope in zip(list(self.layers)[:-1], self.slopes):
            h = paddle.tanh(slope * layer(h))
        return self.layers[-1](h)


def residual(net, x, t):
    x.stop_gradient = t.stop_gradient = False
    u = net(x, t)
    u_x, u_t = paddle.grad(u, [x, t], create_graph=True)
    (u_xx,) = paddle.grad(u_x, [x], create_graph=True)
    return u_t - DIFFUSIVITY * u_xx


def exact(x, t):
    return np.exp(-DIFFUSIVITY * np.pi**2 * t) * np.sin(np.pi * x)


def main():
    args = arguments(__doc__)
    net = Network()
    same_start(args.weights, net=net)
    schedule = paddle.optimizer.lr.StepDecay(learning_rate=4e-3, step_size=50, gamma=0.5)
    optimizer = paddle.optimizer.Adam(schedule, parameters=net.parameters())
    rng = np.random.RandomState(9)

    def tensor(array):
        return paddle.to_tensor(np.asarray(array, dtype=args.dtype).reshape(-1, 1))

    x0 = np.linspace(-1, 1, 32)
    edge, times = np.repeat([-1.0, 1.0], 16), np.tile(np.linspace(0, 1, 16), 2)
    losses = []
    for _ in range(args.steps):
        inside = residual(net, tensor(rng.uniform(-1, 1, 128)), tensor(rng.uniform(0, 1, 128)))
        start = net(tensor(x0), tensor(np.zeros(32))) - tensor(exact(x0, 0))
        sides = net(tensor(edge), tensor(times))
        loss = (inside**2).mean() + 10 * (start**2).mean() + (sides**2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(loss.item())

    x, t = (grid.reshape(-1) for grid in np.meshgrid(np.linspace(-1, 1, 21), np.linspace(0, 1, 11)))
    with paddle.no_grad():
        error = net(tensor(x), tensor(t)).numpy().reshape(-1) - exact(x, t)
    report(losses, error=np.abs(error).max())


if __name__ == "__main__":
    main()
