"""n:m sparsity against loops over blocks."""

from itertools import combinations, product

import numpy as np
import pytest

import oar
from oar.incubate import asp


@pytest.fixture(autouse=True)
def _nothing_excluded():
    asp.reset_excluded_layers()
    yield
    asp.reset_excluded_layers()


def blocks_of(matrix, m):
    """The m x m blocks, filled up with zeros."""
    padded = np.pad(matrix, [(0, -s % m) for s in matrix.shape])
    return [padded[i:i + m, j:j + m] for i in range(0, len(padded), m) for j in range(0, padded.shape[1], m)]


@pytest.mark.parametrize("n, m", [(2, 4), (1, 4), (3, 4), (1, 2)])
def test_smallest_of_neighbours(n, m):
    layer = oar.nn.Linear(10, 5)
    before = layer.weight.numpy().copy()
    masks = asp.prune_model(layer, n, m, with_mask=False)
    after = layer.weight.numpy()
    assert list(masks) == [layer.weight.name] and (masks[layer.weight.name].numpy() * before == after).all()
    for column in range(5):
        for start in range(0, 10, m):
            old, new = before[start:start + m, column], after[start:start + m, column]
            kept = set(np.argsort(np.abs(old))[max(len(old) - (m - n), 0):])
            if len(old) == m:
                assert set(np.nonzero(new)[0]) == kept
            assert set(np.nonzero(new)[0]) <= set(range(len(old))) and len(np.nonzero(new)[0]) <= m - n


def test_convolutions_are_pruned_along_their_input():
    layer = oar.nn.Conv2D(8, 3, 3)
    before = layer.weight.numpy().copy()
    asp.prune_model(layer, with_mask=False)
    after = layer.weight.numpy()
    assert asp.calculate_density(after) == 0.5 and layer.bias.numpy().shape == (3,)
    for out, start, y, x in product(range(3), (0, 4), range(3), range(3)):
        old, new = before[out, start:start + 4, y, x], after[out, start:start + 4, y, x]
        assert set(np.nonzero(new)[0]) == set(np.argsort(np.abs(old))[2:])


@pytest.mark.parametrize("algorithm", ["mask_2d_greedy", "mask_2d_best"])
def test_squares(algorithm):
    layer = oar.nn.Linear(8, 10)
    before = layer.weight.numpy().copy()
    asp.prune_model(layer, mask_algo=algorithm, with_mask=False)
    rows = [np.isin(range(4), kept) for kept in combinations(range(4), 2)]
    every = [np.array(p) for p in product(rows, repeat=4) if (np.sum(p, 0) <= 2).all()]
    for old, new in zip(blocks_of(before.T, 4), blocks_of(layer.weight.numpy().T, 4)):
        assert ((new != 0).sum(0) <= 2).all() and ((new != 0).sum(1) <= 2).all()
        if algorithm == "mask_2d_best":
            assert np.abs(new).sum() == pytest.approx(max(np.abs(old)[p].sum() for p in every), rel=1e-6)
        else:
            kept = np.zeros((4, 4), bool)
            for at in np.argsort(-np.abs(old), None):
                row, column = divmod(at, 4)
                kept[row, column] = kept[row].sum() < 2 and kept[:, column].sum() < 2
            np.testing.assert_array_equal(new, old * kept)


def model():
    return oar.nn.Sequential(oar.nn.Linear(8, 8), oar.nn.ReLU(), oar.nn.Linear(8, 4))


def train(net, optimizer, steps=3):
    for _ in range(steps):
        (net(oar.randn([5, 8])) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()


def test_training_keeps_zeros():
    net = model()
    optimizer = asp.decorate(oar.optimizer.Adam(0.1, parameters=net.parameters()))
    train(net, optimizer, 1)
    assert asp.calculate_density(net[0].weight) == 1.0
    masks = asp.prune_model(net)
    zero = {name: mask.numpy() == 0 for name, mask in masks.items()}
    train(net, optimizer)
    for layer in (net[0], net[2]):
        assert not layer.weight.numpy()[zero[layer.weight.name]].any()
        assert asp.calculate_density(layer.weight) == 0.5 and asp.calculate_density(layer.bias) == 1.0
    loss = (net(oar.randn([5, 8])) ** 2).mean()
    loss.backward()
    optimizer.minimize(loss)
    assert asp.calculate_density(net[0].weight) == 0.5
    assert optimizer.get_lr() == 0.1

    state = optimizer.state_dict()
    assert (state[f"{net[0].weight.name}.asp_mask"].numpy() == masks[net[0].weight.name].numpy()).all()
    again = asp.decorate(oar.optimizer.Adam(0.1, parameters=net.parameters()))
    again.set_state_dict(state)
    train(net, again)
    assert asp.calculate_density(net[2].weight) == 0.5
    with pytest.raises(ValueError, match="asp_mask"):
        again.set_state_dict({})


def test_groups_of_parameters():
    net = model()
    optimizer = asp.decorate(oar.optimizer.SGD(0.1, parameters=[{"params": net[0].parameters()},
                                                                {"params": net[2].parameters()}]))
    asp.prune_model(net)
    train(net, optimizer)
    assert asp.calculate_density(net[2].weight) == 0.5


def test_what_is_pruned():
    net = model()
    asp.set_excluded_layers([net[0].full_name()])
    assert list(asp.prune_model(net, with_mask=False)) == [net[2].weight.name]
    asp.reset_excluded_layers()
    assert len(asp.prune_model(net, with_mask=False)) == 2

    class Mine(oar.nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([8, 8])

    calls = []

    def half(weight, m, n, algorithm, name):
        calls.append((m, n, algorithm, name))
        mask = np.zeros_like(weight)
        mask[:2] = 1
        return weight * mask, mask

    mine = Mine()
    assert asp.prune_model(mine, with_mask=False) == {}
    asp.add_supported_layer(Mine, half)
    asp.prune_model(mine, 1, 4, with_mask=False)
    assert calls == [(4, 1, "mask_1d", mine.weight.name)] and asp.calculate_density(mine.weight) == 0.25
    with pytest.warns(UserWarning, match="is not pruned: the axis .* has 3 elements, fewer than 4"):
        asp.prune_model(oar.nn.Linear(3, 8), with_mask=False)


def test_mistakes():
    net = model()
    with pytest.raises(RuntimeError, match="Call asp.decorate with its optimizer first"):
        asp.prune_model(net)
    with pytest.raises(ValueError, match="n is 4 and m 4"):
        asp.prune_model(net, 4, 4, with_mask=False)
    with pytest.raises(ValueError, match="mask_algo is 'mask_3d'"):
        asp.prune_model(net, mask_algo="mask_3d", with_mask=False)
    with pytest.raises(ValueError, match="too many patterns for n=4 and m=8. Use 'mask_2d_greedy'"):
        asp.prune_model(net, 4, 8, "mask_2d_best", with_mask=False)
    with pytest.raises(TypeError, match="it must be a Layer"):
        asp.prune_model(oar.ones([2]))
    with pytest.raises(TypeError, match="it must be a layer, a class of layers or a name"):
        asp.add_supported_layer(3)
    with pytest.raises(ValueError, match="the optimizer has no parameters"):
        asp.decorate(oar.optimizer.SGD(0.1, parameters=[]))
