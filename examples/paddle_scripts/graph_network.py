"""Node classification with paddle.geometric: a graph convolution, then attention over neighbours."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import geometric, nn

from common import arguments, report, same_start

NODES, CLASSES, FEATURES = 120, 3, 12


class GraphConv(nn.Layer):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias_attr=False)
        self.bias = self.create_parameter([outputs], is_bias=True)

    def forward(self, x, source, target):
        degree = geometric.segment_sum(paddle.ones([len(target), 1], dtype=x.dtype), target)
        norm = degree.clip(min=1.0).pow(-0.5)
        mixed = geometric.send_u_recv(self.linear(x) * norm, source, target, reduce_op="sum", out_size=x.shape[0])
        return mixed * norm + self.bias


class GraphAttention(nn.Layer):
    def __init__(self, inputs, outputs, heads=2):
        super().__init__()
        self.heads, self.width = heads, outputs
        self.linear = nn.Linear(inputs, heads * outputs)
        self.of_source = self.create_parameter([heads, outputs])
        self.of_target = self.create_parameter([heads, outputs])

    def forward(self, x, source, target):
        h = self.linear(x).reshape([-1, self.heads, self.width])
        alpha_source, alpha_target = (h * self.of_source).sum(-1), (h * self.of_target).sum(-1)
        scores = F.leaky_relu(geometric.send_uv(alpha_source, alpha_target, source, target, message_op="add"), 0.25)
        highest = geometric.segment_max(scores, target)
        weights = paddle.exp(scores - paddle.gather(highest, target))
        weights = weights / paddle.gather(geometric.segment_sum(weights, target), target)
        return geometric.send_ue_recv(h, weights.unsqueeze(-1), source, target, "mul", "sum").mean(axis=1)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = GraphConv(FEATURES, 24)
        self.attention = GraphAttention(24, CLASSES)

    def forward(self, x, source, target):
        return self.attention(F.elu(self.conv(x, source, target)), source, target)


def communities(dtype):
    """A random graph whose edges mostly stay within a class; edges are sorted by their targets."""
    rng = np.random.RandomState(13)
    labels = np.arange(NODES) % CLASSES
    near = rng.rand(NODES, NODES) < np.where(labels[:, None] == labels, 0.1, 0.01)
    near |= np.eye(NODES, dtype=bool)
    target, source = np.nonzero(near | near.T)
    features = rng.randn(NODES, FEATURES) + 0.4 * np.eye(CLASSES, FEATURES)[labels]
    known = np.sort(rng.permutation(NODES)[:60])
    return [paddle.to_tensor(a) for a in (features.astype(dtype), source, target, labels, known)]


def main():
    args = arguments(__doc__)
    net = Net()
    same_start(args.weights, net=net)
    x, source, target, labels, known = communities(args.dtype)
    optimizer = paddle.optimizer.Adagrad(0.05, parameters=net.parameters(), initial_accumulator_value=0.1,
                                         weight_decay=paddle.regularizer.L1Decay(1e-4))
    losses = []
    for _ in range(args.steps):
        logits = net(x, source, target)
        loss = F.cross_entropy(paddle.index_select(logits, known), labels[known])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    with paddle.no_grad():
        right = (net(x, source, target).argmax(-1) == labels).astype("float32").mean()
    report(losses, accuracy=right)


if __name__ == "__main__":
    main()
