"""Weights computed from other parameters: weight_norm, spectral_norm; and RMSNorm."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn.utils import remove_weight_norm, spectral_norm, weight_norm


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm_keeps_the_weight_and_trains_its_parts(dim):
    layer = nn.Linear(4, 3)
    before, x = layer.weight.numpy(), oar.randn([2, 4])
    wanted = layer(x).numpy()
    weight_norm(layer, dim=dim)
    assert sorted(n for n, _ in layer.named_parameters()) == ["bias", "weight_g", "weight_v"]
    np.testing.assert_allclose(layer(x).numpy(), wanted, atol=1e-5)
    (layer(x) ** 2).sum().backward()
    # The direction's gradient is orthogonal to the direction.
    gradient, direction = layer.weight_v.grad.numpy(), layer.weight_v.numpy()
    axis = None if dim in (None, -1) else 1 - dim
    np.testing.assert_allclose((gradient * direction).sum(axis), 0, atol=1e-5)
    layer.weight_g.set_value(layer.weight_g * 2)
    remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.numpy(), 2 * before, atol=1e-5)
    assert isinstance(layer.weight, type(layer.bias))
    with pytest.raises(ValueError, match="not found"):
        remove_weight_norm(layer)


def test_spectral_norm_divides_by_the_largest_singular_value():
    layer = spectral_norm(nn.Linear(6, 4), n_power_iterations=50)
    layer(oar.randn([2, 6])).sum().backward()
    assert np.linalg.svd(layer.weight.numpy())[1][0] == pytest.approx(1, rel=1e-4)
    assert layer.weight_orig.grad is not None
    layer.eval()
    u = layer.weight_u.numpy()
    layer(oar.randn([2, 6]))
    np.testing.assert_array_equal(layer.weight_u.numpy(), u)
    with pytest.raises(RuntimeError, match="two spectral_norm hooks"):
        spectral_norm(layer)


def test_rms_norm_layer():
    layer = nn.RMSNorm(8, epsilon=1e-6)
    x = np.random.default_rng(0).standard_normal((3, 8)).astype("float32")
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(layer(oar.to_tensor(x)).numpy(), wanted, rtol=1e-5)
    assert layer.weight.shape == [8]
