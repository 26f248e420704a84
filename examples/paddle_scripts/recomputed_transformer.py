"""Masked language modelling with nn.TransformerEncoder; activations are computed again in the backward pass."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distributed.fleet.utils import recompute

from common import arguments, report, same_start

WORDS, WIDTH, LENGTH, MASK = 40, 32, 16, 1


class Encoder(nn.Layer):
    def __init__(self, depth=3):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.words(ids) + self.places(paddle.arange(ids.shape[1]))
        for layer in self.encoder.layers:
            x = recompute(layer, x) if self.training else layer(x)
        return self.head(self.encoder.norm(x))


def masked(rng, count=8):
    """Arithmetic sequences with some members hidden; only those count in the loss."""
    first, gap = rng.randint(2, WORDS, (count, 1)), rng.randint(1, 4, (count, 1))
    ids = 2 + (first + gap * np.arange(LENGTH)) % (WORDS - 2)
    hidden = rng.rand(count, LENGTH) < 0.2
    hidden[:, 3] = True
    return np.where(hidden, MASK, ids), np.where(hidden, ids, 0)


def main():
    args = arguments(__doc__)
    model = Encoder()
    same_start(args.weights, model=model)
    warm = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.NaturalExpDecay(3e-3, gamma=0.01), 10, 0.0, 3e-3)
    optimizer = paddle.optimizer.AdamW(warm, parameters=model.parameters(), weight_decay=0.01)
    rng = np.random.RandomState(34)
    losses = []
    model.train()
    for _ in range(args.steps):
        ids, targets = (paddle.to_tensor(part) for part in masked(rng))
        loss = F.cross_entropy(model(ids), targets, ignore_index=0)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        warm.step()
        losses.append(loss.item())
    model.eval()
    ids, targets = (paddle.to_tensor(part) for part in masked(rng))
    with paddle.no_grad():
        held_out = F.cross_entropy(model(ids), targets, ignore_index=0)
    report(losses, held_out=held_out)


if __name__ == "__main__":
    main()
