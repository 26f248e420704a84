"""A physics-informed network for u'' = -u with u(0) = 0 and u'(0) = 1, and for the heat equation."""
import argparse

import oar
import oar.nn as nn
from oar import grad


class Net(nn.Layer):
    def __init__(self, inputs, width=24):
        super().__init__()
        self.layers = nn.LayerList([oar.compat.nn.Linear(inputs, width), oar.compat.nn.Linear(width, width), oar.compat.nn.Linear(width, 1)])
        self.frequency = nn.Parameter(oar.to_tensor(1.0))

        def xavier(m):
            if isinstance(m, oar.compat.nn.Linear):
                nn.init.xavier_uniform_(m.weight, gain=nn.init.calculate_gain("tanh"))
                m.bias.detach().fill_(0.01)

        self.apply(xavier)

    def forward(self, *coordinates):
        x = oar.concat(coordinates, dim=1)
        for layer in self.layers[:-1]:
            x = oar.tanh(self.frequency * layer(x))
        return self.layers[-1](x)


def derivative(y, x, order=1):
    for _ in range(order):
        y = grad(y, x, grad_outputs=oar.ones_like(y), create_graph=True, retain_graph=True)[0]
    return y


def oscillator_loss(net, n):
    t = oar.linspace(0, 3, n).view(-1, 1).requires_grad_(True)
    u = net(t)
    residual = derivative(u, t, 2) + u
    start = oar.zeros(1, 1, requires_grad=True)
    u0 = net(start)
    du0 = grad(u0.sum(), start, create_graph=True)[0]
    return residual.pow(2).mean() + 10 * u0.pow(2).sum() + (du0 - 1).square().sum()


def heat_loss(net, n):
    points = oar.linspace(0.0, 1.0, n)
    x, t = oar.meshgrid(points, points, indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    x.requires_grad = True
    t.requires_grad = True
    u = net(x, t)
    u_t, u_x = grad(u, (t, x), oar.ones_like(u), create_graph=True)
    u_xx = derivative(u_x, x)
    inside = oar.mean((u_t - 0.1 * u_xx) ** 2)
    start = (net(x, oar.zeros_like(t)) - oar.sin(oar.pi * x)).pow(2).mean()
    return inside + start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()
    oar.seed(1234)
    nets = nn.LayerDict({"oscillator": Net(1), "heat": Net(2)})
    if args.init:
        nets.load_state_dict(oar.interop.torch_state(oar.load(args.init), nets))
    if args.save_init:
        oar.save(nets.state_dict(), args.save_init)
    optimizer = oar.optimizer.Adam(parameters=nets.parameters(), learning_rate=1e-3)
    for i in range(args.steps):
        optimizer.clear_grad()
        loss = oscillator_loss(nets["oscillator"], 32) + heat_loss(nets["heat"], 8)
        loss.backward()
        optimizer.step()
        print(f"iteration {i}: loss = {loss.item():.8f}")
    t = oar.to_tensor([[1.0]])
    with oar.no_grad():
        print("u(1) =", nets["oscillator"](t).item(), "sin(1) =", oar.sin(t).item())


if __name__ == "__main__":
    main()
