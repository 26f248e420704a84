"""Layers with experts in one process: which rows go where, limits, losses of gates, values and gradients."""

import math

import numpy as np
import pytest

import oar
from oar import nn
from oar.distributed.models.moe import utils as routes
from oar.distributed.utils import global_gather, global_scatter
from oar.incubate.distributed.models import moe
from oar.incubate.distributed.models.moe.utils import count_by_gate, limit_by_capacity

RANDOM = np.random.default_rng(7)


def test_rows_are_counted_and_put_in_order():
    chosen = RANDOM.integers(-1, 5, (20, 2))
    flat = chosen.reshape(-1)
    places, local, everywhere = count_by_gate(oar.to_tensor(chosen), 5, 1)
    assert local.tolist() == everywhere.tolist() == [int((flat == e).sum()) for e in range(5)]
    assert places.tolist() == [i for e in range(5) for i in range(40) if flat[i] == e]
    with pytest.raises(ValueError, match="numbers has 4, but upper_range is 3"):
        routes._number_count(oar.to_tensor([4]), 3)


def test_limits_are_those_of_a_loop():
    workers, experts = 3, 4
    asked, capacity = RANDOM.integers(0, 6, (workers, experts)), np.array([0, 4, 7, 100])
    left, wanted = capacity.copy(), np.zeros_like(asked)
    for w in range(workers):
        for e in range(experts):
            wanted[w, e] = min(asked[w, e], left[e])
            left[e] -= wanted[w, e]
    found = routes._limit_by_capacity(oar.to_tensor(asked.reshape(-1)), oar.to_tensor(capacity), workers)
    np.testing.assert_array_equal(found.numpy().reshape(workers, experts), wanted)
    chosen, places = RANDOM.integers(-1, 4, (15, 2)), [2, 0, 5, 100]
    wanted, left = chosen.copy(), list(places)
    for place, expert in np.ndenumerate(chosen):
        if expert >= 0:
            wanted[place] = expert if left[expert] > 0 else -1
            left[expert] -= 1
    np.testing.assert_array_equal(routes._prune_gate_by_capacity(oar.to_tensor(chosen), oar.to_tensor(places), 4, 1).numpy(), wanted)
    own, _, kept = limit_by_capacity(oar.to_tensor(chosen), 4, 1, 3)
    assert own.tolist() == [min(int((chosen == e).sum()), 3) for e in range(4)]
    assert [int((kept.numpy() == e).sum()) for e in range(4)] == own.tolist()


def test_second_experts_are_drawn():
    chosen, value, drawn = np.array([[0, 1], [2, 3], [1, 0]]), np.array([[0.5, 0.3], [0.6, 0.1], [0.9, 0.05]]), np.array([0.5, 0.5, 0.05])
    found = routes._random_routing(oar.to_tensor(chosen), oar.to_tensor(value), oar.to_tensor(drawn))
    assert found.tolist() == [[0, 1], [2, -1], [1, 0]]
    with pytest.raises(RuntimeError, match="topk is 3"):
        routes._random_routing(oar.to_tensor(chosen), oar.to_tensor(value), oar.to_tensor(drawn), 3)


def layer_of(gate, experts=4, **settings):
    oar.seed(1)
    made = [nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6)) for _ in range(experts)]
    return moe.MoELayer(6, nn.LayerList(made), gate, **settings).to(dtype="float64")


def by_rows(layer, rows, value, chosen):
    """The layer as a sum over rows and their experts."""
    results = []
    for row, weights, numbers in zip(rows, value, chosen.tolist()):
        total = oar.zeros([6], "float64")
        for weight, expert in zip(weights, numbers):
            if expert >= 0:
                total = total + weight * layer.experts[expert](row.unsqueeze(0))[0]
        results.append(total)
    return oar.stack(results)


