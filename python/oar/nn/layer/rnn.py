"""Recurrent layers: cells, loops over cells, and stacks of them.

Where a cell is one of this module, a whole sequence is one call of the op ``recurrent``; other cells are called step
by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.initializer import Constant, Uniform
from oar.nn.layer.container import LayerList
from oar.nn.layer.layers import Layer

__all__ = ["BiRNN", "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCellBase", "SimpleRNN", "SimpleRNNCell"]


def _is_shape(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(size, int) for size in value)


def _mapped(function: Any, *structures: Any) -> Any:
    """``function`` on the leaves of nested lists, tuples and dictionaries of one form."""
    first = structures[0]
    if isinstance(first, (list, tuple)):
        made = [_mapped(function, *parts) for parts in zip(*structures)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    if isinstance(first, dict):
        return {key: _mapped(function, *(s[key] for s in structures)) for key in first}
    return function(*structures)


def _first(structure: Any) -> Tensor:
    while not isinstance(structure, Tensor):
        structure = next(iter(structure.values() if isinstance(structure, dict) else structure))
    return structure


class RNNCellBase(Layer):
    """A cell: ``forward(inputs, states)`` returns an output and new states.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> issubclass(nn.LSTMCell, nn.RNNCellBase)
        True
    """

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """States to begin with, full of ``init_value``.

        Args:
            batch_ref: a tensor, or a structure of them, whose axis ``batch_dim_idx`` is the batch.
            shape: sizes of a state without the batch, or a structure of sizes; ``state_shape`` when None.
            dtype: of the states; ``state_dtype``, or the default dtype, when None.
        """
        batch = _first(batch_ref).shape[batch_dim_idx]
        shape = self.state_shape if shape is None else shape
        if dtype is None:
            try:
                dtype = self.state_dtype
            except NotImplementedError:
                dtype = oar.get_default_dtype()

        def made(sizes: Any, kind: Any) -> Any:
            if _is_shape(sizes):
                rest = list(sizes[1:] if sizes and sizes[0] == -1 else sizes)
                return oar.full([batch, *rest], init_value, dtype=kind)
            kinds = kind if isinstance(kind, (list, tuple)) else [kind] * len(sizes)
            return type(sizes)(made(one, of) for one, of in zip(sizes, kinds))

        return made(shape, dtype)

    @property
    def state_shape(self) -> Any:
        """The shapes of the states, without the batch."""
        raise NotImplementedError("Please add implementation for `state_shape` in the used cell.")

    @property
    def state_dtype(self) -> Any:
        """The dtypes of the states; the default one if not given."""
        raise NotImplementedError("Please add implementation for `state_dtype` in the used cell.")


def over_steps(mode: str, x: Tensor, states: Any, weights: Sequence[Tensor], length: Tensor | None, reverse: bool,
               projection: Tensor | None = None) -> tuple[Tensor, Any]:
    """Outputs and final states of inputs [steps, batch, size]. Outputs after the end of a sequence are 0.

    Args:
        mode: ``'lstm'``, ``'gru'``, ``'rnn_tanh'`` or ``'rnn_relu'``.
        weights: of the inputs, of the states, and their biases.
    """
    lstm, gru = mode == "lstm", mode == "gru"
    hidden, cell = states if lstm else (states, None)
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    gates = ops.linear(x, ops.transpose(weight_ih, [1, 0]), bias_ih if gru else bias_ih + bias_hh)
    outputs, cells = ops.recurrent(
        gates, weight_hh, hidden, cell, bias_hh if gru else None, projection, length, mode, reverse
    )
    steps = x.shape[0]
    if steps == 0:
        return outputs, states
    last = 0 if reverse else steps - 1
    final = (outputs[last], cells[last]) if lstm else outputs[last]
    if length is not None:
        times = ops.reshape(oar.arange(steps, dtype=length.dtype), [steps, 1, 1])
        running = ops.less_than(times, ops.reshape(length, [1, -1, 1]))
        outputs = ops.where(running, outputs, oar.zeros([], dtype=outputs.dtype))
    return outputs, final


class _GatedCell(RNNCellBase):
    """Weights of a cell: rows of all gates one below the other."""

    _mode: str
    _gates: int

    def _make_weights(
        self, input_size: int, hidden_size: int, state_size: int, weight_ih_attr: Any, weight_hh_attr: Any,
        bias_ih_attr: Any, bias_hh_attr: Any,
    ) -> None:  # fmt: skip
        if hidden_size <= 0:
            raise ValueError(
                f"hidden_size of {type(self).__name__} must be greater than 0, but now equals to {hidden_size}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = self._gates * hidden_size
        self.weight_ih = self._weight([rows, input_size], weight_ih_attr)
        self.weight_hh = self._weight([rows, state_size], weight_hh_attr)
        self.bias_ih = self._weight([rows], bias_ih_attr, is_bias=True)
        self.bias_hh = self._weight([rows], bias_hh_attr, is_bias=True)

    def _weight(self, shape: list[int], attr: Any, is_bias: bool = False) -> Tensor:
        """A parameter; with attr False one that does nothing and is not trained."""
        if attr is False:
            neutral = Constant(0.0 if is_bias else 1.0)
            weight = self.create_parameter(shape, None, is_bias=is_bias, default_initializer=neutral)
            weight.stop_gradient = True
            return weight
        bound = 1.0 / math.sqrt(self.hidden_size)
        return self.create_parameter(shape, attr, is_bias=is_bias, default_initializer=Uniform(-bound, bound))

    def _sequence(self, x: Tensor, states: Any, length: Tensor | None, reverse: bool) -> tuple[Tensor, Any]:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return over_steps(self._mode, x, states, weights, length, reverse, getattr(self, "weight_ho", None))

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Any]:
        if states is None:
            states = self.get_initial_states(inputs, dtype=inputs.dtype)
        _, final = self._sequence(ops.unsqueeze(inputs, [0]), states, None, False)
        return (final[0], final) if self._mode == "lstm" else (final, final)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_GatedCell):
    """``h' = activation(x · weight_ihᵀ + bias_ih + h · weight_hhᵀ + bias_hh)``.

    Args:
        input_size: width of the input.
        hidden_size: width of the state.
        activation: ``'tanh'`` or ``'relu'``.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: attributes of the parameters; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> output, state = nn.SimpleRNNCell(4, 8)(oar.ones([2, 4]))
        >>> output.shape, state.shape
        ([2, 8], [2, 8])
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if activation not in ("tanh", "relu"):
            raise ValueError(f"activation for SimpleRNNCell should be tanh or relu, but get {activation}")
        self.activation = self._mode = activation
        self._make_weights(
            input_size, hidden_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        )

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.activation == "tanh" else f"{text}, activation={self.activation}"


