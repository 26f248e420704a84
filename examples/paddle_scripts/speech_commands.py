"""Keyword spotting: log mel features from paddle.audio, an IterableDataset, depthwise convolutions."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.audio.features import MFCC, LogMelSpectrogram
from paddle.io import DataLoader, IterableDataset

from common import arguments, report, same_start

RATE, SAMPLES, CLASSES = 4000, 2000, 5


class Commands(IterableDataset):
    """Endless recordings: each class is a tone that rises or falls in its own way, with noise."""

    def __init__(self, dtype, seed=12):
        super().__init__()
        self.dtype, self.seed = dtype, seed

    def __iter__(self):
        rng = np.random.RandomState(self.seed)
        time = np.arange(SAMPLES) / RATE
        while True:
            label = rng.randint(CLASSES)
            pitch = 300 + 150 * label + (600 - 300 * label) * time + rng.uniform(-30, 30)
            wave = np.sin(2 * np.pi * np.cumsum(pitch) / RATE) * np.hanning(SAMPLES)
            yield (wave + 0.1 * rng.randn(SAMPLES)).astype(self.dtype), np.int64(label)


class Spotter(nn.Layer):
    def __init__(self, mels=32, width=24):
        super().__init__()
        self.norm = nn.BatchNorm1D(mels)
        self.conv = nn.Conv1D(mels, width, 3, padding=1)
        self.depthwise = nn.Conv1D(width, width, 5, padding="same", groups=width)
        self.pointwise = nn.Conv1D(width, width, 1, bias_attr=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, features):
        x = F.relu(self.conv(self.norm(features)))
        x = F.hardswish(self.pointwise(self.depthwise(x))) + x
        return self.head(x.mean(axis=-1))


def main():
    args = arguments(__doc__)
    features = LogMelSpectrogram(sr=RATE, n_fft=256, hop_length=100, n_mels=32, f_min=50.0, htk=True, top_db=80.0,
                                 dtype=args.dtype)
    model = Spotter()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Momentum(
        learning_rate=paddle.optimizer.lr.CyclicLR(0.01, 0.05, step_size_up=25), momentum=0.9, use_nesterov=True,
        parameters=model.parameters(), grad_clip=nn.ClipGradByValue(0.5))
    loader = DataLoader(Commands(args.dtype), batch_size=8)
    accuracy = paddle.metric.Accuracy()
    losses = []
    for wave, label in loader:
        if len(losses) == args.steps:
            break
        logits = model(features(wave))
        loss = F.cross_entropy(logits, label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        optimizer._learning_rate.step()
        accuracy.update(accuracy.compute(logits.detach(), label.unsqueeze(-1)))
        losses.append(loss.item())
    coefficients = MFCC(sr=RATE, n_mfcc=13, n_fft=256, n_mels=32, f_min=50.0, htk=True, dtype=args.dtype)(wave)
    report(losses, accuracy=accuracy.accumulate(), cepstrum=coefficients.abs().mean())


if __name__ == "__main__":
    main()
