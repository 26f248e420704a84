"""Reading lines of text: convolutions, a recurrent layer and the CTC loss, with labels of different lengths."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import DataLoader, Dataset

from common import arguments, report, same_start

LETTERS, HEIGHT, WIDTH = 6, 8, 40


class Lines(Dataset):
    """Pictures of three to five letters; each letter is a fixed pattern of six columns."""

    def __init__(self, dtype, count=128):
        rng = np.random.RandomState(25)
        patterns = rng.rand(LETTERS, HEIGHT, 6) > 0.5
        self.samples = []
        for _ in range(count):
            letters = rng.randint(0, LETTERS, rng.randint(3, 6))
            image = 0.2 * rng.randn(1, HEIGHT, WIDTH)
            for place, letter in enumerate(letters):
                image[0, :, 8 * place:8 * place + 6] += patterns[letter]
            self.samples.append((image.astype(dtype), letters + 1))

    def __getitem__(self, index):
        return self.samples[index]

    def __len__(self):
        return len(self.samples)


def collate(samples):
    images, labels = zip(*samples)
    longest = max(map(len, labels))
    filled = np.zeros((len(labels), longest), "int32")
    for row, label in zip(filled, labels):
        row[:len(label)] = label
    return paddle.to_tensor(np.stack(images)), paddle.to_tensor(filled), paddle.to_tensor([len(label) for label in labels])


class Reader(nn.Layer):
    def __init__(self, width=16):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2D(1, width, 3, padding=1, bias_attr=False), nn.BatchNorm2D(width), nn.PReLU(width), nn.MaxPool2D((2, 2)),
                                  nn.Conv2D(width, width, (4, 3), padding=(0, 1)), nn.Swish())
        self.rnn = nn.SimpleRNN(width, width, direction="bidirect", activation="tanh")
        self.out = nn.Linear(2 * width, LETTERS + 1)

    def forward(self, image):
        columns = self.conv(image).squeeze(2).transpose([0, 2, 1])
        return self.out(self.rnn(columns)[0])


@paddle.no_grad()
def read(logits):
    """The best path without repeats and blanks."""
    texts = []
    for row in logits.argmax(-1).numpy():
        changed = np.concatenate([[True], row[1:] != row[:-1]])
        texts.append([int(letter) for letter in row[changed] if letter != 0])
    return texts


def main():
    args = arguments(__doc__)
    model = Reader()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Lamb(learning_rate=0.01, lamb_weight_decay=0.01, parameters=model.parameters(),
                                      exclude_from_weight_decay_fn=lambda parameter: parameter.ndim == 1)
    loader = DataLoader(Lines(args.dtype), batch_size=8, shuffle=False, collate_fn=collate)
    losses = []
    while len(losses) < args.steps:
        for image, label, label_lengths in loader:
            logits = model(image)
            lengths = paddle.full([logits.shape[0]], logits.shape[1], dtype="int64")
            loss = F.ctc_loss(logits.transpose([1, 0, 2]), label, lengths, label_lengths, blank=0, reduction="mean")
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
            if len(losses) == args.steps:
                break
    letters = sum(map(len, read(logits)))
    report(losses, letters=letters)


if __name__ == "__main__":
    main()
