"""Makes one TorchScript archive with random weights: runs in PyTorch's environment. `torch_scripts.py NAME FOLDER` writes scripted.pt and traced.pt
where that is possible, and results.pkl: for each archive a list of calls, with their arguments and what PyTorch returned."""

import pickle
import sys
import warnings
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_trained import TRAINED, trained

warnings.filterwarnings("ignore")


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


class Parts(NamedTuple):
    first: torch.Tensor
    second: int


class Flow(nn.Module):
    """Control flow that arguments and attributes decide, and containers of every kind."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.named = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})
        self.register_buffer("shift", torch.randn(3))
        self.times, self.names, self.places = 2, ["a", "b"], {"x": 1}
        self.pair: Tuple[int, float] = (3, 0.5)

    def helper(self, x, parts: Parts):
        return x + parts.first * parts.second

    def forward(self, x, n: int, scale: float = 2.0, flag: bool = True, mask: Optional[torch.Tensor] = None,
                extra: Optional[List[torch.Tensor]] = None, table: Optional[Dict[str, torch.Tensor]] = None, ends: Tuple[int, int] = (1, 3)):
        y = self.fc(x)
        for layer in self.layers:
            y = torch.relu(layer(y))
        for key, layer in self.named.items():
            y = layer(y) if key == "a" else layer(y) + 1
        for i in range(n):
            if i % 2 == 0:
                y = y + i
            elif i == 3:
                continue
            else:
                y = y * scale
        if mask is not None:
            y = y.masked_fill(mask, float("-inf")).softmax(-1)
        assert y.size(0) > 0, "empty"
        count = n
        while count > 0 and flag:
            count -= 1
            if count == 3:
                break
        parts = torch.jit.annotate(List[torch.Tensor], [])
        if extra is not None:
            for one in extra:
                parts.append(one * 2)
            parts += [y[0], y[-1, 1:]]
        found: Dict[str, torch.Tensor] = {"y": y, "shift": self.shift}
        if table is not None:
            for key, value in table.items():
                found[key + "_"] = value + self.places["x"]
        first, last = ends
        sizes = [s * 2 for s in y.shape]
        words = f"{n} of {count}".split(" ")
        total = 0
        for word in words:
            total += len(word)
        z = self.helper(y, Parts(x[:, :3], len(self.names)))
        k, half = self.pair
        return found, parts, (z[..., first:last], y[None, :, ::2]), sizes[0] + total, count, half * k, n > 2, y.view(sizes[0] // 2, -1).t()


class Decides(nn.Module):
    """Tensors decide which way it goes, and how large results are."""

    def forward(self, x):
        steps = 0
        while bool(x.abs().max() > 0.5):
            x = x * 0.7
            steps += 1
        if x.sum() > 0:
            y = x[x > 0]
        else:
            y = x[x < 0]
        return x, y, torch.nonzero(x > 0.1), steps


class Keeps(nn.Module):
    """A run leaves something for the next."""

    state: Optional[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.state = None
        self.runs = 0
        self.seen: List[int] = [0]

    def forward(self, x):
        state = self.state
        y = x if state is None else x + state * 0.5
        self.state = y
        self.runs += 1
        self.seen.append(x.size(0))
        return y, self.runs, len(self.seen)


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        z = torch.zeros(x.shape[0], 8)
        z[:, 2:6] = x
        z[0, 1:3] += x.sum()
        u = x.clone()
        u.mul_(2).add_(x[0], alpha=0.5)
        u.view(-1)[0] = 7
        w = torch.where(x > 0, x, torch.tensor(-1.0))
        return z, u, w, torch.topk(x, 2), torch.sort(x, descending=True), torch.split(x, [1, 3], 1)


class Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total += x.sum(0)
        return self.total * 2


class Losses(nn.Module):
    def forward(self, x, y, t):
        return [
            F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, reduction="sum"),
            F.nll_loss(F.log_softmax(x, 1), t, ignore_index=1), F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"),
            F.smooth_l1_loss(x, y, beta=0.5), F.huber_loss(x, y, delta=0.7), F.binary_cross_entropy_with_logits(x, y.sigmoid()),
            F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"), F.cosine_similarity(x, y),
        ]


class Resizes(nn.Module):
    def forward(self, x):
        a = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        b = F.interpolate(x, size=(7, 5), mode="nearest")
        c = F.pad(x, [1, 2, 0, 1], mode="reflect")
        d = F.adaptive_avg_pool2d(x, (3, None)) if False else F.adaptive_avg_pool2d(x, 3)
        return a, b, c, d, F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.unfold(x, 2), F.grid_sample(x, torch.zeros(x.size(0), 2, 2, 2))


def vision(name):
    from torchvision import models

    size = {"inception_v3": 128, "alexnet": 224}.get(name, 64)
    more = {"image_size": 64} if name.startswith("vit") else {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if hasattr(models.segmentation, name):
        net = getattr(models.segmentation, name)(weights=None, weights_backbone=None)
    elif hasattr(models.detection, name):
        net = getattr(models.detection, name)(weights=None, weights_backbone=None)
    else:
        net = getattr(models, name)(weights=None, **more)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return net, lambda batch: [torch.randn(batch, 3, size, size)]


def flow_calls():
    x, m = torch.randn(3, 4), torch.eye(3) > 0
    return [([x, 2], {}), ([x, 5, 0.5, False], {}), ([x, 1], {"mask": m}), ([x, 6], {"extra": [x, x * 2], "table": {"u": x, "v": m.float()}, "ends": (0, 2)}),
            ([torch.randn(2, 4), 4], {"flag": True})]


def speech_calls():
    """Four pieces of a sound, one after the other, at both rates."""
    time = torch.arange(2048) / 16000
    sound = (0.3 * torch.sin(2 * 3.14159 * 220 * time) + 0.05 * torch.randn(2048)).reshape(4, 1, 512)
    return [([piece, 16000], {}) for piece in sound] + [([piece[:, :256], 8000], {}) for piece in sound]


def packaged(path):
    """An archive of a package. deepbet's networks are compared in float64: rounding grows in them to 4e-4, whoever computes them."""
    module = torch.jit.load(path, map_location="cpu").eval()
    if path.endswith(".jit"):
        return module, speech_calls()
    return module.double(), [([torch.rand(1, 1, 64, 64, 64).double()], {})]


