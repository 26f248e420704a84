"""nn.Transformer for translation: padding and causal masks, label smoothing, Noam's learning rate."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import BatchSampler, DataLoader, Dataset

from common import arguments, report, same_start

WORDS, WIDTH, PAD, START, END = 32, 32, 0, 1, 2


class Pairs(Dataset):
    """Sentences and their translations: each word plus three, in the other order."""

    def __init__(self, count=400):
        rng = np.random.RandomState(8)
        self.sources = [rng.randint(3, WORDS, rng.randint(3, 9)) for _ in range(count)]

    def __getitem__(self, index):
        source = self.sources[index]
        return source, np.concatenate([[START], source[::-1] % (WORDS - 3) + 3, [END]])

    def __len__(self):
        return len(self.sources)


def padded(rows):
    longest = max(map(len, rows))
    return np.array([list(row) + [PAD] * (longest - len(row)) for row in rows], dtype="int64")


def collate(samples):
    sources, targets = zip(*samples)
    return padded(sources), padded(targets)


class Translator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, weight_attr=nn.initializer.Normal(0.0, WIDTH**-0.5))
        self.transformer = nn.Transformer(
            WIDTH, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=64, dropout=0.0,
            activation="relu", normalize_before=True)
        place = np.arange(64)[:, None] / 10000 ** (np.arange(0, WIDTH, 2) / WIDTH)
        self.places = np.stack([np.sin(place), np.cos(place)], -1).reshape(64, WIDTH)

    def embedded(self, ids):
        vectors = self.embedding(ids) * math.sqrt(WIDTH)
        return vectors + paddle.to_tensor(self.places[: ids.shape[1]], dtype=vectors.dtype)

    def forward(self, source, target):
        dtype = self.embedding.weight.dtype
        padding = (source == PAD).astype(dtype).unsqueeze([1, 2]) * -1e9
        causal = self.transformer.generate_square_subsequent_mask(target.shape[1]).astype(dtype)
        out = self.transformer(self.embedded(source), self.embedded(target), padding, causal, padding)
        return F.linear(out, self.embedding.weight.t())


def smoothed_loss(logits, target, epsilon=0.125):
    labels = F.label_smooth(F.one_hot(target, WORDS).astype(logits.dtype), epsilon=epsilon)
    losses = F.cross_entropy(logits, labels, soft_label=True, reduction="none").squeeze(-1)
    counted = (target != PAD).astype(logits.dtype)
    return (losses * counted).sum() / counted.sum()


def main():
    args = arguments(__doc__)
    model = Translator()
    same_start(args.weights, model=model)
    schedule = paddle.optimizer.lr.NoamDecay(d_model=WIDTH, warmup_steps=60, learning_rate=0.5)
    optimizer = paddle.optimizer.Adam(schedule, beta1=0.9, beta2=0.98, epsilon=1e-9, parameters=model.parameters())
    dataset = Pairs()
    sampler = BatchSampler(dataset, shuffle=True, batch_size=16, drop_last=True)
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate, num_workers=0)
    losses = []
    while len(losses) < args.steps:
        for source, target in loader:
            loss = smoothed_loss(model(source, target[:, :-1]), target[:, 1:])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            schedule.step()
            losses.append(float(loss))
            if len(losses) == args.steps:
                break
    report(losses, rate=schedule.last_lr)


if __name__ == "__main__":
    main()
