"""A vision transformer: patches by unfold, attention by einsum, layer-wise rates, an average of the weights."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

SIZE, PATCH, WIDTH, HEADS, CLASSES = 16, 4, 32, 4, 4


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).reshape([0, 0, HEADS, -1]) for layer in (self.query, self.key, self.value))
        weights = F.softmax(paddle.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5, axis=-1)
        return self.out(paddle.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class Block(nn.Layer):
    def __init__(self, rate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        attr = paddle.ParamAttr(learning_rate=rate, initializer=nn.initializer.XavierUniform())
        self.fc1, self.fc2 = nn.Linear(WIDTH, 64, weight_attr=attr), nn.Linear(64, WIDTH, weight_attr=attr)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class ViT(nn.Layer):
    def __init__(self, depth=3):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.token = self.create_parameter([1, 1, WIDTH], default_initializer=nn.initializer.TruncatedNormal(std=0.02))
        places = (SIZE // PATCH) ** 2 + 1
        self.places = self.create_parameter([1, places, WIDTH], default_initializer=nn.initializer.TruncatedNormal(std=0.02))
        self.blocks = nn.Sequential(*[Block(0.8 ** (depth - 1 - number)) for number in range(depth)])
        self.norm = nn.LayerNorm(WIDTH, epsilon=1e-6)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, image):
        patches = F.unfold(image, PATCH, strides=PATCH).transpose([0, 2, 1])
        token = self.token.expand([image.shape[0], -1, -1])
        x = paddle.concat([token, self.embed(patches)], axis=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Average:
    """An exponential moving average of the parameters, that can take their place for a while."""

    def __init__(self, model, decay=0.95):
        self.model, self.decay = model, decay
        self.shadow = {name: p.clone().detach() for name, p in model.named_parameters()}

    @paddle.no_grad()
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p

    def __enter__(self):
        self.kept = {name: p.clone() for name, p in self.model.named_parameters()}
        for name, p in self.model.named_parameters():
            p.set_value(self.shadow[name])

    def __exit__(self, *error):
        for name, p in self.model.named_parameters():
            p.set_value(self.kept[name])


def blobs(rng, dtype, count=16):
    """A bright blob in one of the four corners."""
    labels = rng.randint(0, CLASSES, count)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    centre = np.stack([4 + 8 * (labels // 2), 4 + 8 * (labels % 2)]) + rng.uniform(-2, 2, (2, count))
    blob = np.exp(-((y - centre[0][:, None, None]) ** 2 + (x - centre[1][:, None, None]) ** 2) / 8)
    return (blob[:, None] * rng.rand(count, 3, 1, 1) + 0.3 * rng.randn(count, 3, SIZE, SIZE)).astype(dtype), labels


def main():
    args = arguments(__doc__)
    model = ViT()
    same_start(args.weights, model=model)
    average = Average(model)
    schedule = paddle.optimizer.lr.OneCycleLR(max_learning_rate=2e-3, total_steps=150, phase_pct=0.3)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=model.parameters(), weight_decay=0.05)
    rng = np.random.RandomState(26)
    losses = []
    for _ in range(args.steps):
        image, label = (paddle.to_tensor(part) for part in blobs(rng, args.dtype))
        loss = F.cross_entropy(model(image), label, label_smoothing=0.125)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        average.update()
        losses.append(loss.item())
    image, label = (paddle.to_tensor(part) for part in blobs(rng, args.dtype))
    with average, paddle.no_grad():
        averaged = F.cross_entropy(model(image), label)
    report(losses, averaged=averaged)


if __name__ == "__main__":
    main()
