"""Segmentation with a U-Net: dice and cross entropy, a DataLoader with worker processes, per-parameter rates."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import DataLoader, Dataset, DistributedBatchSampler

from common import arguments, report, same_start

CLASSES = 3


class Shapes(Dataset):
    """Images of a disc and a square on noise, and the class of every pixel."""

    def __init__(self, count, dtype):
        self.count, self.dtype = count, dtype

    def __getitem__(self, index):
        rng = np.random.RandomState(index)
        y, x = np.mgrid[0:32, 0:32]
        mask = np.zeros((32, 32), "int64")
        cy, cx, r = rng.randint(8, 24), rng.randint(8, 24), rng.randint(4, 8)
        mask[(y - cy) ** 2 + (x - cx) ** 2 < r * r] = 1
        top, left, side = rng.randint(0, 20), rng.randint(0, 20), rng.randint(5, 11)
        mask[top:top + side, left:left + side] = 2
        image = np.stack([mask == 1, mask == 2, mask > 0]) + 0.3 * rng.randn(3, 32, 32)
        return image.astype(self.dtype), mask

    def __len__(self):
        return self.count


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2D(inputs, outputs, 3, padding=1, bias_attr=False), nn.BatchNorm2D(outputs), nn.ReLU(),
        nn.Conv2D(outputs, outputs, 3, padding=1, bias_attr=False), nn.GroupNorm(4, outputs), nn.ReLU())


class UNet(nn.Layer):
    def __init__(self, width=8):
        super().__init__()
        self.down1, self.down2, self.middle = double(3, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.pool = nn.MaxPool2D(kernel_size=2)
        self.up2 = nn.Conv2DTranspose(4 * width, 2 * width, 2, stride=2)
        self.merge2, self.merge1 = double(4 * width, 2 * width), double(3 * width, width)
        self.head = nn.Conv2D(width, CLASSES, 1, weight_attr=paddle.ParamAttr(
            learning_rate=2.0, regularizer=paddle.regularizer.L2Decay(1e-3)))

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(self.pool(one))
        low = self.middle(self.pool(two))
        two = self.merge2(paddle.concat([two, self.up2(low)], axis=1))
        grown = F.interpolate(two, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.merge1(paddle.concat([one, grown], axis=1)))


def dice_and_entropy(logits, mask):
    share = F.softmax(logits, axis=1).transpose([0, 2, 3, 1])
    return F.dice_loss(share, mask.unsqueeze(-1)) + F.cross_entropy(logits, mask, axis=1)


def mean_overlap(found, mask):
    overlaps = []
    for label in range(CLASSES):
        a, b = found == label, mask == label
        either = paddle.logical_or(a, b).astype("int64").sum().item()
        overlaps.append(paddle.logical_and(a, b).astype("int64").sum().item() / max(either, 1))
    return sum(overlaps) / CLASSES


def main():
    args = arguments(__doc__)
    model = UNet()
    same_start(args.weights, model=model)
    schedule = paddle.optimizer.lr.PolynomialDecay(0.02, decay_steps=150, power=0.9)
    optimizer = paddle.optimizer.Momentum(schedule, 0.9, parameters=model.parameters(), weight_decay=1e-4)
    dataset = Shapes(48, args.dtype)
    sampler = DistributedBatchSampler(dataset, batch_size=4, shuffle=True)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=2)
    losses, epoch = [], 0
    while len(losses) < args.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for image, mask in loader:
            logits = model(image)
            loss = dice_and_entropy(logits, mask)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            schedule.step()
            losses.append(loss.item())
            if len(losses) == args.steps:
                break
    report(losses, overlap=mean_overlap(logits.argmax(axis=1), mask))


if __name__ == "__main__":
    main()
