"""REINFORCE on a corridor: the agent learns to walk to the right."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Corridor:
    """The state is a place and how much time is left; the reward is one at the end."""

    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.place, self.time = 0, 0
        return self.state()

    def state(self):
        s = np.zeros(self.length + 1, dtype=np.float32)
        s[self.place] = 1.0
        s[-1] = self.time / 20
        return s

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.time += 1
        done = self.place == self.length - 1 or self.time >= 20
        reward = 1.0 if self.place == self.length - 1 else -0.05
        return self.state(), reward, done


class Policy(nn.Module):
    def __init__(self, inputs, hidden=16, actions=2):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(inputs, hidden)
        self.affine2 = nn.Linear(hidden, actions)
        self.value = nn.Linear(hidden, 1)
        self.saved_log_probs = []
        self.values = []

    def forward(self, x):
        x = torch.tanh(self.affine1(x))
        return F.softmax(self.affine2(x), dim=-1), self.value(x)

    def select_action(self, state):
        state = torch.from_numpy(state).float().unsqueeze(0)
        probs, value = self(state)
        action = torch.multinomial(probs, 1)
        self.saved_log_probs.append(torch.log(probs.gather(1, action)).squeeze())
        self.values.append(value.squeeze())
        return action.item()


def discounted(rewards, gamma):
    returns, R = [], 0
    for r in reversed(rewards):
        R = r + gamma * R
        returns.insert(0, R)
    return torch.tensor(returns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()
    torch.manual_seed(0)
    env = Corridor()
    policy = Policy(env.length + 1)
    if args.init:
        policy.load_state_dict(torch.load(args.init))
    if args.save_init:
        torch.save(policy.state_dict(), args.save_init)
    optimizer = optim.Adam(policy.parameters(), lr=0.01, amsgrad=True)
    for episode in range(args.steps):
        state, rewards, done = env.reset(), [], False
        while not done:
            state, reward, done = env.step(policy.select_action(state))
            rewards.append(reward)
        returns = discounted(rewards, args.gamma)
        values = torch.stack(policy.values)
        advantage = returns - values.detach()
        policy_loss = -(torch.stack(policy.saved_log_probs) * advantage).sum()
        value_loss = F.smooth_l1_loss(values, returns, reduction="sum")
        loss = policy_loss + 0.5 * value_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del policy.saved_log_probs[:], policy.values[:]
        print(f"episode {episode} length {len(rewards)} loss {loss.item():.8f}")


if __name__ == "__main__":
    main()
