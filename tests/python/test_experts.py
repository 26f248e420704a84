"""Tokens sent to experts and back, against loops over tokens and experts."""

import numpy as np
import pytest

import oar
from oar.incubate.nn import functional as fused
from oar.nn import functional as F


def problem(tokens=7, experts=4, size=3, seed=0):
    r = np.random.default_rng(seed)
    chances = np.exp(r.normal(size=(tokens, experts)))
    return r.normal(size=(tokens, size)), chances / chances.sum(1, keepdims=True)


def chosen_by_loops(chances, bias, k):
    return np.argsort(-(chances + (0 if bias is None else bias)), 1, kind="stable")[:, :k]


def queue(chosen, expert, by_choice):
    """The (token, choice) pairs that want an expert, in the order in which it takes them."""
    pairs = [(t, i) for t, i in np.ndindex(chosen.shape) if chosen[t, i] == expert]
    return sorted(pairs, key=lambda pair: pair[::-1]) if by_choice else pairs


@pytest.mark.parametrize("use_pad", [True, False])
@pytest.mark.parametrize("k, capacity", [(1, 2), (2, 3), (4, 2), (3, 20)])
@pytest.mark.parametrize("biased", [True, False])
def test_dispatch(use_pad, k, capacity, biased):
    x, gate = problem()
    bias = np.array([0.5, 0.0, -0.3, 0.1]) if biased else None
    y, weights, index, offset, experts = fused.moe_gate_dispatch(
        oar.to_tensor(x), oar.to_tensor(gate), oar.to_tensor(bias) if biased else None, k, capacity, use_pad)
    chosen = chosen_by_loops(gate, bias, k)
    wanted_y = np.zeros((4 * capacity if use_pad else 7 * k, 3))
    wanted_weights, wanted_index, ends, end = np.zeros((7, k)), np.zeros((k, 7)), [], 0
    for e in range(4):
        pairs = queue(chosen, e, use_pad)
        for place, (t, i) in enumerate(pairs[:capacity]):
            row = e * capacity + place if use_pad else end + place
            wanted_y[row], wanted_index[i, t], wanted_weights[t, i] = x[t], row, gate[t, e]
        end += len(pairs)
        ends.append(end)
    np.testing.assert_array_equal(y.numpy(), wanted_y)
    np.testing.assert_array_equal(weights.numpy(), wanted_weights)
    np.testing.assert_array_equal(index.numpy(), wanted_index)
    assert offset.tolist() == ends and experts.tolist() == chosen.tolist()
    assert [t.dtype.name for t in (index, offset, experts)] == ["int32", "int64", "int32"]
    back = fused.moe_combine(y, weights, index.transpose([1, 0]))
    np.testing.assert_allclose(back.numpy(), x * wanted_weights.sum(1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("use_pad", [True, False])
def test_gradients_of_dispatch(use_pad):
    x, gate = (oar.to_tensor(part, stop_gradient=False) for part in problem())
    y, weights, index, _, experts = fused.moe_gate_dispatch(x, gate, None, 2, 2, use_pad)
    (y * y).sum().backward(retain_graph=True)
    kept = (weights.numpy() > 0).sum(1, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy() * kept)
    (weights * weights).sum().backward()
    wanted = np.zeros(gate.shape)
    np.put_along_axis(wanted, experts.numpy(), 2 * weights.numpy(), 1)
    np.testing.assert_allclose(gate.grad.numpy(), wanted)


def test_dispatch_captured():
    x, gate = (oar.to_tensor(part) for part in problem())
    function = oar.jit.to_static(lambda x, gate: fused.moe_gate_dispatch(x, gate, None, 2, 3, True)[:3])
    for a, b in zip(function(x, gate), fused.moe_gate_dispatch(x, gate, None, 2, 3, True)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_dispatch_over_processes():
    x, gate = (oar.to_tensor(part) for part in problem())
    plain = fused.moe_gate_dispatch(x, gate, None, 2, 3, True)
    spread = fused.moe_gate_dispatch_permute(x, gate, None, 2, 3, 2)
    assert spread[0].shape == [2, 2, 3, 3]
    for local, process in np.ndindex(2, 2):
        expert = process * 2 + local
        np.testing.assert_array_equal(spread[0][local, process].numpy(), plain[0][expert * 3:expert * 3 + 3].numpy())
    for a, b in zip(spread[1:], plain[1:]):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    with pytest.raises(ValueError, match="world_size is 3; it must divide 4"):
        fused.moe_gate_dispatch_permute(x, gate, None, 2, 3, 3)


@pytest.mark.parametrize("use_pad, reverse", [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("start, end", [(0, 4), (1, 3), (3, 4)])
@pytest.mark.parametrize("capacity", [1, 3, 20])
def test_dispatch_to_some_experts(use_pad, reverse, start, end, capacity):
    x, gate = problem()
    chosen = chosen_by_loops(gate, None, 2)
    given = np.take_along_axis(gate, chosen, 1)
    y, weights, index, source, every, local = fused.moe_gate_dispatch_partial_nosoftmaxtopk(
        oar.to_tensor(x), oar.to_tensor(given), oar.to_tensor(chosen.astype("int32")), 2, capacity, 4, use_pad, start, end,
        reverse)
    rows, wanted_weights, wanted_index, counts = [], np.zeros((7, 2)), np.zeros((2, 7)), np.zeros(4)
    for e in range(start, end):
        pairs = queue(chosen, e, True)
        taken = sorted(pairs[-capacity:] if reverse else pairs[:capacity])
        counts[e] = len(pairs) if use_pad else len(taken)
        for t, i in taken:
            wanted_weights[t, i], wanted_index[i, t] = given[t, i], len(rows)
            rows.append(t)
        if use_pad:
            rows += [7] * (capacity - len(taken))
    assert source.tolist() == rows
    np.testing.assert_array_equal(y.numpy(), np.concatenate([x, np.zeros((1, 3))])[rows])
    np.testing.assert_array_equal(weights.numpy(), wanted_weights)
    np.testing.assert_array_equal(index.numpy(), wanted_index)
    assert every.tolist() == np.bincount(chosen.ravel(), minlength=4).tolist() and local.tolist() == counts.tolist()


def test_dispatch_to_experts_that_nobody_chose():
    y, weights, _, source, _, local = fused.moe_gate_dispatch_partial_nosoftmaxtopk(
        oar.ones([3, 2]), oar.ones([3, 2]), oar.to_tensor([[0, 1], [0, 1], [0, 2]]), 2, 2, 4, False, 3, 4, True)
    assert y.shape == [0, 2] and source.shape == [0]
    assert local.tolist() == [0] * 4 and weights.sum().item() == 0


def test_mistakes_of_dispatch():
    x, gate = oar.ones([3, 2]), oar.ones([3, 4])
    with pytest.raises(ValueError, match="k is 5; it must be from 1 to 4"):
        fused.moe_gate_dispatch(x, gate, None, 5, 2, True)
    with pytest.raises(ValueError, match="capacity is 0"):
        fused.moe_gate_dispatch(x, gate, None, 1, 0, True)
    with pytest.raises(ValueError, match="a row for each of the 3 tokens"):
        fused.moe_gate_dispatch(x, gate[:2], None, 1, 1, True)
    with pytest.raises(ValueError, match=r"corr_bias has shape \[3\]; it must be \[4\]"):
        fused.moe_gate_dispatch(x, gate, oar.ones([3]), 1, 1, True)
    chosen = oar.zeros([3, 1], dtype="int32")
    with pytest.raises(ValueError, match="do not go together"):
        fused.moe_gate_dispatch_partial_nosoftmaxtopk(x, x[:, :1], chosen, 1, 1, 4, True, 0, 2, True)
    with pytest.raises(ValueError, match="from 2 to 2"):
        fused.moe_gate_dispatch_partial_nosoftmaxtopk(x, x[:, :1], chosen, 1, 1, 4, True, 2, 2, False)


def test_numbers_of_experts():
    process, expert = fused.build_src_rank_and_local_expert_id(oar.to_tensor([2, 0, 1, 3, 1, 0]), [2, 0, 1, 3, 1, 0], 3)
    each = np.repeat(np.arange(6), [2, 0, 1, 3, 1, 0])
    assert process.tolist() == (each // 3).tolist() and expert.tolist() == (each % 3).tolist()
    chosen = oar.to_tensor([[0, 1, 2], [3, 0, 1]])
    grouped = fused.expand_modality_expert_id(chosen, 0, 4, 1, True)
    assert grouped.tolist() == [[0, 5, 10], [3, 4, 9]]
    spread = fused.expand_modality_expert_id(chosen, 2, 4, 1, True)
    assert spread.tolist() == [[e // 2 * 4 + 2 + e % 2 for e in row] for row in grouped.tolist()]


def routes(tokens, experts, k, seed=0):
    r = np.random.default_rng(seed)
    chosen = np.stack([r.permutation(experts)[:k] for _ in range(tokens)])
    chosen[r.random(chosen.shape) < 0.3] = -1
    return chosen, np.where(chosen >= 0, r.random(chosen.shape), 0.0)


@pytest.mark.parametrize("padding, buffer", [(1, -1), (4, -1), (4, 40)])
def test_permute_and_back(padding, buffer):
    x = np.random.default_rng(1).normal(size=(9, 3))
    chosen, chances = routes(9, 5, 3)
    counts = [int((chosen == e).sum()) for e in range(5)]
    scale = np.arange(9.0)[:, None]
    tokens = oar.to_tensor(x, stop_gradient=False)
    rows, index, weights, scales, experts = F.moe_permute(
        tokens, oar.to_tensor(scale), oar.to_tensor(chosen.astype("int32")), oar.to_tensor(chances), 5, counts, padding,
        return_expert_indices=True, override_buffer_size=buffer)
    wanted = {"rows": [], "weights": [], "scales": [], "experts": []}
    wanted_index = np.full((9, 5), -1)
    for e in range(5):
        for t, i in queue(chosen, e, False):
            wanted_index[t, e] = len(wanted["rows"])
            for name, value in (("rows", x[t]), ("weights", chances[t, i]), ("scales", scale[t]), ("experts", e)):
                wanted[name].append(value)
        while len(wanted["rows"]) % padding or (e == 4 and len(wanted["rows"]) < buffer):
            for name, value in (("rows", [0] * 3), ("weights", 0), ("scales", [0]), ("experts", -1)):
                wanted[name].append(value)
    for name, value in (("rows", rows), ("weights", weights), ("scales", scales), ("experts", experts)):
        np.testing.assert_array_equal(value.numpy(), wanted[name])
    np.testing.assert_array_equal(index.numpy(), wanted_index)
    routemap = oar.to_tensor(chosen.astype("int32"))
    back, back_chances = F.moe_unpermute(rows * weights.unsqueeze(-1), index, routemap, weights, 9, 5)
    np.testing.assert_allclose(back.numpy(), x * chances.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(back_chances.numpy(), chances)
    weighted, _ = F.moe_unpermute(rows, index, routemap, weights, 9, 5, using_weighted_combine=True)
    np.testing.assert_allclose(weighted.numpy(), back.numpy(), rtol=1e-12)
    (weighted * weighted).sum().backward()
    np.testing.assert_allclose(tokens.grad.numpy(), 2 * x * chances.sum(1, keepdims=True) ** 2, rtol=1e-12)


def test_permute_without_rows():
    chosen = oar.to_tensor([[0, 1], [1, -1]])
    rows, index, weights, scale = F.moe_permute(oar.ones([2, 3]), None, chosen, oar.ones([2, 2]), 2, [1, 2], 2, False)
    assert rows.shape == [0, 3] and index.tolist() == [[0, 2], [-1, 3]] and weights.tolist() == [1, 0, 1, 1]
    assert scale.shape == [0]
    nobody = F.moe_permute(oar.ones([2, 3]), None, oar.full([2, 2], -1, "int32"), oar.ones([2, 2]), 2, [0, 0], 2)
    assert nobody[0].shape == [0, 3] and nobody[1].tolist() == [[-1, -1]] * 2


def test_mistakes_of_permute():
    chosen, chances = oar.to_tensor([[0, 1], [1, -1]]), oar.ones([2, 2])
    with pytest.raises(ValueError, match=r"the experts have \[1, 2\] tokens"):
        F.moe_permute(oar.ones([2, 3]), None, chosen, chances, 2, [2, 2], 2)
    with pytest.raises(ValueError, match="override_buffer_size is 3, but the experts need 4 rows"):
        F.moe_permute(oar.ones([2, 3]), None, chosen, chances, 2, [1, 2], 2, override_buffer_size=3)
    with pytest.raises(TypeError, match="must be int32"):
        F.moe_permute(oar.ones([2, 3]), chances, chosen, chances, 2, [1, 2], 2, using_ue8m0_scale=True)
    with pytest.raises(ValueError, match="a column for each of the 3 experts"):
        F.moe_unpermute(oar.ones([4, 3]), chosen, chosen, oar.ones([4]), 2, 3)


def test_backward_of_weighted_swiglu():
    r = np.random.default_rng(2)
    o1, weight = (oar.to_tensor(r.normal(size=shape), stop_gradient=False) for shape in ((2, 5, 6), (2, 5)))
    gradient = oar.to_tensor(r.normal(size=(2, 5, 3)))
    out = F.swiglu(o1) * weight.unsqueeze(-1)
    wanted = oar.grad(out, [o1, weight], gradient)
    found = fused.fused_swiglu_weighted_bwd(o1, gradient, weight)
    for a, b in zip(found, [*wanted, out]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)
    half = fused.fused_swiglu_weighted_bwd(o1.astype("bfloat16"), gradient.astype("bfloat16"), weight.astype("float32"))
    assert [t.dtype.name for t in half] == ["bfloat16", "float32", "bfloat16"]
    np.testing.assert_allclose(half[0].astype("float64").numpy(), wanted[0].numpy(), rtol=0.05, atol=0.05)
    with pytest.raises(ValueError, match="a weight for each row"):
        fused.fused_swiglu_weighted_bwd(o1, gradient, weight[0])


def test_backward_of_cross_entropy():
    r = np.random.default_rng(3)
    scores = oar.to_tensor(r.normal(size=(4, 5)).astype("float32"), stop_gradient=False)
    label, gradient = oar.to_tensor([[1], [4], [-100], [0]]), oar.to_tensor(r.normal(size=(4, 1)).astype("float32"))
    loss = F.cross_entropy(scores, label, reduction="none", ignore_index=-100)
    wanted = oar.grad(loss, [scores], gradient.reshape(loss.shape))[0]
    found = fused.cross_entropy_with_softmax_bwd_w_downcast(label, F.softmax(scores), gradient)
    assert found.dtype.name == "bfloat16"
    np.testing.assert_allclose(found.astype("float32").numpy(), wanted.numpy(), rtol=1e-2, atol=1e-6)
    with pytest.raises(ValueError, match="one for each row of softmax"):
        fused.cross_entropy_with_softmax_bwd_w_downcast(label[:2], F.softmax(scores), gradient)


def test_second_derivatives_of_dispatch():
    def slope(array):
        x = oar.to_tensor(array, stop_gradient=False)
        y, weights, _, _, _ = fused.moe_gate_dispatch(x, F.softmax(x), None, 2, 2, True)
        first = oar.grad((y**3).sum() + (weights**2).sum(), [x], create_graph=True)[0]
        return x, (first**2).sum()

    x, total = slope(problem(experts=4)[0])
    second = oar.grad(total, [x])[0].numpy()
    step = np.zeros(x.shape)
    step[1, 2] = 1e-6
    higher, lower = (float(slope(x.numpy() + s)[1]) for s in (step, -step))
    assert second[1, 2] == pytest.approx((higher - lower) / 2e-6, rel=1e-5)
