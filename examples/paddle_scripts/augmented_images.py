"""Classification of augmented images: vision.transforms in a Dataset, MobileNetV3 blocks, accuracy of top classes."""

import random

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import DataLoader, Dataset, WeightedRandomSampler, BatchSampler
from paddle.vision import transforms

from common import arguments, report, same_start

CLASSES = 3


class Textures(Dataset):
    """Grids, dots and gradients as arrays of bytes; rare classes are drawn more often."""

    def __init__(self, count, transform):
        rng = np.random.RandomState(32)
        y, x = np.mgrid[0:24, 0:24]
        patterns = [(x // 3 + y // 3) % 2 * 200, ((x % 6 < 2) & (y % 6 < 2)) * 220, x * 8 + y]
        self.labels = rng.choice(CLASSES, count, p=[0.6, 0.3, 0.1])
        self.images = [np.clip(patterns[label][..., None] * rng.uniform(0.5, 1, 3) + rng.randint(0, 30, (24, 24, 3)), 0, 255)
                       .astype("uint8") for label in self.labels]
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.labels[index])

    def __len__(self):
        return len(self.images)


class Inverted(nn.Layer):
    """An inverted residual with squeeze and excitation."""

    def __init__(self, channels, grown):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2D(channels, grown, 1, bias_attr=False), nn.BatchNorm2D(grown), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2D(grown, grown, 3, padding=1, groups=grown, bias_attr=False), nn.BatchNorm2D(grown))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2D(1), nn.Conv2D(grown, 4, 1), nn.ReLU(), nn.Conv2D(4, grown, 1), nn.Hardsigmoid())
        self.project = nn.Conv2D(grown, channels, 1)

    def forward(self, x):
        h = self.depthwise(self.expand(x))
        return x + self.project(F.hardswish(h * self.squeeze(h)))


def main():
    args = arguments(__doc__)
    random.seed(33)
    transform = transforms.Compose([
        transforms.RandomCrop(20, padding=2), transforms.RandomHorizontalFlip(0.5), transforms.Resize((16, 16)),
        transforms.ColorJitter(0.2, 0.2), transforms.Transpose(),
        transforms.Normalize(mean=[127.5] * 3, std=[127.5] * 3, data_format="CHW")])
    dataset = Textures(160, transform)
    weights = 1 / np.bincount(dataset.labels)[dataset.labels]
    sampler = BatchSampler(sampler=WeightedRandomSampler(weights.tolist(), len(dataset)), batch_size=8, drop_last=True)
    loader = DataLoader(dataset, batch_sampler=sampler)
    model = nn.Sequential(nn.Conv2D(3, 8, 3, 2, 1), nn.Hardswish(), Inverted(8, 24), Inverted(8, 24),
                          nn.AdaptiveAvgPool2D((1, 1)), nn.Flatten(), nn.Linear(8, CLASSES))
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Momentum(0.02, parameters=model.parameters(), weight_decay=paddle.regularizer.L2Decay(1e-4))
    losses, accuracy = [], []
    while len(losses) < args.steps:
        for image, label in loader:
            logits = model(image.astype(args.dtype))
            loss = F.cross_entropy(logits, label)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
            accuracy.append(paddle.metric.accuracy(logits.astype("float32"), label.unsqueeze(-1), k=1).item())
            if len(losses) == args.steps:
                break
    report(losses, accuracy=np.mean(accuracy))


if __name__ == "__main__":
    main()