class LSTMCell(_GatedCell):
    """A long short-term memory: gates decide what a cell takes in, keeps and shows.

    Args:
        input_size: width of the input.
        hidden_size: width of the cell.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: attributes of the parameters; False for none.
        proj_size: width that the state is projected to; 0 for no projection.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> output, (h, c) = nn.LSTMCell(4, 8)(oar.ones([2, 4]))
        >>> output.shape, c.shape
        ([2, 8], [2, 8])
    """

    _mode = "lstm"
    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if proj_size < 0:
            raise ValueError(f"proj_size of LSTMCell must not be negative, but now equals to {proj_size}")
        if 0 < hidden_size <= proj_size:
            raise ValueError("proj_size must be smaller than hidden_size")
        self.proj_size = proj_size
        self._make_weights(
            input_size, hidden_size, proj_size or hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr,
            bias_hh_attr,
        )  # fmt: skip
        if proj_size > 0:
            self.weight_ho = self._weight([hidden_size, proj_size], weight_hh_attr)

    @property
    def state_shape(self) -> Any:
        """The shapes of the output and of the memory, without the batch."""
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(_GatedCell):
    """A gated recurrent unit: gates decide what of the state is used and what is replaced.

    Args:
        input_size: width of the input.
        hidden_size: width of the state.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: attributes of the parameters; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> output, state = nn.GRUCell(4, 8)(oar.ones([2, 4]))
        >>> output.shape
        [2, 8]
    """

    _mode = "gru"
    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make_weights(
            input_size, hidden_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        )


_FUSED = (SimpleRNNCell, LSTMCell, GRUCell)


def _swapped(x: Tensor) -> Tensor:
    """Batch and time in each other's place, side by side in memory."""
    return ops.assign(ops.transpose(x, [1, 0, *range(2, x.ndim)]))


def _stepwise(cell: Layer, inputs: Any, states: Any, length: Tensor | None, reverse: bool, kwargs: Any) -> Any:
    """Any cell over inputs whose first axis is time."""
    steps = _first(inputs).shape[0]
    if steps == 0:
        raise ValueError("A sequence without steps has no outputs.")
    made = []
    for t in range(steps)[:: -1 if reverse else 1]:
        outputs, new = cell(_mapped(lambda x, t=t: x[t], inputs), states, **kwargs)
        if length is not None:
            running = ops.greater_than(length, oar.full([], t, dtype=length.dtype))

            def kept(old: Tensor, fresh: Tensor, running: Tensor = running) -> Tensor:
                return ops.where(ops.reshape(running, [-1] + [1] * (fresh.ndim - 1)), fresh, old)

            new = _mapped(kept, states, new)
        states = new
        made.append(outputs)
    if reverse:
        made.reverse()
    return _mapped(lambda *all_steps: ops.stack(list(all_steps), 0), *made), states


