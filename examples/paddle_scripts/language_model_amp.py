"""A small GPT: mixed precision, gradient accumulation, warm-up, clipping and a head that shares the embedding."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

VOCABULARY, LENGTH, WIDTH, HEADS, ACCUMULATE = 48, 32, 64, 4, 2


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH, weight_attr=nn.initializer.Normal(0.0, 0.02))
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate=True), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("mask", paddle.tril(paddle.ones([LENGTH, LENGTH], dtype="bool")), persistable=False)

    def attention(self, x):
        batch, length = x.shape[0], x.shape[1]
        qkv = self.qkv(x).reshape([batch, length, 3, HEADS, WIDTH // HEADS]).transpose([2, 0, 3, 1, 4])
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(WIDTH // HEADS)
        scores = paddle.where(self.mask[:length, :length], scores, paddle.full_like(scores, -1e4))
        mixed = paddle.matmul(F.softmax(scores, axis=-1), v)
        return self.proj(mixed.transpose([0, 2, 1, 3]).reshape([batch, length, WIDTH]))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Layer):
    def __init__(self, layers=2):
        super().__init__()
        attr = paddle.ParamAttr(initializer=nn.initializer.Normal(mean=0.0, std=0.05))
        self.tokens = nn.Embedding(VOCABULARY, WIDTH, weight_attr=attr)
        self.places = nn.Embedding(LENGTH, WIDTH, weight_attr=attr)
        self.blocks = nn.LayerList([Block() for _ in range(layers)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(paddle.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return paddle.matmul(self.norm(x), self.tokens.weight, transpose_y=True)


def batches(rng, size=8):
    """Sentences of a grammar in which each token mostly follows from the two before it."""
    while True:
        ids = rng.randint(0, VOCABULARY, (size, LENGTH + 1))
        for t in range(2, LENGTH + 1):
            follows = (3 * ids[:, t - 1] + ids[:, t - 2] + 7) % VOCABULARY
            ids[:, t] = np.where(rng.rand(size) < 0.9, follows, ids[:, t])
        yield ids[:, :-1], ids[:, 1:]


def main():
    args = arguments(__doc__)
    model = GPT()
    same_start(args.weights, model=model)
    schedule = paddle.optimizer.lr.LinearWarmup(
        paddle.optimizer.lr.PolynomialDecay(3e-3, decay_steps=200, end_lr=1e-4), warmup_steps=10, start_lr=0.0, end_lr=3e-3)
    decayed = {p.name for n, p in model.named_parameters() if "norm" not in n and not n.endswith("bias")}
    optimizer = paddle.optimizer.AdamW(
        schedule, beta2=0.95, parameters=model.parameters(), weight_decay=0.1,
        apply_decay_param_fun=lambda name: name in decayed, grad_clip=nn.ClipGradByGlobalNorm(1.0))
    mixed = args.dtype == "float32"
    scaler = paddle.amp.GradScaler(enable=mixed, init_loss_scaling=1024.0)

    data = batches(np.random.RandomState(3))
    losses = []
    model.train()
    for _ in range(args.steps):
        total = 0.0
        for _ in range(ACCUMULATE):
            ids, targets = (paddle.to_tensor(part) for part in next(data))
            with paddle.amp.auto_cast(enable=mixed, level="O1", dtype="bfloat16"):
                logits = model(ids)
                loss = F.cross_entropy(logits.reshape([-1, VOCABULARY]), targets.reshape([-1]))
            scaler.scale(loss / ACCUMULATE).backward()
            total += float(loss) / ACCUMULATE
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        schedule.step()
        losses.append(total)
    report(losses, rate=optimizer.get_lr())


if __name__ == "__main__":
    main()
