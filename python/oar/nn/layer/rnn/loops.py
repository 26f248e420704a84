"""Loops of cells over sequences."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn.layer.layers import Layer
from oar.nn.layer.rnn._structures import first, mapped, swapped
from oar.nn.layer.rnn.cells import GRUCell, LSTMCell, SimpleRNNCell

__all__ = ["BiRNN", "RNN"]

_FUSED = (SimpleRNNCell, LSTMCell, GRUCell)


def _stepwise(cell: Layer, inputs: Any, states: Any, length: Tensor | None, reverse: bool, kwargs: Any) -> Any:
    """Any cell over inputs whose first axis is time."""
    steps = first(inputs).shape[0]
    if steps == 0:
        raise ValueError("A sequence without steps has no outputs.")
    made = []
    for t in range(steps)[:: -1 if reverse else 1]:
        outputs, new = cell(mapped(lambda x, t=t: x[t], inputs), states, **kwargs)
        if length is not None:
            running = ops.greater_than(length, oar.full([], t, dtype=length.dtype))

            def kept(old: Tensor, fresh: Tensor, running: Tensor = running) -> Tensor:
                return ops.where(ops.reshape(running, [-1] + [1] * (fresh.ndim - 1)), fresh, old)

            new = mapped(kept, states, new)
        states = new
        made.append(outputs)
    if reverse:
        made.reverse()
    return mapped(lambda *all_steps: ops.stack(list(all_steps), 0), *made), states


def _with_padding(cell: Layer, inputs: Tensor, states: Any, outputs: Tensor, length: Tensor) -> Tensor:
    """The outputs of whole sequences, including the padding: what the cell computes from it and from fixed states."""
    steps, batch = inputs.shape[0], inputs.shape[1]

    def for_all_steps(state: Tensor) -> Tensor:
        spread = ops.expand(ops.unsqueeze(state, [0]), [steps, *state.shape])
        return ops.reshape(spread, [steps * batch, state.shape[1]])

    made, _ = cell(ops.reshape(inputs, [steps * batch, inputs.shape[2]]), mapped(for_all_steps, states))
    step = ops.reshape(oar.arange(steps, dtype=length.dtype), [steps, 1, 1])
    return ops.where(ops.less_than(step, ops.reshape(length, [1, batch, 1])), outputs, ops.reshape(made, outputs.shape))


def _run(
    cell: Layer, inputs: Any, states: Any, length: Tensor | None, time_major: bool, reverse: bool, kwargs: Any
) -> tuple[Any, Any]:
    if states is None:
        states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)
    if not time_major:
        inputs = mapped(swapped, inputs)
    if type(cell) in _FUSED and not kwargs:
        first = states
        outputs, states = cell._sequence(inputs, first, length, reverse)
        if length is not None:
            outputs = _with_padding(cell, inputs, first if reverse else states, outputs, length)
    else:
        outputs, states = _stepwise(cell, inputs, states, length, reverse, kwargs)
    if not time_major:
        outputs = mapped(lambda x: ops.transpose(x, [1, 0, *range(2, x.ndim)]), outputs)
    return outputs, states


class RNN(Layer):
    """A cell over the steps of a sequence.

    Args:
        cell: an ``RNNCellBase``.
        is_reverse: begin with the last step.
        time_major: inputs and outputs are [steps, batch, …], not [batch, steps, …].

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> outputs, state = nn.RNN(nn.GRUCell(4, 8))(oar.ones([2, 5, 4]))
        >>> outputs.shape, state.shape
        ([2, 5, 8], [2, 8])
    """

    def __init__(self, cell: Layer, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.is_reverse = is_reverse
        self.time_major = time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        return _run(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, kwargs)


class BiRNN(Layer):
    """Two cells over a sequence, one from each end; their outputs are concatenated.

    Args:
        cell_fw: the cell that begins with the first step.
        cell_bw: the cell that begins with the last.
        time_major: inputs and outputs are [steps, batch, …], not [batch, steps, …].

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> outputs, states = nn.BiRNN(nn.GRUCell(4, 8), nn.GRUCell(4, 8))(oar.ones([2, 5, 4]))
        >>> outputs.shape
        [2, 5, 16]
    """

    def __init__(self, cell_fw: Layer, cell_bw: Layer, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw = cell_fw
        self.cell_bw = cell_bw
        if cell_fw.input_size != cell_bw.input_size:
            raise ValueError(
                f"input size of forward cell({cell_fw.input_size}) does not equal that of backward "
                f"cell({cell_bw.input_size})"
            )
        self.time_major = time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        if isinstance(initial_states, (list, tuple)) and len(initial_states) != 2:
            raise ValueError("length of initial_states should be 2 when it is a list/tuple")
        first, second = (None, None) if initial_states is None else initial_states
        common = (sequence_length, self.time_major)
        ahead, ahead_states = _run(self.cell_fw, inputs, first, *common, False, kwargs)
        back, back_states = _run(self.cell_bw, inputs, second, *common, True, kwargs)
        return mapped(lambda x, y: ops.concat([x, y], -1), ahead, back), (ahead_states, back_states)
