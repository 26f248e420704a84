"""An LSTM that tells whether a sentence is about cats or dogs."""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F

WORDS = {"<pad>": 0, "the": 1, "cat": 2, "dog": 3, "sat": 4, "barked": 5, "purred": 6, "ran": 7, "mat": 8, "old": 9, "and": 10}


def sentence(rng):
    label = rng.randrange(2)
    subject = ("cat", "dog")[label]
    verb = rng.choice((["purred", "sat"], ["barked", "ran"])[label])
    words = ["the", *rng.choice([[], ["old"]]), subject, verb, *rng.choice([[], ["and", "ran"], ["and", "sat"]])]
    return [WORDS[word] for word in words], label


def collate(samples, length=8):
    tokens = torch.zeros(len(samples), length, dtype=torch.int64)
    for row, (words, _) in enumerate(samples):
        tokens[row, : len(words)] = torch.tensor(words)
    return tokens, torch.tensor([float(label) for _, label in samples])


class Classifier(nn.Module):
    def __init__(self, vocabulary, width=24, hidden=32, layers=2, dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.rnn = nn.LSTM(width, hidden, num_layers=layers, bidirectional=True, batch_first=True, bias=True)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(2 * hidden, 1)

    def forward(self, tokens):
        embedded = self.drop(self.embedding(tokens))
        output, (hidden, cell) = self.rnn(embedded)
        last = torch.cat((hidden[-2], hidden[-1]), dim=1)
        return self.head(self.drop(last)).squeeze(-1)


class TimeMajor(nn.Module):
    """The same task, a layer of PyTorch's default layout."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8)
        self.rnn = nn.GRU(8, 8)

    def forward(self, tokens):
        output, _ = self.rnn(self.embedding(tokens.transpose(0, 1)))
        return output.permute(1, 0, 2).contiguous().max(dim=1)[0].mean(dim=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--init", default=None)
    parser.add_argument("--save-init", default=None)
    options = parser.parse_args()
    rng = random.Random(5)
    torch.manual_seed(5)
    models = nn.ModuleDict({"main": Classifier(len(WORDS)), "small": TimeMajor(len(WORDS))})
    if options.init:
        models.load_state_dict(torch.load(options.init, weights_only=True))
    if options.save_init:
        torch.save(models.state_dict(), options.save_init)
    optimizer = torch.optim.AdamW(models.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
    for step in range(options.steps):
        tokens, labels = collate([sentence(rng) for _ in range(32)])
        logits = models["main"](tokens) + models["small"](tokens)
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(models.parameters(), max_norm=1.0)
        optimizer.step()
        right = ((torch.sigmoid(logits) > 0.5).float() == labels).float().mean().item()
        print(f"{step:4d} loss={loss.item():.8f} right={right:.2f}")


if __name__ == "__main__":
    main()
