"""A variational autoencoder of small black and white pictures."""
from __future__ import print_function

import argparse

import numpy as np
import oar
from oar import nn, optimizer as optim
from oar.nn import functional as F

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--steps", type=int, default=60, metavar="N")
parser.add_argument("--init")
parser.add_argument("--save-init")
args = parser.parse_args()
oar.seed(1)
device = oar.device("cuda" if oar.cuda.is_available() else "cpu")


class VAE(nn.Layer):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = oar.compat.nn.Linear(64, 40)
        self.fc21 = oar.compat.nn.Linear(40, 4)
        self.fc22 = oar.compat.nn.Linear(40, 4)
        self.fc3 = oar.compat.nn.Linear(4, 40)
        self.fc4 = oar.compat.nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = oar.exp(0.5 * logvar)
        eps = oar.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return oar.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * oar.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE().to(device)
if args.init:
    model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model))
if args.save_init:
    oar.save(model.state_dict(), args.save_init)
optimizer = optim.Adam(parameters=model.parameters(), learning_rate=1e-3)

rng = np.random.default_rng(4)
prototypes = rng.random((3, 8, 8)) > 0.5
model.train()
for batch in range(args.steps):
    noise = rng.random((32, 8, 8)) < 0.05
    data = oar.from_numpy((prototypes[rng.integers(0, 3, 32)] ^ noise).astype(np.float32)).to(device)
    optimizer.clear_grad()
    recon_batch, mu, logvar = model(data)
    loss = loss_function(recon_batch, data, mu, logvar)
    loss.backward()
    optimizer.step()
    print("batch {} loss: {:.8f}".format(batch, loss.item() / len(data)))

with oar.no_grad():
    sample = model.decode(oar.randn(4, 4).to(device)).cpu()
    print("samples", list(sample.view(4, 1, 8, 8).size()), bool(((sample >= 0) & (sample <= 1)).all()))
