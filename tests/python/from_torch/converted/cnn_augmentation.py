"""A small convolutional network whose pictures are shifted and mirrored while it learns."""
import argparse

import numpy as np
import oar
import oar.nn.functional as F
from oar import nn, optimizer as optim
from oar.io import Dataset, DataLoader


class Shapes(Dataset):
    """Pictures of bars that lie or stand, with noise."""

    def __init__(self, count, train=True):
        rng = np.random.default_rng(0 if train else 1)
        self.labels = rng.integers(0, 4, count)
        pictures = rng.normal(0, 0.3, (count, 3, 16, 16)).astype(np.float32)
        for picture, label in zip(pictures, self.labels):
            at = 4 + 2 * (label % 2)
            if label < 2:
                picture[:, at : at + 4, :] += 1.0
            else:
                picture[:, :, at : at + 4] += 1.0
        self.pictures = oar.from_numpy(pictures)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.train:
            picture = augment(picture)
        return picture, int(self.labels[index])


def augment(picture, margin=2):
    if oar.rand(1).item() < 0.5:
        picture = oar.flip(picture, dims=[2])
    padded = oar.compat.nn.functional.pad(picture, (margin, margin, margin, margin))
    top, left = oar.randint(0, 2 * margin + 1, (2,)).tolist()
    return padded[:, top : top + 16, left : left + 16]


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2D(3, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2D(16, 32, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2D(32, momentum=0.8)
        self.pool = nn.MaxPool2D(2, 2)
        self.fc1 = oar.compat.nn.Linear(32 * 4 * 4, 64)
        self.fc2 = oar.compat.nn.Linear(64, 4)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.bn(self.conv2(x))))
        x = x.view(x.size(0), -1)
        x = F.dropout(F.relu(self.fc1(x)), p=0.0, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, device, loader, optimizer, steps):
    model.train()
    done = 0
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        print("Train step: {} Loss: {:.8f}".format(done, loss.item()))
        done += 1
        if done >= steps:
            break


def test(model, device, loader):
    model.eval()
    total, correct = 0.0, 0
    with oar.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            total += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)  # the most likely class
            correct += pred.eq(target.view_as(pred)).sum().item()
    print(f"test: average {total / len(loader.dataset):.4f}, {correct} of {len(loader.dataset)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    args = parser.parse_args()

    oar.seed(7)
    use_cuda = oar.cuda.is_available()
    device = oar.device("cuda" if use_cuda else "cpu")
    model = Net().to(device)
    if args.init is not None:
        model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model))
    if args.save_init is not None:
        oar.save(model.state_dict(), args.save_init)
    train_loader = DataLoader(Shapes(480), batch_size=16, shuffle=True, num_workers=0)
    test_loader = DataLoader(Shapes(64, train=False), batch_size=32)
    optimizer = optim.Adadelta(parameters=model.parameters(), learning_rate=0.5, rho=0.9, epsilon=1e-6)
    train(model, device, train_loader, optimizer, args.steps)
    test(model, device, test_loader)


if __name__ == "__main__":
    main()
