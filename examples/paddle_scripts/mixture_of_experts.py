"""A mixture of experts: the best two per token, gather and scatter of rows, a loss that balances their use."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

WIDTH, EXPERTS, CHOSEN, TOKENS = 16, 4, 2, 64


class Experts(nn.Layer):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias_attr=False)
        self.first = self.create_parameter([EXPERTS, WIDTH, 2 * WIDTH])
        self.second = self.create_parameter([EXPERTS, 2 * WIDTH, WIDTH])

    def forward(self, x):
        shares = F.softmax(self.gate(x), axis=-1)
        weights, chosen = paddle.topk(shares, CHOSEN, axis=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = paddle.zeros_like(x)
        for expert in range(EXPERTS):
            rows, slots = paddle.nonzero(chosen == expert, as_tuple=True)
            rows, slots = rows.flatten(), slots.flatten()
            if rows.shape[0] == 0:
                continue
            hidden = F.gelu(paddle.matmul(paddle.gather(x, rows), self.first[expert]))
            answer = paddle.matmul(hidden, self.second[expert])
            weight = paddle.gather_nd(weights, paddle.stack([rows, slots], axis=1)).unsqueeze(-1)
            out = paddle.scatter_nd_add(out, rows.unsqueeze(-1), answer * weight)
        used = F.one_hot(chosen, EXPERTS).sum(axis=1).astype(x.dtype).mean(axis=0)
        balance = EXPERTS * (used * shares.mean(axis=0)).sum() / CHOSEN
        return out, balance


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.enter, self.experts, self.leave = nn.Linear(4, WIDTH), Experts(), nn.Linear(WIDTH, 1)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        hidden = self.enter(x)
        mixed, balance = self.experts(self.norm(hidden))
        return self.leave(hidden + mixed).squeeze(-1), balance


def pieces(rng, dtype):
    """A function that is a different one in every quadrant of its first two inputs."""
    x = rng.randn(TOKENS, 4)
    region = (x[:, 0] > 0) + 2 * (x[:, 1] > 0)
    y = np.choose(region, [np.sin(3 * x[:, 2]), x[:, 2] * x[:, 3], np.abs(x[:, 3]), -x[:, 2]])
    return paddle.to_tensor(x.astype(dtype)), paddle.to_tensor(y.astype(dtype))


def main():
    args = arguments(__doc__)
    net = Net()
    same_start(args.weights, net=net)
    schedule = paddle.optimizer.lr.InverseTimeDecay(learning_rate=5e-3, gamma=0.01)
    optimizer = paddle.optimizer.Adam(schedule, parameters=net.parameters())
    rng = np.random.RandomState(28)
    losses = []
    for _ in range(args.steps):
        x, y = pieces(rng, args.dtype)
        found, balance = net(x)
        loss = F.mse_loss(found, y) + 0.01 * balance
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(loss.item())
    report(losses, balance=balance)


if __name__ == "__main__":
    main()
