"""A variational autoencoder with paddle.distribution: Normal, Independent, kl_divergence and an annealed bound."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distribution import Independent, Normal, kl_divergence

from common import arguments, report, same_start

LATENT, PIXELS = 4, 64


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PIXELS, 48), nn.Tanh())
        self.mean = nn.Linear(48, LATENT)
        self.scale = nn.Linear(48, LATENT)

    def forward(self, image):
        hidden = self.body(image)
        return Normal(self.mean(hidden), F.softplus(self.scale(hidden)) + 1e-3)


class VAE(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = nn.Sequential(("fc1", nn.Linear(LATENT, 48)), ("act", nn.Tanh()), ("fc2", nn.Linear(48, PIXELS)))

    def forward(self, image, noise):
        posterior = self.encoder(image)
        code = posterior.loc + posterior.scale * noise
        likelihood = Independent(Normal(F.sigmoid(self.decoder(code)), paddle.full([PIXELS], 0.3)), 1)
        prior = Normal(paddle.zeros_like(posterior.loc), paddle.ones_like(posterior.scale))
        return likelihood.log_prob(image), kl_divergence(posterior, prior).sum(axis=-1)


def images(rng, count):
    """Binary 8 by 8 images with one full row and one full column."""
    data = np.zeros((count, 8, 8))
    data[np.arange(count), rng.randint(0, 8, count)] = 1
    data[np.arange(count), :, rng.randint(0, 8, count)] = 1
    return data.reshape(count, PIXELS)


def main():
    args = arguments(__doc__)
    model = VAE()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Adamax(learning_rate=5e-3, beta1=0.875, parameters=model.parameters())
    rng = np.random.RandomState(6)
    losses, divergences = [], []
    for step in range(args.steps):
        image = paddle.to_tensor(images(rng, 32), dtype=args.dtype)
        noise = paddle.to_tensor(rng.standard_normal((32, LATENT)), dtype=args.dtype)
        log_likelihood, divergence = model(image, noise)
        weight = min(1.0, step / 50)
        loss = (weight * divergence - log_likelihood).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
        divergences.append(float(divergence.mean()))
    entropy = model.encoder(paddle.to_tensor(images(rng, 8), dtype=args.dtype)).entropy().mean()
    report(losses, divergence=divergences[-1], entropy=entropy)


if __name__ == "__main__":
    main()
