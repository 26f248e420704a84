"""Recurrent layers: against NumPy step by step, in all directions, lengths and forms."""

import numpy as np
import pytest

import oar
from oar import nn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, weights, x, state):
    """One step of a cell in NumPy; weights as in the layers."""
    w_ih, w_hh, b_ih, b_hh, *w_ho = weights
    hidden = state[0] if kind == "LSTM" else state
    a, b = x @ w_ih.T + b_ih, hidden @ w_hh.T + b_hh
    if kind == "SimpleRNN":
        return np.tanh(a + b)
    if kind == "GRU":
        (ar, az, ac), (br, bz, bc) = np.split(a, 3, -1), np.split(b, 3, -1)
        reset, update = sigmoid(ar + br), sigmoid(az + bz)
        candidate = np.tanh(ac + reset * bc)
        return (hidden - candidate) * update + candidate
    i, f, c, o = np.split(a + b, 4, -1)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(c)
    shown = sigmoid(o) * np.tanh(cell)
    return (shown @ w_ho[0] if w_ho else shown), cell


def run(kind, weights, x, state, reverse, lengths):
    """A layer over [steps, batch, size]: outputs and the last state."""
    out = None
    for t in range(len(x))[:: -1 if reverse else 1]:
        new = step(kind, weights, x[t], state)
        alive = (lengths > t)[:, None]
        if kind == "LSTM":
            state = tuple(np.where(alive, n, s) for n, s in zip(new, state))
        else:
            state = np.where(alive, new, state)
        hidden = state[0] if kind == "LSTM" else state
        if out is None:
            out = np.zeros((len(x), *hidden.shape))
        out[t] = np.where(alive, hidden, 0)
    return out, state


def weights_of(layer, number, suffix):
    found = [getattr(layer, f"{n}_l{number}{suffix}").numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    cell = getattr(layer[number], "cell_bw" if suffix else "cell_fw", None) or layer[number].cell
    return found + ([cell.weight_ho.numpy()] if hasattr(cell, "weight_ho") else [])


@pytest.fixture(autouse=True)
def double():
    oar.set_default_dtype("float64")
    yield
    oar.set_default_dtype("float32")


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize(("kind", "options"), [("SimpleRNN", {}), ("GRU", {}), ("LSTM", {}), ("LSTM", {"proj_size": 3})])
def test_layers(kind, options, direction, time_major):
    oar.seed(0)
    ways, batch, steps, width = (2 if direction == "bidirect" else 1), 3, 6, 5
    layer = getattr(nn, kind)(4, width, num_layers=2, direction=direction, time_major=time_major, **options)
    x = np.random.default_rng(0).standard_normal((steps, batch, 4))
    lengths = np.array([6, 2, 4])
    given = oar.to_tensor(x if time_major else x.swapaxes(0, 1).copy())
    out, final = layer(given, sequence_length=oar.to_tensor(lengths))
    finals = []
    for number in range(2):
        outs = []
        for way, suffix in zip(range(ways), ("", "_reverse")):
            zero = np.zeros((batch, options.get("proj_size", width)))
            state = (zero, np.zeros((batch, width))) if kind == "LSTM" else zero
            made, last = run(kind, weights_of(layer, number, suffix), x, state, way == 1, lengths)
            outs.append(made)
            finals.append(last)
        x = np.concatenate(outs, -1)
    ours = out.numpy() if time_major else out.numpy().swapaxes(0, 1)
    np.testing.assert_allclose(ours, x, atol=1e-12)
    if kind == "LSTM":
        for i in range(2):
            np.testing.assert_allclose(final[i].numpy(), np.stack([f[i] for f in finals]), atol=1e-12)
    else:
        np.testing.assert_allclose(final.numpy(), np.stack(finals), atol=1e-12)


@pytest.mark.parametrize("kind", ["SimpleRNNCell", "GRUCell", "LSTMCell"])
def test_a_cell_of_the_users_own_runs_as_the_fused_one(kind):
    class Own(getattr(nn, kind)):
        """Not one of the module's classes, so it is called step by step."""

    oar.seed(3)
    cell, own = getattr(nn, kind)(4, 5), Own(4, 5)
    own.set_state_dict(cell.state_dict())
    lengths = oar.to_tensor([2, 3])
    for reverse in (False, True):
        results = []
        for c in (cell, own):
            x = oar.to_tensor(np.random.default_rng(1).standard_normal((2, 3, 4)), stop_gradient=False)
            out, state = nn.RNN(c, is_reverse=reverse)(x, sequence_length=lengths)
            (out * out).sum().backward()
            state = state[1] if kind == "LSTMCell" else state
            results.append((out.numpy(), state.numpy(), x.grad.numpy()))
        for ours, wanted in zip(*results):
            np.testing.assert_allclose(ours, wanted, atol=1e-12)


def test_gradients_of_large_layers_are_those_of_steps():
    """Sizes beyond one panel of packed weights, against the op's own parts through a second cell class."""
    class Own(nn.LSTMCell):
        pass

    oar.seed(4)
    cell, own = nn.LSTMCell(7, 70), Own(7, 70)
    own.set_state_dict(cell.state_dict())
    x = oar.randn([20, 5, 7])
    for c in (cell, own):
        out, _ = nn.RNN(c)(x)
        (out * out).sum().backward()
    for name, parameter in cell.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), getattr(own, name).grad.numpy(), atol=1e-10)


