"""A Wasserstein GAN on points in the plane: a gradient penalty (second derivatives) and spectral norms."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

BATCH, CRITIC_STEPS = 32, 3


class Critic(nn.Layer):
    def __init__(self, width=32):
        super().__init__()
        self.fc1 = nn.Linear(2, width)
        self.fc2 = nn.utils.spectral_norm(nn.Linear(width, width), n_power_iterations=2)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, points):
        hidden = F.silu(self.fc1(points))
        return self.fc3(F.silu(self.fc2(hidden))).sum()


def gradient_penalty(critic, real, fake, mix):
    points = (mix * real + (1 - mix) * fake).detach()
    points.stop_gradient = False
    (gradient,) = paddle.grad(critic(points), [points], create_graph=True, retain_graph=True)
    return ((gradient.norm(p=2, axis=1) - 1) ** 2).mean()


def ring(rng, count):
    angle = rng.randint(0, 8, count) * np.pi / 4
    return np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * rng.randn(count, 2)


def main():
    args = arguments(__doc__)
    generator = nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 2))
    critic = Critic()
    same_start(args.weights, generator=generator, critic=critic)
    of_generator = paddle.optimizer.RMSProp(1e-3, parameters=generator.parameters())
    of_critic = paddle.optimizer.RMSProp(1e-3, rho=0.9, centered=True, parameters=critic.parameters())
    rng = np.random.RandomState(5)

    def tensor(array):
        return paddle.to_tensor(array.astype(args.dtype))

    losses = []
    for _ in range(args.steps):
        for _ in range(CRITIC_STEPS):
            real = tensor(ring(rng, BATCH))
            with paddle.no_grad():
                fake = generator(tensor(rng.randn(BATCH, 4)))
            distance = (critic(fake) - critic(real)) / BATCH
            loss = distance + 10.0 * gradient_penalty(critic, real, fake, tensor(rng.rand(BATCH, 1)))
            loss.backward()
            of_critic.step()
            of_critic.clear_grad()
        losses.append(loss.item())

        for parameter in critic.parameters():
            parameter.stop_gradient = True
        loss = -critic(generator(tensor(rng.randn(BATCH, 4)))) / BATCH
        loss.backward()
        of_generator.step()
        of_generator.clear_grad()
        for parameter in critic.parameters():
            parameter.stop_gradient = False
    report(losses)


if __name__ == "__main__":
    main()