def _with_padding(cell: Layer, inputs: Tensor, states: Any, outputs: Tensor, length: Tensor) -> Tensor:
    """The outputs of whole sequences, with those of the padding: what the cell makes of it and of fixed states."""
    steps, batch = inputs.shape[0], inputs.shape[1]

    def for_all_steps(state: Tensor) -> Tensor:
        spread = ops.expand(ops.unsqueeze(state, [0]), [steps, *state.shape])
        return ops.reshape(spread, [steps * batch, state.shape[1]])

    made, _ = cell(ops.reshape(inputs, [steps * batch, inputs.shape[2]]), _mapped(for_all_steps, states))
    step = ops.reshape(oar.arange(steps, dtype=length.dtype), [steps, 1, 1])
    return ops.where(ops.less_than(step, ops.reshape(length, [1, batch, 1])), outputs, ops.reshape(made, outputs.shape))


def _run(
    cell: Layer, inputs: Any, states: Any, length: Tensor | None, time_major: bool, reverse: bool, kwargs: Any
) -> tuple[Any, Any]:
    if states is None:
        states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)
    if not time_major:
        inputs = _mapped(_swapped, inputs)
    if type(cell) in _FUSED and not kwargs:
        first = states
        outputs, states = cell._sequence(inputs, first, length, reverse)
        if length is not None:
            outputs = _with_padding(cell, inputs, first if reverse else states, outputs, length)
    else:
        outputs, states = _stepwise(cell, inputs, states, length, reverse, kwargs)
    if not time_major:
        outputs = _mapped(lambda x: ops.transpose(x, [1, 0, *range(2, x.ndim)]), outputs)
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
        return _mapped(lambda x, y: ops.concat([x, y], -1), ahead, back), (ahead_states, back_states)


class RNNBase(LayerList):
    """Layers of one kind of cell on top of each other, in one or both directions.

    Args:
        mode: the kind of cell: 'LSTM', 'GRU', 'RNN_TANH' or 'RNN_RELU'.
        input_size: the width of the input.
        hidden_size: the width of the state.
        num_layers: the number of layers.
        direction: 'forward' or 'bidirect'.
        time_major: whether axis 0 is time, not the batch.
        dropout: the probability of dropping an attention weight in training.
        weight_ih_attr: a ``ParamAttr`` for the input weights.
        weight_hh_attr: a ``ParamAttr`` for the state weights.
        bias_ih_attr: a ``ParamAttr`` for the input biases.
        bias_hh_attr: a ``ParamAttr`` for the state biases.
        proj_size: the width of the projected state; 0 for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> isinstance(nn.LSTM(4, 8), nn.layer.rnn.RNNBase)
        True
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(
                f"direction should be forward or bidirect (or bidirectional), received direction = {direction}"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.num_directions = 1 if direction == "forward" else 2
        self.time_major = time_major
        self.num_layers = num_layers
        self.state_components = 2 if mode == "LSTM" else 1
        self.proj_size = proj_size
        attributes = {
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
        }
        kinds = {"LSTM": LSTMCell, "GRU": GRUCell, "RNN_TANH": SimpleRNNCell, "RNN_RELU": SimpleRNNCell}
        if mode == "LSTM":
            attributes["proj_size"] = proj_size
        elif mode.startswith("RNN_"):
            attributes["activation"] = mode[4:].lower()
        for number in range(num_layers):
            size = input_size if number == 0 else self.num_directions * (proj_size or hidden_size)
            cells = [kinds[mode](size, hidden_size, **attributes) for _ in range(self.num_directions)]
            self.append(RNN(cells[0], False, time_major) if len(cells) == 1 else BiRNN(*cells, time_major))
            self._expose(number, cells, attributes)

    def _expose(self, number: int, cells: list[Layer], attributes: dict[str, Any]) -> None:
        """Show a layer's parameters under names such as ``weight_ih_l0`` and ``bias_hh_l1_reverse``."""
        for cell, suffix in zip(cells, ("", "_reverse")):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                left_out = name.startswith("bias") and attributes[f"{name}_attr"] is False
                if hasattr(cell, name) and not left_out:
                    setattr(self, f"{name}_l{number}{suffix}", getattr(cell, name))

    def flatten_parameters(self) -> None:
        """There for programs that call it: parameters need no common block of memory here."""

    def _initial(self, initial_states: Any, x: Tensor) -> list[Any]:
        """The states of each layer and direction."""
        count, batch = self.num_layers * self.num_directions, x.shape[1]
        if initial_states is None:
            hidden = oar.zeros([batch, self.proj_size or self.hidden_size], dtype=x.dtype)
            if self.mode != "LSTM":
                return [hidden] * count
            same = not self.proj_size
            return [(hidden, hidden if same else oar.zeros([batch, self.hidden_size], dtype=x.dtype))] * count
        if self.mode != "LSTM":
            (states,) = initial_states if isinstance(initial_states, (list, tuple)) else (initial_states,)
            return [states[i] for i in range(count)]
        hidden, cell = initial_states
        return [(hidden[i], cell[i]) for i in range(count)]

    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        x = inputs if self.time_major else _swapped(inputs)
        states, final = self._initial(initial_states, x), []
        for number, layer in enumerate(self):
            if number > 0:
                x = F.dropout(x, self.dropout, training=self.training)
            cells = [layer.cell] if self.num_directions == 1 else [layer.cell_fw, layer.cell_bw]
            outputs = []
            for way, cell in enumerate(cells):
                out, last = cell._sequence(x, states[number * len(cells) + way], sequence_length, way == 1)
                outputs.append(out)
                final.append(last)
            x = outputs[0] if len(outputs) == 1 else ops.concat(outputs, -1)
        out = x if self.time_major else ops.transpose(x, [1, 0, 2])
        if self.mode != "LSTM":
            return out, ops.stack(final, 0)
        return out, (ops.stack([h for h, _ in final], 0), ops.stack([c for _, c in final], 0))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.time_major:
            text += f", time_major={self.time_major}"
        return text + (f", dropout={self.dropout}" if self.dropout else "")


