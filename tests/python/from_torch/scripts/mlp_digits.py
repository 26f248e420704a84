"""A multilayer perceptron that reads handwritten digits."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="digits.npz")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--init")
parser.add_argument("--save-init")
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(1)


class MLP(nn.Module):
    def __init__(self, inputs=64, hidden=128, classes=10):
        super(MLP, self).__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(inputs, hidden),  # the first layer
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.layers(x)


stored = np.load(args.data)
images = torch.from_numpy(stored["images"].astype("float32") / 16.0)
labels = torch.tensor(stored["labels"], dtype=torch.long)
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, drop_last=True, pin_memory=False)

model = MLP().to(device)
if args.init:
    model.load_state_dict(torch.load(args.init, map_location=device))
if args.save_init:
    torch.save(model.state_dict(), args.save_init)

criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)

step = 0
while step < args.steps:
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        outputs = model(x)
        loss = criterion(outputs, y)
        loss.backward()
        optimizer.step()
        _, predicted = torch.max(outputs.data, 1)
        correct = (predicted == y).sum().item()
        print(f"step {step} loss {loss.item():.8f} accuracy {correct / y.size(0):.3f}")
        step += 1
        if step == args.steps:
            break

model.eval()
with torch.no_grad():
    accuracy = (model(images.to(device)).argmax(dim=1).cpu() == labels).float().mean()
print("accuracy of all", round(accuracy.item(), 3))
