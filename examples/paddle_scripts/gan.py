"""A DCGAN: two networks, two optimisers, transposed convolutions and batch norms."""

import numpy as np
import paddle
from paddle import nn

from common import arguments, report, same_start

NOISE, WIDTH, BATCH = 16, 8, 16


def normal(std=0.05):
    return paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, std))


def up(inputs, outputs):
    return [nn.Conv2DTranspose(inputs, outputs, 4, 2, 1, weight_attr=normal(), bias_attr=False),
            nn.BatchNorm2D(outputs, weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(1.0, 0.02))), nn.ReLU()]


def down(inputs, outputs):
    return [nn.Conv2D(inputs, outputs, 4, 2, 1, weight_attr=normal(), bias_attr=False),
            nn.BatchNorm2D(outputs), nn.LeakyReLU(0.25)]


class Generator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(NOISE, 4 * WIDTH * 4 * 4)
        self.body = nn.Sequential(*up(4 * WIDTH, 2 * WIDTH), nn.Conv2DTranspose(2 * WIDTH, 1, 4, 2, 1, weight_attr=normal()),
                                  nn.Tanh())

    def forward(self, noise):
        return self.body(self.start(noise).reshape([-1, 4 * WIDTH, 4, 4]))


class Discriminator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(1, WIDTH, 4, 2, 1, weight_attr=normal()), nn.LeakyReLU(0.25),
                                  *down(WIDTH, 2 * WIDTH), nn.Flatten(), nn.Linear(2 * WIDTH * 16, 1))

    def forward(self, image):
        return self.body(image).squeeze(-1)


def discs(rng, count):
    """Images of a bright disc at a random place."""
    y, x = np.mgrid[0:16, 0:16]
    centres, sizes = rng.uniform(5, 11, (count, 2, 1, 1)), rng.uniform(2, 5, (count, 1, 1))
    inside = (y - centres[:, 0]) ** 2 + (x - centres[:, 1]) ** 2 < sizes**2
    return np.where(inside, 0.9, -0.9)[:, None]


def main():
    args = arguments(__doc__)
    generator, discriminator = Generator(), Discriminator()
    same_start(args.weights, generator=generator, discriminator=discriminator)
    of_generator = paddle.optimizer.Adam(1e-3, beta1=0.5, parameters=generator.parameters())
    of_discriminator = paddle.optimizer.Adam(5e-4, beta1=0.5, parameters=discriminator.parameters())
    criterion = nn.BCEWithLogitsLoss()
    rng = np.random.RandomState(4)
    ones, zeros = paddle.full([BATCH], 0.9), paddle.zeros([BATCH])

    losses = []
    for _ in range(args.steps):
        real = paddle.to_tensor(discs(rng, BATCH).astype(args.dtype))
        fake = generator(paddle.to_tensor(rng.randn(BATCH, NOISE).astype(args.dtype)))

        of_discriminator.clear_grad()
        loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
        loss_d.backward()
        of_discriminator.step()

        of_generator.clear_grad()
        loss_g = criterion(discriminator(fake), paddle.ones([BATCH]))
        loss_g.backward()
        of_generator.step()
        losses += [loss_d.item(), loss_g.item()]

    generator.eval()
    with paddle.no_grad():
        image = generator(paddle.to_tensor(rng.randn(4, NOISE).astype(args.dtype)))
    report(losses, brightness=image.mean())


if __name__ == "__main__":
    main()