class SimpleRNN(RNNBase):
    """Layers of ``SimpleRNNCell``.

    Args:
        input_size: width of the input.
        hidden_size: width of a layer's state.
        num_layers: how many layers.
        direction: ``'forward'``, or ``'bidirect'`` for both.
        time_major: inputs and outputs are [steps, batch, …], not [batch, steps, …].
        dropout: dropout between layers.
        activation: ``'tanh'`` or ``'relu'``.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: attributes of the parameters; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> outputs, state = nn.SimpleRNN(4, 8, num_layers=2)(oar.ones([2, 5, 4]))
        >>> outputs.shape, state.shape
        ([2, 5, 8], [2, 2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise ValueError(f"Unknown activation '{activation}'")
        super().__init__(
            f"RNN_{activation.upper()}", input_size, hidden_size, num_layers, direction, time_major, dropout,
            weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr,
        )  # fmt: skip
        self.activation = activation


class LSTM(RNNBase):
    """Layers of ``LSTMCell``; ``proj_size`` is the cell's, the other arguments are those of ``SimpleRNN``.

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        num_layers: the number of layers.
        direction: 'forward' or 'bidirect'.
        time_major: whether axis 0 is time, not the batch.
        dropout: the probability of dropping an element between layers.
        weight_ih_attr: a ``ParamAttr`` for the input weights.
        weight_hh_attr: a ``ParamAttr`` for the state weights.
        bias_ih_attr: a ``ParamAttr`` for the input biases.
        bias_hh_attr: a ``ParamAttr`` for the state biases.
        proj_size: the width of the projected state; 0 for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> outputs, (h, c) = nn.LSTM(4, 8, direction='bidirect')(oar.ones([2, 5, 4]))
        >>> outputs.shape, h.shape
        ([2, 5, 16], [2, 2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
            weight_hh_attr, bias_ih_attr, bias_hh_attr, proj_size,
        )  # fmt: skip


class GRU(RNNBase):
    """Layers of ``GRUCell``; the arguments are those of ``SimpleRNN``.

    Args:
        input_size: the width of the input.
        hidden_size: the width of the state.
        num_layers: the number of layers.
        direction: 'forward' or 'bidirect'.
        time_major: whether axis 0 is time, not the batch.
        dropout: the probability of dropping an element between layers.
        weight_ih_attr: a ``ParamAttr`` for the input weights.
        weight_hh_attr: a ``ParamAttr`` for the state weights.
        bias_ih_attr: a ``ParamAttr`` for the input biases.
        bias_hh_attr: a ``ParamAttr`` for the state biases.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> outputs, state = nn.GRU(4, 8)(oar.ones([2, 5, 4]))
        >>> outputs.shape, state.shape
        ([2, 5, 8], [1, 2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
            weight_hh_attr, bias_ih_attr, bias_hh_attr,
        )  # fmt: skip
