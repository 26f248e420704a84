"""Typical code of a user."""
from __future__ import annotations

import numpy as np

import oar
import oar.nn.functional as F
from oar import Tensor, nn
from oar.io import DataLoader, Dataset
from oar.vision.ops import deform_conv2d


class Digits(Dataset):
    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return np.zeros([1, 28, 28], "float32"), index % 10

    def __len__(self) -> int:
        return 64


class Net(nn.Layer):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2D(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2D(8)
        self.head = nn.Linear(8 * 14 * 14, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool2d(x, 2, 2)
        scores: Tensor = self.head(oar.flatten(x, 1))
        return scores


def train() -> float:
    net = Net()
    optimizer = oar.optimizer.Adam(learning_rate=1e-3, parameters=net.parameters())
    loss_of = nn.CrossEntropyLoss()
    loss = oar.zeros([])
    for images, labels in DataLoader(Digits(), batch_size=16, shuffle=True):
        loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    oar.save(net.state_dict(), "digits.pdparams")
    net.set_state_dict(oar.load("digits.pdparams"))
    return float(loss)


x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
y = (x * 2 + 1) @ x.T - x.mean(axis=0, keepdim=True) / np.float32(3)
z = oar.concat([x, y], axis=-1).reshape([-1]).astype("float64")
mask = (x > 1) & (y != 0)
picked = x[mask], x[0, :, None], x[..., -1]
n: int = x.shape[0] + x.ndim + len(x)
values, indices = oar.topk(z, k=2)
parts = oar.split(x, 2, axis=1)
first: Tensor = parts[0]
array = x.numpy().sum() + float(x.sum()) + x.sum().item()
oar.seed(1)
a = oar.arange(0, 10, 2, dtype="int64") + oar.ones([5], dtype=oar.int64)
b = oar.full([2, 2], 7.0) ** 2 + oar.randn([2, 2]) + oar.rand([2, 2])
c = oar.where(x > 0, x, oar.zeros_like(x)).clip(0, 1).sum([0, 1]).sqrt()
d = F.softmax(x, axis=-1).transpose([1, 0]).unsqueeze(0).squeeze(0).expand([2, 2])
e = F.cross_entropy(x, oar.to_tensor([0, 1])) + F.mse_loss(x, y) + F.dropout(x, 0.5).sum()
if x.grad is not None:
    print(x.grad.numpy(), x.dtype == oar.float32, x.dtype.name)
with oar.no_grad():
    w = x.clone().detach().cpu()


@oar.no_grad()
def evaluate(model: nn.Layer, data: Tensor) -> Tensor:
    model.eval()
    return oar.argmax(model(data), axis=-1)


@oar.jit.to_static
def step(t: Tensor) -> Tensor:
    return t.exp().sum()


model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
for name, parameter in model.named_parameters():
    parameter.stop_gradient = True
    print(name, parameter.shape, parameter.name)
scheduler = oar.optimizer.lr.CosineAnnealingDecay(0.1, T_max=10)
sgd = oar.optimizer.SGD(scheduler, parameters=model.parameters(), weight_decay=1e-4)
scheduler.step()
with oar.amp.auto_cast():
    f = model(x)
g = oar.grad(f.sum(), [x])[0]
oar.set_device("cpu")
h = oar.einsum("ij,jk->ik", x, y)
oar.linalg.norm(x)
print(deform_conv2d)
i = oar.matmul(x, y, transpose_y=True).max().item()
normal = oar.distribution.Normal(oar.zeros([2]), 1.0)
j: Tensor = normal.rsample([3]) + oar.distribution.Bernoulli(0.3).probs
k: Tensor = oar.distribution.kl_divergence(normal, oar.distribution.Normal([0.0, 1.0], 2))
l: Tensor = oar.distribution.Categorical([0.2, 0.3]).probs(oar.to_tensor([1]))
