"""Forecasts with an LSTM: sliding windows, Huber's loss, ReduceOnPlateau and early stopping on held-out data."""

import numpy as np
import paddle
from paddle import nn
from paddle.io import DataLoader, Dataset, Subset

from common import arguments, report, same_start

WINDOW, AHEAD = 24, 4


class Windows(Dataset):
    def __init__(self, series, dtype):
        super().__init__()
        self.series = series.astype(dtype)

    def __getitem__(self, index):
        return self.series[index:index + WINDOW], self.series[index + WINDOW:index + WINDOW + AHEAD, 0]

    def __len__(self):
        return len(self.series) - WINDOW - AHEAD


class Forecaster(nn.Layer):
    def __init__(self, features=2, width=24):
        super().__init__()
        self.rnn = nn.LSTM(features, width, num_layers=2, time_major=False, dropout=0.0)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, AHEAD))

    def forward(self, window):
        outputs, (hidden, cell) = self.rnn(window)
        return self.head(hidden[-1]) + window[:, -1:, 0]


def demand(count=600):
    """Daily and weekly rhythms with noise, and the temperature that goes with them."""
    rng = np.random.RandomState(23)
    hour = np.arange(count)
    load = np.sin(hour * 2 * np.pi / 24) + 0.5 * np.sin(hour * 2 * np.pi / 168) + 0.1 * rng.randn(count)
    return np.stack([load, np.roll(load, 3) + 0.1 * rng.randn(count)], axis=1)


@paddle.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    total = sum(float(criterion(model(window), target)) * len(target) for window, target in loader)
    model.train()
    return total / len(loader.dataset)


def main():
    args = arguments(__doc__)
    model = Forecaster()
    same_start(args.weights, model=model)
    dataset = Windows(demand(), args.dtype)
    border = int(0.8 * len(dataset))
    train = DataLoader(Subset(dataset, range(border)), batch_size=32, shuffle=True, drop_last=True)
    valid = DataLoader(Subset(dataset, range(border, len(dataset))), batch_size=64)
    criterion = nn.SmoothL1Loss(delta=0.5)
    schedule = paddle.optimizer.lr.ReduceOnPlateau(learning_rate=0.01, factor=0.5, patience=1, threshold=0.05)
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.parameters())
    losses, held_out = [], []
    while len(losses) < args.steps:
        for window, target in train:
            loss = criterion(model(window), target)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
            if len(losses) % 5 == 0 or len(losses) == args.steps:
                held_out.append(evaluate(model, valid, criterion))
                schedule.step(paddle.to_tensor(held_out[-1]))
            if len(losses) == args.steps:
                break
    report(losses, held_out=held_out[-1], rate=optimizer.get_lr())


if __name__ == "__main__":
    main()
