"""Viterbi decoding against all paths."""

import itertools

import numpy as np
import pytest

import oar
from oar import text


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_best_of_all_paths(ends, dtype):
    rng = np.random.default_rng(0)
    scores, moves, lengths = rng.normal(size=(3, 5, 4)), rng.normal(size=(4, 4)), [4, 1, 3]
    given = [oar.to_tensor(v, dtype=dtype) for v in (scores, moves)]
    best, path = text.viterbi_decode(given[0], given[1], oar.to_tensor(lengths), ends)
    assert path.shape == [3, 4] and path.dtype.name == "int64" and best.dtype.name == dtype
    for i, n in enumerate(lengths):
        def total(labels):
            between = sum(moves[a, b] for a, b in zip(labels, labels[1:]))
            around = moves[-1, labels[0]] + moves[-2, labels[-1]] if ends else 0
            return sum(scores[i, k, y] for k, y in enumerate(labels)) + between + around
        wanted = max(itertools.product(range(4), repeat=n), key=total)
        assert path[i].tolist() == [*wanted] + [0] * (4 - n)
        assert abs(best[i].item() - total(wanted)) < 1e-5
    layer = text.ViterbiDecoder(given[1], ends)
    assert layer(given[0], oar.to_tensor(lengths))[1].tolist() == path.tolist()


def test_errors():
    with pytest.raises(ValueError, match="lengths\\[0\\] is 6; potentials has 5 positions"):
        text.viterbi_decode(oar.ones([1, 5, 3]), oar.ones([3, 3]), oar.to_tensor([6]))
    with pytest.raises(ValueError, match="with 3 labels it must be \\[3, 3\\]"):
        text.viterbi_decode(oar.ones([1, 5, 3]), oar.ones([2, 3]), oar.to_tensor([4]))
