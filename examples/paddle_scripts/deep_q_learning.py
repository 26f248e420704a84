"""Q-learning in a grid world: replay memory, double DQN, a target network that follows slowly."""

import collections
import random

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

SIZE, MOVES = 4, [(0, 1), (0, -1), (1, 0), (-1, 0)]
Memory = collections.namedtuple("Memory", "state action reward following done")


def make_network():
    return nn.Sequential(nn.Linear(SIZE * SIZE, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, len(MOVES)))


class Grid:
    """Reach the far corner; the cell before it is a trap."""

    def __init__(self):
        self.place = (0, 0)

    def observe(self):
        return np.eye(SIZE * SIZE)[self.place[0] * SIZE + self.place[1]]

    def step(self, action):
        self.place = tuple(int(np.clip(p + m, 0, SIZE - 1)) for p, m in zip(self.place, MOVES[action]))
        reward = {(SIZE - 1, SIZE - 1): 1.0, (SIZE - 2, SIZE - 1): -1.0}.get(self.place, -0.02)
        done = abs(reward) == 1.0
        observed = self.observe()
        if done:
            self.place = (0, 0)
        return observed, reward, done


def learn(online, target, optimizer, batch, dtype):
    state, action, reward, following, done = (np.array(part) for part in zip(*batch))
    state, following = paddle.to_tensor(state.astype(dtype)), paddle.to_tensor(following.astype(dtype))
    reward, done = paddle.to_tensor(reward.astype(dtype)), paddle.to_tensor(done.astype(dtype))
    index = paddle.stack([paddle.arange(len(batch)), paddle.to_tensor(action)], axis=1)
    chosen = paddle.gather_nd(online(state), index)
    with paddle.no_grad():
        best = online(following).argmax(axis=1, keepdim=True)
        future = paddle.take_along_axis(target(following), best, axis=1).squeeze(1)
        goal = reward + 0.95 * future * (1 - done)
    loss = F.smooth_l1_loss(chosen, goal, delta=0.5)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss.item()


def follow(target, online, rate=0.05):
    state = online.state_dict()
    target.set_state_dict({name: (1 - rate) * value + rate * state[name] for name, value in target.state_dict().items()})


def main():
    args = arguments(__doc__)
    random.seed(15)
    online, target = make_network(), make_network()
    target.set_state_dict(online.state_dict())
    same_start(args.weights, online=online, target=target)
    target.eval()
    optimizer = paddle.optimizer.NAdam(learning_rate=3e-3, parameters=online.parameters())
    grid, memory = Grid(), collections.deque(maxlen=500)
    losses = []
    while len(losses) < args.steps:
        state = grid.observe()
        if random.random() < 0.3:
            action = random.randrange(len(MOVES))
        else:
            with paddle.no_grad():
                action = int(online(paddle.to_tensor(state.astype(args.dtype)).unsqueeze(0)).argmax())
        following, reward, done = grid.step(action)
        memory.append(Memory(state, action, reward, following, float(done)))
        if len(memory) >= 32:
            losses.append(learn(online, target, optimizer, random.sample(memory, 16), args.dtype))
            follow(target, online)
    report(losses)


if __name__ == "__main__":
    main()
