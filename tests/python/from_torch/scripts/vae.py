"""A variational autoencoder of small black and white pictures."""
from __future__ import print_function

import argparse

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--steps", type=int, default=60, metavar="N")
parser.add_argument("--init")
parser.add_argument("--save-init")
args = parser.parse_args()
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = torch.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE().to(device)
if args.init:
    model.load_state_dict(torch.load(args.init))
if args.save_init:
    torch.save(model.state_dict(), args.save_init)
optimizer = optim.Adam(model.parameters(), lr=1e-3)

rng = np.random.default_rng(4)
prototypes = rng.random((3, 8, 8)) > 0.5
model.train()
for batch in range(args.steps):
    noise = rng.random((32, 8, 8)) < 0.05
    data = torch.from_numpy((prototypes[rng.integers(0, 3, 32)] ^ noise).astype(np.float32)).to(device)
    optimizer.zero_grad()
    recon_batch, mu, logvar = model(data)
    loss = loss_function(recon_batch, data, mu, logvar)
    loss.backward()
    optimizer.step()
    print("batch {} loss: {:.8f}".format(batch, loss.item() / len(data)))

with torch.no_grad():
    sample = model.decode(torch.randn(4, 4).to(device)).cpu()
    print("samples", list(sample.view(4, 1, 8, 8).size()), bool(((sample >= 0) & (sample <= 1)).all()))
