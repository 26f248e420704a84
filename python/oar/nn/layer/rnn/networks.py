"""Stacks of recurrent layers, in one direction or both."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.layer.container import LayerList
from oar.nn.layer.layers import Layer
from oar.nn.layer.rnn._structures import swapped
from oar.nn.layer.rnn.cells import GRUCell, LSTMCell, SimpleRNNCell
from oar.nn.layer.rnn.loops import RNN, BiRNN

__all__ = ["GRU", "LSTM", "SimpleRNN"]


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
            self.append(RNN(cells[0], False, time_major) if len(cells) == 1 else BiRNN(cells[0], cells[1], time_major))
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
        x = inputs if self.time_major else swapped(inputs)
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
