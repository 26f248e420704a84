"""Beam search paths, sampled classes, and the spectral norm as a layer."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather_tree_follows_parents(dtype):
    rng = np.random.default_rng(1)
    ids, parents = rng.integers(0, 50, (5, 3, 4)).astype(dtype), rng.integers(0, 4, (5, 3, 4)).astype(dtype)
    wanted = np.empty_like(ids)
    for batch in range(3):
        for beam in range(4):
            at = beam
            for step in range(4, -1, -1):
                wanted[step, batch, beam] = ids[step, batch, at]
                at = parents[step, batch, at]
    made = F.gather_tree(oar.to_tensor(ids), oar.to_tensor(parents))
    assert made.dtype.name == dtype
    np.testing.assert_array_equal(made.numpy(), wanted)


def test_gather_tree_of_one_or_no_step():
    ids = oar.to_tensor([[[3, 1]]])
    assert F.gather_tree(ids, oar.zeros_like(ids)).tolist() == [[[3, 1]]]
    none = oar.zeros([0, 2, 3], dtype="int64")
    assert F.gather_tree(none, none).shape == [0, 2, 3]


def test_gather_tree_errors():
    x = oar.zeros([2, 2, 2], dtype="int64")
    with pytest.raises(ValueError, match=r"\[steps, batch, beams\], not \[2\]"):
        F.gather_tree(x[0, 0], x[0, 0])
    with pytest.raises(ValueError, match="must be the same"):
        F.gather_tree(x, x[:1])
    with pytest.raises(TypeError, match="parents must be int32 or int64, not float32"):
        F.gather_tree(x, x.astype("float32"))


@pytest.mark.parametrize("num_samples", [2, 6, 20])
def test_class_center_sample(num_samples):
    label = oar.to_tensor([11, 5, 1, 3, 12, 2, 15, 19, 18, 19])
    remapped, sampled = F.class_center_sample(label, 20, num_samples)
    sampled = sampled.numpy()
    present = np.unique(label.numpy())
    assert len(sampled) == max(num_samples, len(present)) == len(set(sampled))
    np.testing.assert_array_equal(sampled[: len(present)], present)
    np.testing.assert_array_equal(sampled[remapped.numpy()], label.numpy())
    assert set(sampled) <= set(range(20))


def test_class_center_sample_is_random_and_repeatable():
    label = oar.to_tensor([0], dtype="int32")
    runs = []
    for seed in (1, 1, 2):
        oar.seed(seed)
        runs.append(F.class_center_sample(label, 1000, 50)[1].tolist())
    assert runs[0] == runs[1] != runs[2]


def test_class_center_sample_errors():
    label = oar.to_tensor([0, 4])
    for args, text in [((4, 2), "from 0 to 3"), ((5, 6), "not be more than num_classes, 5"),
                       ((5, 2, "x"), "one process")]:
        with pytest.raises(ValueError, match=text):
            F.class_center_sample(label, *args)


@pytest.mark.parametrize("dim, iterations", [(0, 1), (1, 5), (1, 100)])
def test_spectral_norm_layer(dim, iterations):
    weight = np.random.default_rng(0).normal(size=(3, 4, 2))
    layer = nn.SpectralNorm([3, 4, 2], dim=dim, power_iters=iterations, dtype="float64")
    matrix = np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    u, before = layer.weight_u.numpy(), layer.weight_u.numpy().copy()
    for _ in range(iterations):
        v = matrix.T @ u / np.linalg.norm(matrix.T @ u)
        u = matrix @ v / np.linalg.norm(matrix @ v)
    x = oar.to_tensor(weight, stop_gradient=False)
    made = layer(x)
    np.testing.assert_allclose(made.numpy(), weight / (u @ matrix @ v), rtol=1e-10)
    np.testing.assert_array_equal(layer.weight_u.numpy(), before)
    assert set(layer.state_dict()) == {"weight_u", "weight_v"}
    if iterations == 100:
        np.testing.assert_allclose(u @ matrix @ v, np.linalg.norm(matrix, 2), rtol=1e-6)
    cotangent = np.random.default_rng(1).normal(size=weight.shape)
    (made * oar.to_tensor(cotangent)).sum().backward()
    sigma, outer = u @ matrix @ v, np.outer(u, v).reshape(np.moveaxis(weight, dim, 0).shape)
    wanted = cotangent / sigma - np.sum(cotangent * weight) / sigma**2 * np.moveaxis(outer, 0, dim)
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-9, atol=1e-12)


def test_spectral_norm_layer_errors():
    with pytest.raises(AssertionError, match="cannot be equal to 0"):
        nn.SpectralNorm([2, 0])
    with pytest.raises(AssertionError, match="less than the length"):
        nn.SpectralNorm([2, 3], dim=2)
