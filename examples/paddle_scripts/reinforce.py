"""Policy gradients on the cart and pole: Categorical, discounted returns, a value baseline, entropy."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distribution import Categorical

from common import arguments, report, same_start


class CartPole:
    """The classic equations of motion, with a step of 0.02 seconds."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        x, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        angular = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        linear = push - 0.05 * angular * cos / 1.1
        self.state = np.array([x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turn, turn + 0.02 * angular])
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21


class ActorCritic(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.policy = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)

    def forward(self, state):
        hidden = self.body(state)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def episode(env, model, rng, dtype, longest=40):
    """Play once. Actions are drawn with NumPy's numbers (Gumbel's trick), so a seed decides them."""
    states, actions, state = [], [], env.reset()
    for _ in range(longest):
        states.append(state)
        with paddle.no_grad():
            logits, _ = model(paddle.to_tensor(state.astype(dtype)).unsqueeze(0))
        actions.append(int(np.argmax(logits.numpy()[0] + rng.gumbel(size=2))))
        state, done = env.step(actions[-1])
        if done:
            break
    returns = np.zeros(len(actions))
    following = 0.0
    for t in reversed(range(len(actions))):
        following = returns[t] = 1.0 + 0.98 * following
    return np.array(states), np.array(actions), returns


def main():
    args = arguments(__doc__)
    model = ActorCritic()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Adam(5e-3, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(5.0))
    rng = np.random.RandomState(14)
    env = CartPole(rng)
    losses, lengths = [], []
    for _ in range(args.steps):
        states, actions, returns = episode(env, model, rng, args.dtype)
        logits, values = model(paddle.to_tensor(states.astype(args.dtype)))
        returns = paddle.to_tensor(returns.astype(args.dtype))
        policy = Categorical(logits=logits)
        log_prob = paddle.take_along_axis(F.log_softmax(logits), paddle.to_tensor(actions).unsqueeze(1), axis=1).squeeze(1)
        advantage = (returns - values).detach()
        loss = -(log_prob * advantage).mean() + 0.5 * F.smooth_l1_loss(values, returns) - 0.01 * policy.entropy().mean()
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        lengths.append(len(actions))
    report(losses, length=np.mean(lengths))


if __name__ == "__main__":
    main()
