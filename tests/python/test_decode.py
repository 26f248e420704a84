"""Beam search and decoding step by step, against a search written in NumPy."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn.decode import Decoder

START, END = 0, 2


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _search(step, state, beam, limit):
    """The best beams of one sample: tokens, logarithms of probabilities, lengths. `step(token, state)` gives scores and a state."""
    beams = [([START], 0.0, state, False, 0)] + [([START], -1e9, state, False, 0)] * (beam - 1)
    for _ in range(limit):
        options = []
        for tokens, total, now, ended, length in beams:
            if ended:
                options += [(total + (0.0 if t == END else -1e9), tokens, t, now, True, length) for t in range(7)]
                continue
            scores, after = step(tokens[-1], now)
            for t, value in enumerate(_log_softmax(scores)):
                options.append((total + value, tokens, t, after, False, length))
        options.sort(key=lambda one: -one[0])
        beams = [([*tokens, t], total, now, ended or t == END, length + (not ended))
                 for total, tokens, t, now, ended, length in options[:beam]]  # fmt: skip
        if all(one[3] for one in beams):
            break
    return beams


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("time_major", [False, True])
def test_beam_search(beam, time_major):
    rng = np.random.default_rng(beam)
    embedding, cell, linear = nn.Embedding(7, 4), nn.GRUCell(4, 5), nn.Linear(5, 7)
    for layer in (embedding, cell, linear):
        for p in layer.parameters():
            p.set_value(rng.normal(size=p.shape).astype("float32"))
    first = rng.normal(size=(3, 5)).astype("float32")
    decoder = nn.BeamSearchDecoder(cell, START, END, beam, embedding, linear)
    tokens, states, lengths = nn.dynamic_decode(decoder, oar.to_tensor(first), max_step_num=5, output_time_major=time_major,
                                                return_length=True)  # fmt: skip
    made = tokens.numpy().transpose(1, 0, 2) if time_major else tokens.numpy()

    def step(token, state):
        out, after = cell(embedding(oar.to_tensor([token])), oar.to_tensor(state[None]))
        return linear(out).numpy()[0].astype("float64"), after.numpy()[0]

    for sample in range(3):
        wanted = _search(step, first[sample], beam, 6)
        np.testing.assert_allclose(states.log_probs.numpy()[sample], [one[1] for one in wanted], rtol=1e-4)
        for k, (ids, _, _, ended, length) in enumerate(wanted):
            assert made[sample, :length, k].tolist() == ids[1 : length + 1]
            assert (made[sample, length:, k] == END).all() or not ended
            assert lengths.numpy()[sample, k] == length


def test_samples_are_repeated_for_beams():
    x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert nn.BeamSearchDecoder.tile_beam_merge_with_batch(x, 2).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    with pytest.raises(ValueError, match="beam_size must be at least 1"):
        nn.BeamSearchDecoder(None, 0, 1, 0)


class Counter(Decoder):
    """Counts up; each sequence ends at its own number."""

    def initialize(self, ends):
        self.ends = ends
        return oar.zeros_like(ends), oar.zeros_like(ends), oar.zeros(ends.shape, "bool")

    def step(self, time, inputs, states):
        after = states + 1
        return {"count": after}, after, inputs, after >= self.ends


@pytest.mark.parametrize("impute", [False, True])
def test_a_decoder_of_ones_own(impute):
    ends = oar.to_tensor([1, 3, 2])
    outputs, states, lengths = nn.dynamic_decode(Counter(), ends, impute_finished=impute, return_length=True)
    assert outputs["count"].shape == [3, 3] and lengths.tolist() == [1, 3, 2]
    assert states.tolist() == ([1, 3, 2] if impute else [3, 3, 3])
    assert nn.dynamic_decode(Counter(), ends, max_step_num=0)[0]["count"].shape == [3, 1]
    with pytest.raises(NotImplementedError, match="does not define initialize"):
        nn.dynamic_decode(Decoder())
