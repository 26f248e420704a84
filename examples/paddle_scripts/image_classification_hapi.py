"""Image classification with the high-level API: Model, fit, metrics, callbacks, save and load."""

import os
import tempfile

import numpy as np
import paddle
from paddle import nn
from paddle.io import Dataset
from paddle.metric import Accuracy
from paddle.vision.models import LeNet

from common import arguments, report, same_start


class Bars(Dataset):
    """Noisy images with a bright bar; its direction and place give the class, one of ten."""

    def __init__(self, count, dtype, seed):
        super().__init__()
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, 10, count).astype("int64")
        self.images = rng.uniform(0, 0.5, (count, 1, 28, 28)).astype(dtype)
        for image, label in zip(self.images, self.labels):
            first = 2 + 5 * (label % 5)
            if label < 5:
                image[0, first:first + 3, :] += 1
            else:
                image[0, :, first:first + 3] += 1

    def __getitem__(self, index):
        return self.images[index], self.labels[index:index + 1]

    def __len__(self):
        return len(self.labels)


class LossHistory(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []
        self.rates = []

    def on_train_batch_end(self, step, logs=None):
        self.losses.append(float(np.asarray(logs["loss"]).reshape(-1)[0]))
        self.rates.append(self.model._optimizer.get_lr())


def main():
    args = arguments(__doc__)
    network = LeNet(num_classes=10)
    same_start(args.weights, network=network)

    model = paddle.Model(network)
    schedule = paddle.optimizer.lr.LinearWarmup(
        paddle.optimizer.lr.CosineAnnealingDecay(learning_rate=2e-3, T_max=100), warmup_steps=5, start_lr=1e-4, end_lr=2e-3)
    optimizer = paddle.optimizer.Adam(
        learning_rate=schedule, parameters=model.parameters(), weight_decay=paddle.regularizer.L2Decay(1e-4))
    model.prepare(optimizer, nn.CrossEntropyLoss(), metrics=Accuracy(topk=(1, 3)))

    train, test = Bars(512, args.dtype, seed=1), Bars(128, args.dtype, seed=2)
    history = LossHistory()
    batches = len(train) // 16
    model.fit(train, epochs=-(-args.steps // batches), batch_size=16, shuffle=True, drop_last=True, verbose=0,
              num_iters=args.steps, callbacks=[history, paddle.callbacks.LRScheduler(by_step=True)])
    result = model.evaluate(test, batch_size=32, verbose=0)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bars")
        model.save(path)
        again = paddle.Model(LeNet(num_classes=10))
        again.prepare(paddle.optimizer.Adam(parameters=again.parameters()), nn.CrossEntropyLoss())
        again.load(path)
        probabilities = again.predict(test, batch_size=64, stack_outputs=True, verbose=0)[0]
    right = (probabilities.argmax(axis=1) == test.labels).mean()
    assert abs(right - result["acc_top1"]) < 1e-6, "a loaded model predicts something else"
    report(history.losses, loss=np.asarray(result["loss"]).reshape(-1)[0], top1=result["acc_top1"],
           top3=result["acc_top3"], rate=history.rates[-1])


if __name__ == "__main__":
    main()
