"""Ratings of films as products of vectors of people and films."""
import argparse

import numpy as np
import oar
from oar import io as data
import oar.nn as nn


class RatingsDataset(data.Dataset):
    def __init__(self, people, films, ratings):
        self.people, self.films, self.ratings = people, films, ratings

    def __len__(self):
        return self.ratings.size(0)

    def __getitem__(self, idx):
        return self.people[idx], self.films[idx], self.ratings[idx]


class MatrixFactorization(nn.Layer):
    def __init__(self, n_users, n_items, n_factors=6):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors, sparse=False)
        self.item_factors = nn.Embedding(n_items, n_factors, sparse=False)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.mean = nn.Parameter(oar.zeros(1), requires_grad=False)
        nn.init.normal_(self.user_factors.weight, std=0.1)
        nn.init.normal_(self.item_factors.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        self.item_bias.weight.detach().zero_()

    def forward(self, user, item):
        pred = self.user_bias(user) + self.item_bias(item)
        pred += (self.user_factors(user) * self.item_factors(item)).sum(dim=1, keepdim=True)
        return pred.squeeze() + self.mean


def rmse(model, loader):
    model.eval()
    squared, count = 0.0, 0
    for user, item, rating in loader:
        with oar.no_grad():
            squared += nn.functional.mse_loss(model(user, item), rating, reduction="sum").item()
        count += len(rating)
    return (squared / count) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()
    rng = np.random.default_rng(6)
    n_users, n_items, n = 30, 40, 600
    people, films = rng.integers(0, n_users, n), rng.integers(0, n_items, n)
    taste, style = rng.normal(size=(n_users, 2)), rng.normal(size=(n_items, 2))
    ratings = 3 + (taste[people] * style[films]).sum(1) + 0.1 * rng.normal(size=n)
    dataset = RatingsDataset(oar.to_tensor(people), oar.to_tensor(films), oar.to_tensor(ratings, dtype=oar.float32))
    train_set = data.Subset(dataset, range(0, 500))
    test_set = data.Subset(dataset, range(500, n))
    train_loader = data.DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = data.DataLoader(test_set, batch_size=100)

    oar.seed(0)
    model = MatrixFactorization(n_users, n_items)
    model.mean.detach().fill_(float(ratings[:500].mean()))
    if args.init:
        model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model), strict=True)
    if args.save_init:
        oar.save(model.state_dict(), args.save_init)
    biases = [model.user_bias.weight, model.item_bias.weight]
    factors = [model.user_factors.weight, model.item_factors.weight]
    optimizer = oar.optimizer.Adagrad(
        parameters=[{"params": factors, "weight_decay": 1e-4}, {"params": biases}],  # biases are not shrunk
        learning_rate=0.2, epsilon=1e-10,
    )
    loss_fn = nn.MSELoss()
    scheduler = oar.optimizer.lr.StepDecay(learning_rate=optimizer.get_lr(), step_size=8, gamma=0.5)
    optimizer.set_lr_scheduler(scheduler)
    step = 0
    while step < args.steps:
        model.train()
        for user, item, rating in train_loader:
            optimizer.clear_grad()
            loss = loss_fn(model(user, item), rating)
            loss.backward()
            optimizer.step()
            scheduler.step()
            print("step", step, "loss", f"{loss.item():.8f}", "lr", [scheduler.last_lr])
            step += 1
            if step >= args.steps:
                break
    print("rmse", round(rmse(model, test_loader), 4))


if __name__ == "__main__":
    main()
