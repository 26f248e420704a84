"""A physics-informed network for u'' = -u with u(0) = 0 and u'(0) = 1, and for the heat equation."""
import argparse

import torch
import torch.nn as nn
from torch.autograd import grad


class Net(nn.Module):
    def __init__(self, inputs, width=24):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 1)])
        self.frequency = nn.Parameter(torch.tensor(1.0))

        def xavier(m):
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight, gain=nn.init.calculate_gain("tanh"))
                m.bias.data.fill_(0.01)

        self.apply(xavier)

    def forward(self, *coordinates):
        x = torch.cat(coordinates, dim=1)
        for layer in self.layers[:-1]:
            x = torch.tanh(self.frequency * layer(x))
        return self.layers[-1](x)


def derivative(y, x, order=1):
    for _ in range(order):
        y = grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]
    return y


def oscillator_loss(net, n):
    t = torch.linspace(0, 3, n).view(-1, 1).requires_grad_(True)
    u = net(t)
    residual = derivative(u, t, 2) + u
    start = torch.zeros(1, 1, requires_grad=True)
    u0 = net(start)
    du0 = torch.autograd.grad(u0.sum(), start, create_graph=True)[0]
    return residual.pow(2).mean() + 10 * u0.pow(2).sum() + (du0 - 1).square().sum()


def heat_loss(net, n):
    points = torch.linspace(0.0, 1.0, n)
    x, t = torch.meshgrid(points, points, indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    x.requires_grad = True
    t.requires_grad = True
    u = net(x, t)
    u_t, u_x = torch.autograd.grad(u, (t, x), torch.ones_like(u), create_graph=True)
    u_xx = derivative(u_x, x)
    inside = torch.mean((u_t - 0.1 * u_xx) ** 2)
    start = (net(x, torch.zeros_like(t)) - torch.sin(torch.pi * x)).pow(2).mean()
    return inside + start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()
    torch.manual_seed(1234)
    nets = nn.ModuleDict({"oscillator": Net(1), "heat": Net(2)})
    if args.init:
        nets.load_state_dict(torch.load(args.init))
    if args.save_init:
        torch.save(nets.state_dict(), args.save_init)
    optimizer = torch.optim.Adam(nets.parameters(), lr=1e-3)
    for i in range(args.steps):
        optimizer.zero_grad()
        loss = oscillator_loss(nets["oscillator"], 32) + heat_loss(nets["heat"], 8)
        loss.backward()
        optimizer.step()
        print(f"iteration {i}: loss = {loss.item():.8f}")
    t = torch.tensor([[1.0]])
    with torch.no_grad():
        print("u(1) =", nets["oscillator"](t).item(), "sin(1) =", torch.sin(t).item())


if __name__ == "__main__":
    main()
