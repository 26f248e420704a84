"""Residual blocks, initialised as in the paper, trained with steps of the learning rate."""
import argparse
import os

import numpy as np
import oar
import oar.nn as nn
from oar.optimizer.lr import MultiStepDecay as MultiStepLR



def conv3x3(in_planes, out_planes, stride=1):
    """3x3 convolution with padding"""
    return nn.Conv2D(in_planes, out_planes, kernel_size=3, stride=stride,
                     padding=1, bias=False)


class BasicBlock(nn.Layer):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2D
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU()
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2D(in_planes, planes, 1, stride, bias=False),
                norm_layer(planes),
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Layer):
    def __init__(self, block, layers, num_classes=5):
        super().__init__()
        self.planes = 8
        self.stem = nn.Sequential(nn.Conv2D(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2D(8, epsilon=1e-5), nn.ReLU())
        self.layer1 = self._make_layer(block, 8, layers[0])
        self.layer2 = self._make_layer(block, 16, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        self.fc = oar.compat.nn.Linear(16 * block.expansion, num_classes)

        for m in self.modules():
            if isinstance(m, nn.Conv2D):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2D, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, blocks, stride=1):
        layers = [block(self.planes, planes, stride)]
        self.planes = planes * block.expansion
        layers += [block(self.planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        x = self.layer2(self.layer1(self.stem(x)))
        x = oar.flatten(self.avgpool(x), 1)
        return self.fc(x)


def accuracy(output, target, topk=(1,)):
    with oar.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / target.size(0)).item() for k in topk]


def batches(steps, size=16):
    rng = np.random.RandomState(3)
    centres = rng.randn(5, 3, 1, 1)
    for _ in range(steps):
        labels = rng.randint(0, 5, size)
        yield oar.to_tensor(centres[labels] + 0.5 * rng.randn(size, 3, 12, 12), dtype=oar.float32), oar.LongTensor(labels)


def main(args):
    oar.seed(0)
    net = ResNet(BasicBlock, [1, 2])
    if oar.cuda.is_available():
        net = net
    if args.init and os.path.isfile(args.init):
        checkpoint = oar.load(args.init)
        net.load_state_dict(oar.interop.torch_state(checkpoint["state_dict"], net))
    if args.save_init:
        oar.save({"epoch": 0, "state_dict": net.state_dict()}, args.save_init)

    criterion = nn.CrossEntropyLoss(label_smoothing=0.1, axis=1)
    optimizer = oar.optimizer.Momentum(parameters=net.parameters(), learning_rate=0.05, momentum=0.9, weight_decay=5e-4, use_nesterov=True)
    scheduler = MultiStepLR(learning_rate=optimizer.get_lr(), milestones=[5, 12], gamma=0.2)
    optimizer.set_lr_scheduler(scheduler)
    for i, (images, target) in enumerate(batches(args.steps)):
        output = net(images)
        loss = criterion(output, target)
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        top1, top3 = accuracy(output, target, topk=(1, 3))
        print(f"[{i}] loss {loss.item():.8f} top1 {top1:.1f} top3 {top3:.1f} lr {scheduler.last_lr:.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--init", default="")
    parser.add_argument("--save-init", default="")
    main(parser.parse_args())
