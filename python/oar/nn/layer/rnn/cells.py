"""Recurrent cells, and the loop over one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn.initializer import Constant, Uniform
from oar.nn.layer.layers import Layer
from oar.nn.layer.rnn._structures import first

__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]


def _is_shape(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(size, int) for size in value)


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
        batch = first(batch_ref).shape[batch_dim_idx]
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
    # What gates and candidates go through, for programs that compute a step themselves.
    _gate_activation = staticmethod(ops.sigmoid)
    _activation = staticmethod(ops.tanh)

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
