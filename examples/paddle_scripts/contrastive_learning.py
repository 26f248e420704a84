"""Contrastive learning of two views: cosine similarities by einsum, a learned temperature, parameter groups."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

BATCH = 16


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv1D(1, 8, 5, stride=2, padding=2, padding_mode="circular"), nn.ReLU(),
            nn.Conv1D(8, 16, 5, stride=2, padding=2, padding_mode="replicate"), nn.ReLU(), nn.AdaptiveMaxPool1D(4), nn.Flatten())
        self.projection = nn.Sequential(nn.Linear(64, 32, bias_attr=False), nn.BatchNorm1D(32), nn.ReLU(), nn.Linear(32, 16))
        self.temperature = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.0))

    def forward(self, x):
        return F.normalize(self.projection(self.backbone(x)), axis=1)


def nt_xent(one, two, temperature):
    """The loss of SimCLR: each view must find the other one among all others of the batch."""
    views = paddle.concat([one, two])
    count = views.shape[0]
    similarity = paddle.einsum("id,jd->ij", views, views) * temperature.exp()
    itself = paddle.eye(count, dtype="int32").astype("bool")
    similarity = paddle.masked_fill(similarity, itself, -1e9)
    partner = paddle.roll(paddle.arange(count), shifts=count // 2)
    return F.cross_entropy(similarity, partner)


def views(rng, dtype):
    """Two noisy, shifted recordings of each of a few waves."""
    time = np.arange(64) / 64
    waves = sum(rng.randn(BATCH, 1) * np.sin(2 * np.pi * k * time + rng.uniform(0, 6, (BATCH, 1))) for k in (1, 2, 3, 5))
    def view():
        moved = np.stack([np.roll(wave, rng.randint(-4, 5)) for wave in waves])
        return paddle.to_tensor((moved + 0.1 * rng.randn(*moved.shape)).astype(dtype)).unsqueeze(1)
    return view(), view()


def main():
    args = arguments(__doc__)
    encoder = Encoder()
    same_start(args.weights, encoder=encoder)
    backbone = {"params": encoder.backbone.parameters(), "learning_rate": 0.5}
    others = {"params": encoder.projection.parameters() + [encoder.temperature], "weight_decay": 0.0}
    optimizer = paddle.optimizer.Momentum(learning_rate=0.05, momentum=0.9, parameters=[backbone, others], weight_decay=1e-3)
    rng = np.random.RandomState(22)
    losses = []
    for _ in range(args.steps):
        one, two = views(rng, args.dtype)
        loss = nt_xent(encoder(one), encoder(two), encoder.temperature)
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    report(losses, temperature=encoder.temperature.exp().item())


if __name__ == "__main__":
    main()
