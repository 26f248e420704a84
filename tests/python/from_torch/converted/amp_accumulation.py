"""Mixed precision, gradients of several batches at once, warm-up and decay, checkpoints to go on from."""
import argparse
import math
import os

import numpy as np
import oar
import oar.nn as nn
from oar.amp import GradScaler
from oar.optimizer.lr import LambdaDecay as LambdaLR
from oar.io import DataLoader, TensorDataset, WeightedRandomSampler


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--amp", action="store_true", help="compute in bfloat16")
    parser.add_argument("--init", default="")
    parser.add_argument("--save-init", default="")
    parser.add_argument("--checkpoint", default="")
    return parser.parse_args()


class Mixer(nn.Layer):
    def __init__(self, width=32, depth=2, classes=3):
        super().__init__()
        self.stem = nn.Conv1D(4, width, kernel_size=5, padding=2)
        self.blocks = nn.LayerList()
        for _ in range(depth):
            self.blocks.append(nn.LayerDict({
                "norm": nn.LayerNorm(width),
                "attention": oar.compat.nn.MultiheadAttention(width, 4, batch_first=True),
                "mlp": nn.Sequential(oar.compat.nn.Linear(width, 2 * width), nn.GELU(), oar.compat.nn.Linear(2 * width, width)),
            }))
        self.head = oar.compat.nn.Linear(width, classes)

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
    oar.seed(8)
    if oar.cuda.is_available():
        oar.cuda.manual_seed_all(8)
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 120)
    wave = np.sin(np.arange(20) * (0.3 + 0.3 * y[:, None]))[:, None, :] + 0.3 * rng.normal(size=(120, 4, 20))
    dataset = TensorDataset([oar.FloatTensor(wave), oar.from_numpy(y)])
    counts = oar.bincount(oar.from_numpy(y), minlength=3)
    sampler = WeightedRandomSampler((1.0 / counts.float())[oar.from_numpy(y)].tolist(), num_samples=len(y), replacement=True)
    loader = DataLoader(dataset, batch_sampler=oar.io.BatchSampler(sampler=sampler, batch_size=8, drop_last=True))

    device = oar.device("cuda") if oar.cuda.is_available() else oar.device("cpu")
    model = Mixer().to(device)
    if args.init:
        model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model))
    if args.save_init:
        oar.save(model.state_dict(), args.save_init)
    optimizer = oar.optimizer.AdamW(parameters=model.parameters(), learning_rate=4e-3, weight_decay=0.05)
    scheduler = LambdaLR(learning_rate=optimizer.get_lr(), lr_lambda=lr_lambda)
    optimizer.set_lr_scheduler(scheduler)
    scaler = GradScaler(init_loss_scaling=2.0**10, incr_every_n_steps=100, enable=args.amp and device.type == "cuda")
    criterion = nn.CrossEntropyLoss(axis=1)
    start = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        checkpoint = oar.load(args.checkpoint)
        model.load_state_dict(oar.interop.torch_state(checkpoint["model"], model))
        optimizer.set_state_dict(checkpoint["optimizer"])
        scheduler.set_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        start = checkpoint["step"]

    step, running = start, 0.0
    while step < args.steps:
        for i, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device), targets.to(device)
            with oar.amp.auto_cast(dtype=oar.bfloat16, enable=args.amp):
                loss = criterion(model(inputs), targets) / args.accumulate
            scaler.scale(loss).backward()
            running += loss.item()
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.clear_grad()
                scheduler.step()
                print(f"step {step} loss {running:.8f} lr {scheduler.last_lr:.3e}")
                running = 0.0
                step += 1
                if step >= args.steps:
                    break
    if args.checkpoint:
        oar.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(), "step": step}, args.checkpoint)


if __name__ == "__main__":
    main()
