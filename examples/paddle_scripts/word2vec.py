"""Skip-gram with negative sampling: sparse gradients, plain SGD, gathered rows and nearest neighbours."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

WORDS, WIDTH, NEGATIVES = 60, 16, 5


class SkipGram(nn.Layer):
    def __init__(self):
        super().__init__()
        self.centre = nn.Embedding(WORDS, WIDTH, sparse=True, weight_attr=nn.initializer.Uniform(-0.3, 0.3))
        self.context = nn.Embedding(WORDS, WIDTH, sparse=True, weight_attr=nn.initializer.Uniform(-0.3, 0.3))

    def forward(self, words, positives, negatives):
        vectors = self.centre(words)
        near = (vectors * self.context(positives)).sum(-1)
        far = paddle.bmm(self.context(negatives), vectors.unsqueeze(2)).squeeze(2)
        return -(F.log_sigmoid(near) + F.log_sigmoid(-far).sum(-1)).mean()

    @paddle.no_grad()
    def neighbours(self, word, count=3):
        table = F.normalize(self.centre.weight, axis=-1)
        similarity = table @ table[word]
        return paddle.topk(similarity, count + 1)[1][1:]


def corpus(rng, length=5000):
    """A walk over the words that mostly stays within a topic of ten words."""
    topic, text = 0, []
    for _ in range(length):
        topic = rng.randint(6) if rng.rand() < 0.05 else topic
        text.append(10 * topic + rng.randint(10))
    return np.array(text)


def main():
    args = arguments(__doc__)
    model = SkipGram()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.SGD(
        learning_rate=paddle.optimizer.lr.LambdaDecay(1.0, lr_lambda=lambda step: 0.98**step), parameters=model.parameters())
    rng = np.random.RandomState(11)
    text = corpus(rng)
    frequency = np.bincount(text, minlength=WORDS) ** 0.75
    losses = []
    for _ in range(args.steps):
        places = rng.randint(2, len(text) - 2, 64)
        offsets = rng.choice([-2, -1, 1, 2], 64)
        negatives = rng.choice(WORDS, (64, NEGATIVES), p=frequency / frequency.sum())
        loss = model(paddle.to_tensor(text[places]), paddle.to_tensor(text[places + offsets]), paddle.to_tensor(negatives))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        optimizer._learning_rate.step()
        losses.append(float(loss))
    report(losses, size=paddle.linalg.norm(model.centre.weight), neighbours=len(model.neighbours(5)))


if __name__ == "__main__":
    main()
