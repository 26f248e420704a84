"""Exports one model with random weights by torch.export: runs in PyTorch's environment. `torch_programs.py NAME FOLDER` writes program.pt2,
decomposed.pt2 and open.pt2 (of any batch) where that is possible, and results.npz with inputs and outputs for batches of two and three."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_trained import TRAINED, trained


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(12, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(20, 5)

    def forward(self, x):
        y, states = self.layers(x)
        return self.head(y), states


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x, mask):
        return self.layers(x, src_key_padding_mask=mask)


class Bert(nn.Module):
    def __init__(self, width=48, heads=4):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(100, width), nn.Embedding(64, width), nn.Embedding(2, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.register_buffer("positions", torch.arange(64)[None], persistent=False)
        self.attention, self.out, self.pool = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.heads = heads

    def forward(self, ids, kinds, mask):
        batch, length = ids.shape
        x = self.norms[0](self.words(ids) + self.places(self.positions[:, :length]) + self.kinds(kinds))
        unseen = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(torch.float32).min
        q, k, v = self.attention(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-1, -2) / q.size(-1) ** 0.5 + unseen).softmax(-1)
        x = self.norms[1](x + self.out((weights @ v).transpose(1, 2).contiguous().view(batch, length, -1)))
        x = self.norms[2](x + self.feed(x))
        return {"last_hidden_state": x, "pooled": torch.tanh(self.pool(x[:, 0]))}


class Losses(nn.Module):
    def forward(self, x, y, t):
        return [
            F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, reduction="sum"), F.cross_entropy(x, F.softmax(y, 1)),
            F.nll_loss(F.log_softmax(x, 1), t, ignore_index=1), F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"),
            F.smooth_l1_loss(x, y, beta=0.5), F.huber_loss(x, y, delta=0.7), F.binary_cross_entropy_with_logits(x, y.sigmoid()),
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"),
            F.cosine_similarity(x, y), F.soft_margin_loss(x, y.sign()), F.triplet_margin_loss(x, y, x * 2), F.poisson_nll_loss(x, y.abs()),
            F.margin_ranking_loss(x, y, torch.ones_like(x)), F.hinge_embedding_loss(x, y.sign()),
        ]


class Writes(nn.Module):
    def forward(self, x):
        z = torch.zeros(x.shape[0], 8)
        z[:, 2:6] = x
        z[0, 1:3] += x.sum()
        u = x.clone()
        u.mul_(2).add_(x[0], alpha=0.5)
        u.view(-1)[0] = 7
        w = torch.where(x > 0, x, -1.0)
        return z, u, {"where": w, "top": torch.topk(x, 2), "sorted": torch.sort(x, descending=True), "parts": torch.split(x, [1, 3], 1)}


def vision(name):
    from torchvision import models

    size = {"inception_v3": 128, "alexnet": 224}.get(name, 64)
    more = {"image_size": 64} if name.startswith("vit") else {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if hasattr(models.segmentation, name):
        net = getattr(models.segmentation, name)(weights=None, weights_backbone=None)
    else:
        net = getattr(models, name)(weights=None, **more)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return net, lambda batch: [torch.randn(batch, 3, size, size)]


OWN = {
    "lstm": lambda: (Recurrent(nn.LSTM), lambda n: [torch.randn(n, 7, 12)]),
    "gru": lambda: (Recurrent(nn.GRU), lambda n: [torch.randn(n, 7, 12)]),
    "encoder": lambda: (Encoder(), lambda n: [torch.randn(n, 6, 32), torch.arange(6)[None].expand(n, 6) > 3]),
    "bert": lambda: (Bert(), lambda n: [torch.randint(0, 100, (n, 9)), torch.randint(0, 2, (n, 9)), (torch.arange(9)[None].expand(n, 9) < 7).long()]),
    "losses": lambda: (Losses(), lambda n: [torch.randn(n, 5), torch.randn(n, 5), torch.randint(2, 5, (n,))]),
    "writes": lambda: (Writes(), lambda n: [torch.randn(n, 4)]),
}


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value.detach().numpy()]
    return [array for item in (value.values() if isinstance(value, dict) else value) for array in flat(item)]


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, inputs_of = OWN[name]() if name in OWN else trained(name) if name in TRAINED else vision(name)
    for weight in net.parameters():
        if not weight.any():  # heads that begin with zeros would hide every difference
            nn.init.normal_(weight, std=0.1)
    net.eval()
    results = {}
    for batch in (2, 3):
        inputs = inputs_of(batch)
        outputs = flat(net(*(x.clone() for x in inputs)))
        results |= {f"x{batch}_{i}": x.numpy() for i, x in enumerate(inputs)} | {f"y{batch}_{i}": y for i, y in enumerate(outputs)}
    np.savez(folder / "results.npz", **results)
    inputs = tuple(inputs_of(2))
    program = torch.export.export(net, inputs)
    torch.export.save(program, folder / "program.pt2")
    torch.export.save(program.run_decompositions(), folder / "decomposed.pt2")
    try:
        batch = torch.export.Dim("batch", min=2)
        torch.export.save(torch.export.export(net, inputs, dynamic_shapes=tuple({0: batch} for _ in inputs)), folder / "open.pt2")
    except Exception as error:  # noqa: BLE001
        print("no open batch:", str(error)[:200])


main()
