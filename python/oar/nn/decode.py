"""Decoding step by step: ``dynamic_decode`` runs a decoder until all of its sequences have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from oar._C import Tensor, ops
from oar.nn.functional import gather_tree
from oar.utils.layers_utils import flatten, map_structure

__all__ = ["BeamSearchDecoder", "Decoder", "dynamic_decode"]

_NEVER = -1e9  # the logarithm of a probability that loses against all others, and that can be added to


class Decoder:
    """What ``dynamic_decode`` runs. Subclasses define ``initialize`` and ``step``, and maybe ``finalize``.

    Examples:
        >>> from oar.nn.decode import BeamSearchDecoder, Decoder
        >>> issubclass(BeamSearchDecoder, Decoder)
        True
    """

    def initialize(self, inits: Any) -> tuple[Any, Any, Tensor]:
        """The first inputs, the first states and which sequences have ended before they began."""
        raise NotImplementedError(f"{type(self).__name__} does not define initialize().")

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Tensor]:
        """The outputs of a step, the next states, the next inputs and which sequences have ended."""
        raise NotImplementedError(f"{type(self).__name__} does not define step().")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """The outputs of all steps and the last states, put right after the last step."""
        raise NotImplementedError(f"{type(self).__name__} does not define finalize().")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether ``step`` itself knows which sequences have ended: the order of sequences may change in it."""
        return False


class _Outputs(NamedTuple):
    scores: Any
    predicted_ids: Any
    parent_ids: Any


class _States(NamedTuple):
    cell_states: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoder(Decoder):
    """Keeps the most likely beginnings of each sequence, as many as the beam is wide, and extends them by a token a step.

    Args:
        cell: called with inputs and states, returns outputs and the next states: an RNN cell, for example.
        start_token: the token that sequences begin with.
        end_token: the token that ends a sequence.
        beam_size: how many beginnings are kept.
        embedding_fn: what turns tokens into inputs; None passes the tokens on.
        output_fn: what turns outputs of the cell into scores of all tokens; None takes the outputs.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> embedding, scores = nn.Embedding(10, 4), nn.Linear(8, 10)
        >>> decoder = nn.BeamSearchDecoder(nn.GRUCell(4, 8), 0, 1, beam_size=3, embedding_fn=embedding, output_fn=scores)
        >>> tokens, _ = nn.dynamic_decode(decoder, oar.zeros([2, 8]), max_step_num=4)
        >>> tokens.shape[0], tokens.shape[2]
        (2, 3)
    """

    OutputWrapper = _Outputs
    StateWrapper = _States

    def __init__(
        self, cell: Any, start_token: int, end_token: int, beam_size: int, embedding_fn: Callable[..., Any] | None = None,
        output_fn: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        if beam_size < 1:
            raise ValueError(f"[BeamSearchDecoder] beam_size must be at least 1, not {beam_size}.")
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = start_token, end_token, beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Tensor, beam_size: int) -> Tensor:
        """Each sample ``beam_size`` times in a row: [batch, ...] becomes [batch * beam_size, ...]."""
        return ops.repeat_interleave(x, beam_size, 0)

    def _split(self, x: Tensor) -> Tensor:
        return ops.reshape(x, [-1, self.beam_size, *x.shape[1:]])

    def _merge(self, x: Tensor) -> Tensor:
        return ops.reshape(x, [-1, *x.shape[2:]])

    def _spread(self, x: Tensor) -> Tensor:
        return self._split(self.tile_beam_merge_with_batch(x, self.beam_size))

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Tensor]:
        """Beams that begin with the start token; all but the first are unlikely, since they are the same."""
        batch, beam = flatten(initial_cell_states)[0].shape[0], self.beam_size
        tokens = ops.full([batch, beam], self.start_token, "int64")
        alone = ops.concat([ops.zeros([batch, 1], "float32"), ops.full([batch, beam - 1], _NEVER, "float32")], 1)
        finished = ops.zeros([batch, beam], "bool")
        states = _States(map_structure(self._spread, initial_cell_states), alone, finished, ops.zeros([batch, beam], "int64"))
        return tokens if self.embedding_fn is None else self.embedding_fn(tokens), states, finished

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Tensor]:
        """Runs the cell for all beams and keeps the best of their continuations."""
        outputs, cell_states = self.cell(
            map_structure(self._merge, inputs), map_structure(self._merge, states.cell_states), **kwargs)  # fmt: skip
        scores = outputs if self.output_fn is None else self.output_fn(outputs)
        step_outputs, next_states = self._best(self._split(scores), map_structure(self._split, cell_states), states)
        tokens = step_outputs.predicted_ids
        next_inputs = tokens if self.embedding_fn is None else self.embedding_fn(tokens)
        return step_outputs, next_states, next_inputs, next_states.finished

    def _best(self, scores: Tensor, cell_states: Any, states: Any) -> tuple[Any, Any]:
        count = scores.shape[-1]
        steps = ops.log_softmax(scores, -1)
        # A beam that has ended goes on with the end token alone, at no cost.
        ended = ops.full([count], _NEVER, steps.dtype)
        ended = ops.where(ops.equal(ops.range(0, count, 1, "int64"), self.end_token), ops.zeros([], steps.dtype), ended)
        steps = ops.where(ops.unsqueeze(states.finished, [2]), ended, steps)
        totals = ops.reshape(steps + ops.unsqueeze(states.log_probs, [2]), [-1, self.beam_size * count])
        best, places = ops.topk(totals, self.beam_size, 1)
        beams, tokens = ops.floor_divide(places, count), ops.remainder(places, count)

        def chosen(x: Tensor) -> Tensor:
            where = ops.reshape(beams, [*beams.shape, *[1] * (x.ndim - 2)])
            return ops.take_along_axis(x, ops.expand(where, [*beams.shape, *x.shape[2:]]), 1, False)

        before = chosen(states.finished)
        lengths = chosen(states.lengths) + ops.cast(ops.logical_not(before), "int64")
        finished = ops.logical_or(before, ops.equal(tokens, self.end_token))
        return _Outputs(best, tokens, beams), _States(map_structure(chosen, cell_states), best, finished, lengths)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """The tokens of each beam, found by going back from its end: [time, batch, beam]."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change places in each step."""
        return True


