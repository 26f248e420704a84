"""DeepFM for click prediction: sparse embeddings, Adagrad, the AUC metric and a DataLoader."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import DataLoader, TensorDataset

from common import arguments, report, same_start

FIELDS, PER_FIELD, FACTORS = 6, 50, 8


class DeepFM(nn.Layer):
    def __init__(self):
        super().__init__()
        rows = FIELDS * PER_FIELD
        self.first = nn.Embedding(rows, 1, sparse=True, weight_attr=nn.initializer.TruncatedNormal(std=0.05))
        self.second = nn.Embedding(rows, FACTORS, sparse=True, weight_attr=paddle.ParamAttr(
            name="factors", initializer=nn.initializer.TruncatedNormal(mean=0.0, std=0.1)))
        self.deep = nn.Sequential(
            nn.Linear(FIELDS * FACTORS, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
        self.bias = self.create_parameter(shape=[1], is_bias=True)

    def forward(self, ids):
        linear = self.first(ids).sum(axis=1)
        factors = self.second(ids)
        square_of_sum = paddle.square(factors.sum(axis=1))
        sum_of_square = paddle.square(factors).sum(axis=1)
        pairs = 0.5 * (square_of_sum - sum_of_square).sum(axis=1, keepdim=True)
        deep = self.deep(paddle.flatten(factors, start_axis=1))
        return linear + pairs + deep + self.bias


def clicks(count=1024):
    rng = np.random.RandomState(10)
    ids = rng.zipf(1.5, (count, FIELDS)) % PER_FIELD
    taste = rng.randn(FIELDS, PER_FIELD)
    score = taste[np.arange(FIELDS), ids].sum(1) + 2 * taste[0, ids[:, 1]] * taste[1, ids[:, 0]]
    label = (score + 0.3 * rng.randn(count) > 0).astype("int64")
    return (ids + PER_FIELD * np.arange(FIELDS)).astype("int64"), label[:, None]


def main():
    args = arguments(__doc__)
    model = DeepFM()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Adagrad(learning_rate=0.05, parameters=model.parameters(), initial_accumulator_value=0.01)
    dataset = TensorDataset([paddle.to_tensor(array) for array in clicks()])
    loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)
    auc = paddle.metric.Auc(num_thresholds=1023)
    losses = []
    while len(losses) < args.steps:
        auc.reset()
        for ids, label in loader:
            logits = model(ids)
            loss = F.binary_cross_entropy_with_logits(logits, label.astype(logits.dtype))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
            probability = F.sigmoid(logits).detach()
            auc.update(preds=paddle.concat([1 - probability, probability], axis=1), labels=label)
            if len(losses) == args.steps:
                break
    report(losses, auc=auc.accumulate())


if __name__ == "__main__":
    main()
