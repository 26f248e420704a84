"""A graph network by hand: normalised sums over neighbours, attention over edges, labels of a few nodes."""
import argparse
import math

import numpy as np
import oar
import oar.nn.functional as F
from oar.nn import Dropout, Layer as Module, LayerList as ModuleList, Parameter
from oar.compat.nn import Linear


def community_graph(nodes=40, groups=4, seed=0):
    rng = np.random.RandomState(seed)
    labels = np.arange(nodes) % groups
    same = labels[:, None] == labels[None, :]
    adjacency = rng.rand(nodes, nodes) < np.where(same, 0.35, 0.03)
    adjacency = np.triu(adjacency, 1)
    edges = np.stack(np.nonzero(adjacency | adjacency.T))
    features = rng.randn(nodes, 8) * 0.5 + np.eye(8)[labels]
    return oar.from_numpy(edges), oar.from_numpy(features).float(), oar.from_numpy(labels)


class GraphConvolution(Module):
    """D^-1/2 (A + I) D^-1/2 X W"""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = Parameter(oar.empty(in_features, out_features))
        if bias:
            self.bias = Parameter(oar.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.detach().uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.detach().uniform_(-stdv, stdv)

    def forward(self, x, edge_index):
        source, target = edge_index
        n = x.size(0)
        degree = oar.ones(n).scatter_add_(0, target, oar.ones(target.size(0)))
        scale = degree.pow(-0.5)
        support = oar.mm(x, self.weight) * scale.unsqueeze(-1)
        out = support.clone().index_add_(0, target, support[source])
        out = out * scale[:, None]
        return out if self.bias is None else out + self.bias


class EdgeAttention(Module):
    def __init__(self, width):
        super().__init__()
        self.lin = Linear(width, width, bias=False)
        self.score = Linear(2 * width, 1, bias=False)  # a bias would cancel out

    def forward(self, x, edge_index):
        h = self.lin(x)
        pair = oar.concat([h[edge_index[0]], h[edge_index[1]]], -1)
        weight = F.leaky_relu(self.score(pair), negative_slope=0.2).squeeze(-1).exp()
        total = oar.zeros(x.size(0)).index_add(0, edge_index[1], weight)
        alpha = weight / (total[edge_index[1]] + 1e-9)
        return oar.zeros_like(h).index_add(0, edge_index[1], alpha.unsqueeze(1) * h[edge_index[0]])


class Net(Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.convs = ModuleList([GraphConvolution(inputs, hidden), GraphConvolution(hidden, hidden)])
        self.attention = EdgeAttention(hidden)
        self.out = Linear(hidden, classes)
        self.dropout = Dropout(0.1)

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = F.elu(conv(x, edge_index))
        x = self.dropout(x + self.attention(x, edge_index))
        return F.log_softmax(self.out(x), dim=-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()
    oar.seed(11)
    edge_index, x, y = community_graph()
    train_mask = oar.zeros(y.shape[0], dtype=oar.bool)
    train_mask[:20] = True
    model = Net(x.shape[1], 16, int(y.max()) + 1)
    if args.init:
        model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model))
    if args.save_init:
        oar.save(model.state_dict(), args.save_init)
    optimizer = oar.optimizer.Adam(parameters=model.parameters(), learning_rate=0.01, weight_decay=5e-4)
    for epoch in range(args.steps):
        model.train()
        optimizer.clear_grad()
        out = model(x, edge_index)
        loss = F.nll_loss(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        model.eval()
        with oar.no_grad():
            pred = oar.compat.max(model(x, edge_index), 1)[1]
            right = int((pred[~train_mask] == y[~train_mask]).sum())
        print(f"Epoch {epoch:03d} loss: {loss.item():.8f} right: {right} of {int((~train_mask).sum())}")
