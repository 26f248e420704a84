"""Knowledge distillation: a teacher is trained, then a student learns its softened answers and its features."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

INPUTS, CLASSES, TEMPERATURE = 10, 4, 3.0


class Network(nn.Layer):
    def __init__(self, width, depth):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(INPUTS if n == 0 else width, width), nn.ELU()) for n in range(depth)])
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        features = self.body(x)
        return self.head(features), features


def data(rng, dtype, count=64):
    x = rng.randn(count, INPUTS)
    label = (x[:, 0] * x[:, 1] > 0).astype("int64") + 2 * (x[:, 2] + x[:, 3] ** 2 > 1)
    return paddle.to_tensor(x.astype(dtype)), paddle.to_tensor(label)


def train_teacher(teacher, steps, rng, dtype):
    optimizer = paddle.optimizer.Adam(3e-3, parameters=teacher.parameters())
    losses = []
    for _ in range(steps):
        x, label = data(rng, dtype)
        loss = nn.functional.softmax_with_cross_entropy(teacher(x)[0], label.unsqueeze(-1)).mean()
        loss.backward()
        optimizer.minimize(loss)
        teacher.clear_gradients()
        losses.append(loss.item())
    return losses


def train_student(student, adapter, teacher, steps, rng, dtype):
    parameters = student.parameters() + adapter.parameters()
    optimizer = paddle.optimizer.RAdam(learning_rate=5e-3, parameters=parameters)
    divergence = nn.KLDivLoss(reduction="batchmean")
    teacher.eval()
    losses = []
    for _ in range(steps):
        x, label = data(rng, dtype)
        with paddle.no_grad():
            wanted, wanted_features = teacher(x)
        logits, features = student(x)
        soft = divergence(F.log_softmax(logits / TEMPERATURE), F.softmax(wanted / TEMPERATURE)) * TEMPERATURE**2
        hint = 1 - F.cosine_similarity(adapter(features), wanted_features, axis=1).mean()
        loss = 0.3 * F.cross_entropy(logits, label) + 0.7 * soft + 0.1 * hint
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses


def main():
    args = arguments(__doc__)
    teacher, student, adapter = Network(48, 3), Network(12, 1), nn.Linear(12, 48)
    same_start(args.weights, teacher=teacher, student=student, adapter=adapter)
    rng = np.random.RandomState(27)
    losses = train_teacher(teacher, args.steps // 2, rng, args.dtype)
    losses += train_student(student, adapter, teacher, args.steps - args.steps // 2, rng, args.dtype)
    precision, recall = paddle.metric.Precision(), paddle.metric.Recall()
    x, label = data(rng, args.dtype)
    odd = F.softmax(student(x)[0]).numpy()[:, 1::2].sum(1)
    precision.update(odd, (label % 2).numpy())
    recall.update(odd, (label % 2).numpy())
    report(losses, precision=precision.accumulate(), recall=recall.accumulate())


if __name__ == "__main__":
    main()
