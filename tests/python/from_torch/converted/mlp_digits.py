"""A multilayer perceptron that reads handwritten digits."""
import argparse

import numpy as np
import oar
import oar.nn as nn
import oar.optimizer as optim
from oar.io import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="digits.npz")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--init")
parser.add_argument("--save-init")
args = parser.parse_args()

device = oar.device("cuda" if oar.cuda.is_available() else "cpu")
oar.seed(1)


class MLP(nn.Layer):
    def __init__(self, inputs=64, hidden=128, classes=10):
        super(MLP, self).__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            oar.compat.nn.Linear(inputs, hidden),  # the first layer
            nn.ReLU(),
            oar.compat.nn.Linear(hidden, hidden),
            nn.ReLU(),
            oar.compat.nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.layers(x)


stored = np.load(args.data)
images = oar.from_numpy(stored["images"].astype("float32") / 16.0)
labels = oar.to_tensor(stored["labels"], dtype=oar.int64)
loader = DataLoader(TensorDataset([images, labels]), batch_size=64, shuffle=True, drop_last=True)

model = MLP().to(device)
if args.init:
    model.load_state_dict(oar.interop.torch_state(oar.load(args.init), model))
if args.save_init:
    oar.save(model.state_dict(), args.save_init)

criterion = nn.CrossEntropyLoss(axis=1)
optimizer = optim.Momentum(parameters=model.parameters(), learning_rate=args.lr, momentum=0.9, weight_decay=1e-4)

step = 0
while step < args.steps:
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.clear_grad()
        outputs = model(x)
        loss = criterion(outputs, y)
        loss.backward()
        optimizer.step()
        _, predicted = oar.compat.max(outputs.data, 1)
        correct = (predicted == y).sum().item()
        print(f"step {step} loss {loss.item():.8f} accuracy {correct / y.size(0):.3f}")
        step += 1
        if step == args.steps:
            break

model.eval()
with oar.no_grad():
    accuracy = (model(images.to(device)).argmax(dim=1).cpu() == labels).float().mean()
print("accuracy of all", round(accuracy.item(), 3))
