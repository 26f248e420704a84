"""A U-Net that finds circles and squares in noise."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        # input is CHW
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2,
                        diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super().__init__()
        self.inc = DoubleConv(n_channels, 8)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(16, 16))
        self.up1 = Up(32, 8)
        self.up2 = Up(16, 8, bilinear=True)
        self.outc = nn.Conv2d(8, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        return self.outc(self.up2(x, x1))


class Scenes(Dataset):
    def __init__(self, n, size=18):
        rng = np.random.RandomState(0)
        y, x = np.mgrid[:size, :size]
        self.images, self.masks = [], []
        for _ in range(n):
            cy, cx, sy, sx = rng.randint(3, size - 3, 4)
            mask = np.zeros((size, size), np.int64)
            mask[(y - cy) ** 2 + (x - cx) ** 2 < 9] = 1
            mask[(abs(y - sy) < 3) & (abs(x - sx) < 3)] = 2
            self.images.append((mask[None] + rng.randn(1, size, size) * 0.4).astype(np.float32))
            self.masks.append(mask)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": torch.as_tensor(self.images[i]), "mask": torch.as_tensor(self.masks[i]).long()}


def dice_loss(probs, onehot, eps=1e-6):
    dims = (0, 2, 3)
    inter = (probs * onehot).sum(dim=dims)
    sets = probs.sum(dim=dims) + onehot.sum(dim=dims)
    return 1 - ((2 * inter + eps) / (sets + eps)).mean()


def train_net(net, device, steps, lr=1e-3):
    loader = DataLoader(Scenes(40), shuffle=True, batch_size=4, num_workers=0, pin_memory=True if torch.cuda.is_available() else False)
    optimizer = torch.optim.Adam(net.parameters(), lr=lr, betas=(0.9, 0.99))
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 1.0]).to(device))
    step = 0
    net.train()
    while True:
        for batch in loader:
            images = batch["image"].to(device=device, dtype=torch.float32)
            true_masks = batch["mask"].to(device=device, dtype=torch.long)
            masks_pred = net(images)
            onehot = F.one_hot(true_masks, 3).permute(0, 3, 1, 2).float()
            loss = criterion(masks_pred, true_masks) + dice_loss(F.softmax(masks_pred, dim=1), onehot)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.1)
            optimizer.step()
            print(f"step {step} loss {loss.item():.8f}")
            step += 1
            if step >= steps:
                return


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--init", type=str, default=None)
    p.add_argument("--save-init", type=str, default=None)
    a = p.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = UNet(n_channels=1, n_classes=3)
    if a.init:
        net.load_state_dict(torch.load(a.init, map_location=device))
    if a.save_init:
        torch.save(net.state_dict(), a.save_init)
    net.to(device=device)
    train_net(net, device, a.steps)
