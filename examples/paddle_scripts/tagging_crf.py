"""Tagging with a BiLSTM and a conditional random field: the forward algorithm, masks, Viterbi decoding."""

import numpy as np
import paddle
from paddle import nn
from paddle.text import ViterbiDecoder

from common import arguments, report, same_start

WORDS, TAGS, WIDTH, LONGEST = 30, 5, 16, 8


class CRF(nn.Layer):
    def __init__(self):
        super().__init__()
        self.transitions = self.create_parameter([TAGS, TAGS], default_initializer=nn.initializer.Uniform(-0.1, 0.1))

    def score(self, emissions, tags, mask):
        """The score of a given path."""
        flat = paddle.nn.functional.one_hot(tags, TAGS).astype(emissions.dtype)
        of_words = ((emissions * flat).sum(-1) * mask).sum(1)
        moves = paddle.gather_nd(self.transitions, paddle.stack([tags[:, :-1], tags[:, 1:]], axis=-1))
        return of_words + (moves * mask[:, 1:]).sum(1)

    def normaliser(self, emissions, mask):
        """The logarithm of the sum over all paths."""
        alpha = emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            scores = alpha.unsqueeze(2) + self.transitions.unsqueeze(0) + emissions[:, t].unsqueeze(1)
            following = paddle.logsumexp(scores, axis=1)
            now = mask[:, t:t + 1]
            alpha = now * following + (1 - now) * alpha
        return paddle.logsumexp(alpha, axis=1)

    def forward(self, emissions, tags, mask):
        return (self.normaliser(emissions, mask) - self.score(emissions, tags, mask)).mean()


class Tagger(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, direction="bidirectional")
        self.out = nn.Linear(2 * WIDTH, TAGS)
        self.crf = CRF()

    def forward(self, words, lengths):
        states, _ = self.rnn(self.words(words), sequence_length=lengths)
        return self.out(states)


def sentences(rng, count=12):
    """The tag of a word depends on the word and on the tag before it."""
    lengths = rng.randint(3, LONGEST + 1, count)
    lengths[0] = LONGEST
    words = rng.randint(1, WORDS, (count, LONGEST))
    tags = np.zeros_like(words)
    for t in range(LONGEST):
        tags[:, t] = (words[:, t] + (tags[:, t - 1] if t else 0)) % TAGS
    inside = np.arange(LONGEST) < lengths[:, None]
    return words * inside, tags * inside, lengths, inside


def main():
    args = arguments(__doc__)
    model = Tagger()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Adadelta(learning_rate=1.0, rho=0.9, parameters=model.parameters())
    rng = np.random.RandomState(24)
    losses = []
    for _ in range(args.steps):
        words, tags, lengths, inside = (paddle.to_tensor(part) for part in sentences(rng))
        loss = model.crf(model(words, lengths), tags, inside.astype(args.dtype))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    decoder = ViterbiDecoder(model.crf.transitions, include_bos_eos_tag=False)
    words, tags, lengths, inside = (paddle.to_tensor(part) for part in sentences(rng))
    with paddle.no_grad():
        scores, paths = decoder(model(words, lengths), lengths)
    right = ((paths == tags) & inside).astype("float64").sum() / inside.astype("float64").sum()
    report(losses, score=scores.mean(), right=right)


if __name__ == "__main__":
    main()
