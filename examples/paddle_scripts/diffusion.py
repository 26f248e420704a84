"""A denoising diffusion model: embeddings of time, group norms, resampling by pixel shuffle, sampling backwards."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

STEPS, WIDTH = 50, 16


def embedding(t, dtype):
    frequency = paddle.exp(paddle.arange(WIDTH // 2, dtype=dtype) * (-math.log(1000.0) / (WIDTH // 2)))
    angle = t.astype(dtype).unsqueeze(1) * frequency.unsqueeze(0)
    return paddle.concat([paddle.sin(angle), paddle.cos(angle)], axis=1)


class Residual(nn.Layer):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1 = nn.Conv2D(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2D(outputs, outputs, 3, padding=1, weight_attr=nn.initializer.Normal(0.0, 0.02))
        self.time = nn.Linear(WIDTH, outputs)
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2D(inputs, outputs, 1)

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(time).unsqueeze([2, 3])
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Layer):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.enter = nn.Conv2D(1, WIDTH, 3, padding=1)
        self.down = Residual(WIDTH, WIDTH)
        self.middle = Residual(4 * WIDTH, 4 * WIDTH)
        self.up = Residual(2 * WIDTH, WIDTH)
        self.leave = nn.Conv2D(WIDTH, 1, 3, padding=1)

    def forward(self, x, t):
        time = self.time(embedding(t, x.dtype))
        one = self.down(self.enter(x), time)
        low = self.middle(F.pixel_unshuffle(one, 2), time)
        return self.leave(self.up(paddle.concat([one, F.pixel_shuffle(low, 2)], axis=1), time))


def waves(rng, dtype, count=8):
    y, x = np.mgrid[0:8, 0:8] / 8
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    return np.sin(2 * np.pi * (x + y) + phase)[:, None].astype(dtype)


@paddle.no_grad()
def sample(model, betas, kept, rng, dtype):
    x = paddle.to_tensor(rng.randn(2, 1, 8, 8).astype(dtype))
    for t in reversed(range(0, STEPS, 10)):
        noise = model(x, paddle.full([2], t, dtype="int64"))
        x = (x - betas[t] / (1 - kept[t]).sqrt() * noise) / (1 - betas[t]).sqrt()
    return x


def main():
    args = arguments(__doc__)
    model = Denoiser()
    same_start(args.weights, model=model)
    betas = paddle.linspace(1e-3, 0.1, STEPS, dtype=args.dtype)
    kept = paddle.cumprod(1 - betas, dim=0)
    optimizer = paddle.optimizer.AdamW(2e-3, parameters=model.parameters(), weight_decay=0.0,
                                       grad_clip=nn.ClipGradByGlobalNorm(1.0))
    rng = np.random.RandomState(29)
    losses = []
    for _ in range(args.steps):
        image = paddle.to_tensor(waves(rng, args.dtype))
        noise = paddle.to_tensor(rng.randn(*image.shape).astype(args.dtype))
        t = paddle.to_tensor(rng.randint(0, STEPS, image.shape[0]))
        share = paddle.gather(kept, t).reshape([-1, 1, 1, 1])
        loss = F.mse_loss(model(share.sqrt() * image + (1 - share).sqrt() * noise, t), noise)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    report(losses, drawn=sample(model, betas, kept, rng, args.dtype).abs().mean())


if __name__ == "__main__":
    main()
