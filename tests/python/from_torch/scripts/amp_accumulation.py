"""Mixed precision, gradients of several batches at once, warm-up and decay, checkpoints to go on from."""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--amp", action="store_true", help="compute in bfloat16")
    parser.add_argument("--init", default="")
    parser.add_argument("--save-init", default="")
    parser.add_argument("--checkpoint", default="")
    return parser.parse_args()


class Mixer(nn.Module):
    def __init__(self, width=32, depth=2, classes=3):
        super().__init__()
        self.stem = nn.Conv1d(4, width, kernel_size=5, padding=2)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(nn.ModuleDict({
                "norm": nn.LayerNorm(width),
                "attention": nn.MultiheadAttention(width, 4, batch_first=True),
                "mlp": nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)),
            }))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x).permute(0, 2, 1)
        for block in self.blocks:
            h = block["norm"](x)
            attended, _ = block["attention"](h, h, h, need_weights=False)
            x = x + attended
            x = x + block["mlp"](x)
        return self.head(x.mean(dim=1))


def lr_lambda(step, warmup=4, total=24):
    if step < warmup:
        return float(step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def main():
    args = get_args()
    torch.manual_seed(8)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(8)
    torch.backends.cudnn.deterministic = True
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 120)
    wave = np.sin(np.arange(20) * (0.3 + 0.3 * y[:, None]))[:, None, :] + 0.3 * rng.normal(size=(120, 4, 20))
    dataset = TensorDataset(torch.Tensor(wave), torch.from_numpy(y))
    counts = torch.bincount(torch.from_numpy(y), minlength=3)
    sampler = WeightedRandomSampler((1.0 / counts.float())[torch.from_numpy(y)].tolist(), num_samples=len(y), replacement=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, drop_last=True)

    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    model = Mixer().to(device)
    if args.init:
        model.load_state_dict(torch.load(args.init, map_location=device))
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
    scheduler = LambdaLR(optimizer, lr_lambda)
    scaler = GradScaler(init_scale=2.0**10, growth_interval=100, enabled=args.amp and device.type == "cuda")
    criterion = nn.CrossEntropyLoss()
    start = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        checkpoint = torch.load(args.checkpoint)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        start = checkpoint["step"]

    step, running = start, 0.0
    while step < args.steps:
        for i, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=args.amp):
                loss = criterion(model(inputs), targets) / args.accumulate
            scaler.scale(loss).backward()
            running += loss.item()
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
                print(f"step {step} loss {running:.8f} lr {scheduler.get_last_lr()[0]:.3e}")
                running = 0.0
                step += 1
                if step >= args.steps:
                    break
    if args.checkpoint:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(), "step": step}, args.checkpoint)


if __name__ == "__main__":
    main()