def dynamic_decode(
    decoder: Decoder, inits: Any = None, max_step_num: int | None = None, output_time_major: bool = False,
    impute_finished: bool = False, is_test: bool = False, return_length: bool = False, **kwargs: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Runs a decoder until all sequences have ended, or for a number of steps.

    Args:
        decoder: the decoder.
        inits: what its ``initialize`` takes.
        max_step_num: the last step, counted from 0; None is no limit.
        output_time_major: whether the results are [time, batch, ...] rather than [batch, time, ...].
        impute_finished: whether states of sequences that have ended stay as they are.
        is_test: accepted for compatibility.
        return_length: whether to return the lengths of the sequences.
        kwargs: passed to the decoder's ``step``.

    Returns:
        the outputs, the last states and, on request, the lengths.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> embedding, scores = nn.Embedding(10, 4), nn.Linear(8, 10)
        >>> decoder = nn.BeamSearchDecoder(nn.GRUCell(4, 8), 0, 1, beam_size=3, embedding_fn=embedding, output_fn=scores)
        >>> tokens, _, lengths = nn.dynamic_decode(decoder, oar.zeros([2, 8]), max_step_num=4, return_length=True)
        >>> lengths.shape
        [2, 3]
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = ops.cast(ops.zeros_like(finished), "int64")
    every: list[Any] = []
    while not bool(ops.all(finished)):
        time = ops.full([1], len(every), "int64")
        outputs, next_states, inputs, next_finished = decoder.step(time, inputs, states, **kwargs)
        if decoder.tracks_own_finished:
            lengths = getattr(next_states, "lengths", lengths)
        else:
            lengths = lengths + ops.cast(ops.logical_not(finished), "int64")
            next_finished = ops.logical_or(next_finished, finished)
            if impute_finished:
                next_states = _kept(finished, next_states, states)
        every.append(outputs)
        states, finished = next_states, next_finished
        if max_step_num is not None and len(every) > max_step_num:
            break
    if not every:
        raise ValueError("[dynamic_decode] all sequences have ended before the first step; the decoder's initialize says so.")
    results: Any = map_structure(lambda *steps: ops.stack(list(steps), 0), *every)
    if type(decoder).finalize is not Decoder.finalize:
        results, states = decoder.finalize(results, states, lengths)
    if not output_time_major:
        results = map_structure(lambda x: ops.transpose(x, [1, 0, *range(2, x.ndim)]), results)
    return (results, states, lengths) if return_length else (results, states)


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """The old states of sequences that have ended, and the new ones of the others."""

    def one(after: Tensor, before: Tensor) -> Tensor:
        if not isinstance(after, Tensor) or after.ndim < finished.ndim:
            return after
        wide = ops.reshape(finished, [*finished.shape, *[1] * (after.ndim - finished.ndim)])
        return ops.where(wide, before, after)

    return map_structure(one, new, old)