@pytest.mark.parametrize("gate", ["naive", "gshard", "switch"])
@pytest.mark.parametrize("again", [0, 1])
def test_layers_are_sums_over_rows(gate, again):
    layer = layer_of({"type": gate, "top_k": 1 if gate == "switch" else 2}, recompute_interval=again)
    layer.gate.random_routing, layer.gate.switch_eps, layer.gate.capacity = False, 0.0, (0.2, 0.2)
    x = oar.to_tensor(RANDOM.normal(size=(2, 5, 6)), stop_gradient=False)
    twin = x.detach().reshape([-1, 6])
    twin.stop_gradient = False
    out = layer(x)
    value, chosen = layer.gate(twin)
    assert (int((chosen < 0).sum()) > 0) == (gate != "naive")
    wanted = by_rows(layer, twin, value, chosen)
    np.testing.assert_allclose(out.numpy().reshape(-1, 6), wanted.numpy(), rtol=1e-12, atol=1e-14)
    parameters = list(layer.parameters())
    weights = oar.to_tensor(RANDOM.normal(size=(10, 6)))
    found = oar.grad([(out.reshape([-1, 6]) * weights).sum()], [x, *parameters], allow_unused=True)
    expected = oar.grad([(wanted * weights).sum()], [twin, *parameters], allow_unused=True)
    for one, other in zip(found, expected):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one.numpy().reshape(other.shape), other.numpy(), rtol=1e-10, atol=1e-13)


def test_losses_of_gates():
    rows = oar.to_tensor(RANDOM.normal(size=(12, 6)).astype("float32"))
    gate = moe.GShardGate(6, 4, 1)
    gate(rows)
    scores = gate.gate(rows).numpy()
    softmax = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    best = np.argsort(-scores, axis=1)[:, :2]
    share = np.array([(best == e).sum() for e in range(4)]) / 12
    assert gate.has_loss and gate.get_loss(clear=False).item() == pytest.approx((share * softmax.mean(0)).mean() * 16, rel=1e-5)
    assert gate.get_loss() is not None and gate.get_loss() is None
    gate = moe.SwitchGate(6, 4, 1, capacity=(0.3, 2.0))
    gate.eval()
    value, chosen = gate(rows)
    scores = gate.gate(rows).numpy()
    softmax = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(value.numpy()[:, 0], softmax.max(1), rtol=1e-5)
    share = np.array([(softmax.argmax(1) == e).sum() for e in range(4)]) / 12
    assert gate.get_loss().item() == pytest.approx((share * softmax.sum(0) / 12).sum() * 4, rel=1e-5)
    gate.train()
    _, chosen = gate(rows)
    assert max(np.bincount(chosen.numpy()[chosen.numpy() >= 0])) <= math.ceil(0.3 * 12)


def test_experts_without_rows():
    layer = layer_of({"type": "naive", "top_k": 1}, experts=3)
    layer.gate.gate.bias.set_value(np.array([0.0, 100.0, 0.0]))
    layer(oar.ones([1, 2, 6], "float64")).sum().backward()
    assert layer.experts[0][0].weight.grad is None and layer.experts[1][0].weight.grad is not None


MISTAKES = {
    "gate": (lambda: moe.MoELayer(6, [nn.Linear(6, 6)], 3), AssertionError, "gate must be a dict or a gate, not int"),
    "type": (lambda: layer_of({"type": "best"}), AssertionError, "the type of the gate is 'best'"),
    "kind of gate": (lambda: layer_of(moe.BaseGate(2, 1)), TypeError, "derive it from NaiveGate"),
    "experts": (lambda: moe.MoELayer(6, nn.LayerList([])), ValueError, "experts is empty"),
    "too many": (lambda: layer_of({"type": "naive", "top_k": 5}), ValueError, "topk is 5, but there are 4 experts"),
    "two": (lambda: moe.GShardGate(6, 4, 1, topk=1), AssertionError, "topk is 1, but it chooses two"),
    "one": (lambda: moe.SwitchGate(6, 4, 1, topk=2), AssertionError, "topk is 2, but it chooses one"),
    "shape": (lambda: layer_of({})(oar.ones([3, 6])), ValueError, r"inp has shape \[3, 6\]"),
    "rows": (lambda: global_scatter(oar.ones([3, 1]), oar.to_tensor([2]), oar.to_tensor([2])), ValueError, "adds up to 2 rows"),
    "counts": (lambda: global_gather(oar.ones([3, 1]), oar.to_tensor([-3]), oar.to_tensor([3])), ValueError, r"local_count is \[-3\]"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what):
    call, error, text = MISTAKES[what]
    with pytest.raises(error, match=text):
        call()
