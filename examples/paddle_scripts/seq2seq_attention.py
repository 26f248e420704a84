"""Sequence to sequence: a bidirectional GRU, additive attention, masks, teacher forcing and greedy decoding."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from common import arguments, report, same_start

WORDS, WIDTH, START, END = 20, 32, 1, 2


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.rnn = nn.GRU(WIDTH, WIDTH, direction="bidirect")
        self.bridge = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, source, lengths):
        states, last = self.rnn(self.embedding(source), sequence_length=lengths)
        return states, paddle.tanh(self.bridge(paddle.concat([last[0], last[1]], axis=-1)))


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.of_state = nn.Linear(WIDTH, WIDTH, bias_attr=False)
        self.of_memory = nn.Linear(2 * WIDTH, WIDTH)
        self.score = self.create_parameter([WIDTH], default_initializer=nn.initializer.Uniform(-0.2, 0.2))

    def forward(self, state, memory, mask):
        hidden = paddle.tanh(self.of_state(state).unsqueeze(1) + self.of_memory(memory))
        scores = paddle.einsum("bsw,w->bs", hidden, self.score)
        weights = F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -1e9)), axis=-1)
        return paddle.einsum("bs,bsw->bw", weights, memory)


class Decoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.attention = Attention()
        self.cell = nn.GRUCell(3 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, word, state, memory, mask):
        context = self.attention(state, memory, mask)
        _, state = self.cell(paddle.concat([self.embedding(word), context], axis=-1), state)
        return self.out(state), state


class Seq2Seq(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, source, lengths, target):
        memory, state = self.encoder(source, lengths)
        mask = F.sequence_mask(lengths, maxlen=source.shape[1], dtype="bool")
        logits = []
        for t in range(target.shape[1]):
            step, state = self.decoder(target[:, t], state, memory, mask)
            logits.append(step)
        return paddle.stack(logits, axis=1)

    @paddle.no_grad()
    def greedy(self, source, lengths, limit):
        memory, state = self.encoder(source, lengths)
        mask = F.sequence_mask(lengths, maxlen=source.shape[1], dtype="bool")
        word = paddle.full([source.shape[0]], START, dtype="int64")
        words = []
        for _ in range(limit):
            logits, state = self.decoder(word, state, memory, mask)
            word = logits.argmax(axis=-1)
            words.append(word)
        return paddle.stack(words, axis=1)


def reversals(rng, count, longest=7):
    """Words and the same words backwards, of different lengths, filled up with zeros."""
    lengths = rng.randint(3, longest + 1, count)
    source, target = np.zeros((count, longest), "int64"), np.zeros((count, longest + 2), "int64")
    for row, length in enumerate(lengths):
        words = rng.randint(3, WORDS, length)
        source[row, :length] = words
        target[row, :length + 2] = [START, *words[::-1], END]
    return [paddle.to_tensor(array) for array in (source, lengths.astype("int64"), target)]


def main():
    args = arguments(__doc__)
    model = Seq2Seq()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.Adam(
        learning_rate=paddle.optimizer.lr.ExponentialDecay(5e-3, gamma=0.999), parameters=model.parameters(),
        grad_clip=nn.ClipGradByGlobalNorm(clip_norm=1.0))
    rng = np.random.RandomState(7)
    losses = []
    for _ in range(args.steps):
        source, lengths, target = reversals(rng, 16)
        logits = model(source, lengths, target[:, :-1])
        loss = F.cross_entropy(logits, target[:, 1:].unsqueeze(-1), ignore_index=0)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        optimizer._learning_rate.step()
        losses.append(loss.item())
    source, lengths, target = reversals(rng, 16)
    found = model.greedy(source, lengths, target.shape[1] - 1)
    counted = target[:, 1:] != 0
    right = paddle.logical_and(found == target[:, 1:], counted).astype("float32").sum() / counted.astype("float32").sum()
    report(losses, right=right)


if __name__ == "__main__":
    main()