OWN = {
    "lstm": lambda: (Recurrent(nn.LSTM), lambda n: [torch.randn(n, 7, 12)]),
    "gru": lambda: (Recurrent(nn.GRU), lambda n: [torch.randn(n, 7, 12)]),
    "encoder": lambda: (Encoder(), lambda n: [torch.randn(n, 6, 32), torch.arange(6)[None].expand(n, 6) > 3]),
    "losses": lambda: (Losses(), lambda n: [torch.randn(n, 5), torch.randn(n, 5), torch.randint(2, 5, (n,))]),
    "writes": lambda: (Writes(), lambda n: [torch.randn(n, 4)]),
    "buffer": lambda: (Buffer(), lambda n: [torch.randn(n, 4)]),
    "resizes": lambda: (Resizes(), lambda n: [torch.randn(n, 2, 6, 8)]),
    "flow": lambda: (Flow(), flow_calls),
    "decides": lambda: (Decides(), lambda n: [torch.randn(n, 4)]),
    "keeps": lambda: (Keeps(), lambda n: [torch.randn(2, 4)]),
}
ONLY_SCRIPTED = ("flow", "decides", "keeps")


def plain(value):
    """Arrays instead of tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(one) for one in value) if type(value) in (list, tuple) else tuple(plain(one) for one in value)
    return value


def flat(value):
    if isinstance(value, dict):
        return [array for one in value.values() for array in flat(one)]
    if isinstance(value, (list, tuple)):
        return [array for one in value for array in flat(one)]
    return [] if value is None else [np.asarray(value)]


def copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if Path(name).is_file():
        net, calls = packaged(name)
        return write(folder, {"scripted": net}, calls)
    net, inputs_of = OWN[name]() if name in OWN else trained(name) if name in TRAINED else vision(name)
    for weight in net.parameters():
        if not weight.any():  # heads that begin with zeros would hide every difference
            nn.init.normal_(weight, std=0.1)
    net.eval()
    if name == "flow":
        calls = inputs_of()
    else:
        calls = [(inputs_of(batch), {}) for batch in (2, 3, 2)]
    archives = {}
    if name not in ONLY_SCRIPTED:
        try:
            archives["traced"] = torch.jit.trace(net, tuple(calls[0][0]), strict=False, check_trace=False)
        except Exception as error:  # noqa: BLE001
            print("not traced:", str(error)[:300])
    try:
        archives["scripted"] = torch.jit.script(net)
    except Exception as error:  # noqa: BLE001
        print("not scripted:", str(error)[:300])
    fixed = name in ("swin_t", "swin_v2_t", "googlenet", "inception_v3")  # traced with sizes that fit one batch
    write(folder, archives, calls, fixed)


def write(folder, archives, calls, fixed=False):
    results = {}
    for kind, module in archives.items():
        path = str(folder / f"{kind}.pt")
        torch.jit.save(module, path)
        loaded = torch.jit.load(path)
        results[kind] = []
        for args, kwargs in calls[: 1 if kind == "traced" and fixed else None]:
            with torch.no_grad():
                out = loaded(*[copied(a) for a in args], **kwargs)
            results[kind].append((plain(args), plain(kwargs), flat(plain(out))))
    (folder / "results.pkl").write_bytes(pickle.dumps(results))


main()