def test_birnn_states_and_initial_states():
    layer = nn.BiRNN(nn.GRUCell(4, 5), nn.GRUCell(4, 5))
    x = oar.randn([2, 3, 4])
    out, (ahead, back) = layer(x, (oar.ones([2, 5]), oar.zeros([2, 5])))
    assert out.shape == [2, 3, 10]
    np.testing.assert_array_equal(out.numpy()[:, -1, :5], ahead.numpy())
    np.testing.assert_array_equal(out.numpy()[:, 0, 5:], back.numpy())
    assert not np.allclose(out.numpy(), layer(x)[0].numpy())


def test_a_cell_alone():
    cell = nn.LSTMCell(4, 6, proj_size=2)
    out, (hidden, memory) = cell(oar.randn([3, 4]))
    assert out.shape == [3, 2] and hidden.shape == [3, 2] and memory.shape == [3, 6]
    states = cell.get_initial_states(oar.randn([3, 4]), init_value=1.0)
    assert [s.shape for s in states] == [[3, 2], [3, 6]] and float(states[1].min()) == 1.0


def test_names_and_untrained_biases():
    layer = nn.GRU(3, 4, 2, direction="bidirectional", bias_hh_attr=False)
    names = [name for name, _ in layer.named_parameters()]
    assert "weight_ih_l0" in names and "bias_ih_l1_reverse" in names and "bias_hh_l0" not in names
    assert layer.weight_ih_l1.shape == [12, 8]
    assert layer.weight_hh_l0 is layer[0].cell_fw.weight_hh
    assert layer[0].cell_fw.bias_hh.stop_gradient
    assert str(nn.LSTM(3, 4, 2, dropout=0.5)).startswith("LSTM(3, 4, num_layers=2, dropout=0.5")


def test_dropout_between_layers_only_in_training():
    layer = nn.LSTM(3, 4, 2, dropout=0.5)
    x = oar.randn([2, 5, 3])
    assert not np.allclose(layer(x)[0].numpy(), layer(x)[0].numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())


def test_errors():
    with pytest.raises(ValueError, match="direction should be forward"):
        nn.GRU(3, 4, direction="backward")
    with pytest.raises(ValueError, match="smaller than hidden_size"):
        nn.LSTMCell(3, 4, proj_size=4)
    with pytest.raises(ValueError, match="tanh or relu"):
        nn.SimpleRNNCell(3, 4, activation="gelu")
    with pytest.raises(NotImplementedError, match="state_shape"):
        nn.RNNCellBase().get_initial_states(oar.ones([2, 3]))
    with pytest.raises(ValueError, match="'tanh', 'relu', 'gru' or 'lstm'"):
        oar._C.ops.recurrent(oar.ones([1, 2, 4]), oar.ones([4, 4]), oar.ones([2, 4]), mode="elman")
