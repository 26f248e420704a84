"""Norm layers by all their names: whose statistics they use, what they keep, and what they reject."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F

SHAPE = (4, 3, 5)
X = np.random.default_rng(2).standard_normal(SHAPE).astype("float32") * 2 + 1
MEAN, VARIANCE = np.array([0.5, -1.0, 2.0], "float32"), np.array([1.5, 0.5, 3.0], "float32")


def by_given(x, mean, variance):
    return (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)


def by_batch(x):
    return by_given(x, x.mean((0, 2)), x.var((0, 2)))


def ready(layer):
    layer._mean.set_value(MEAN)
    layer._variance.set_value(VARIANCE)
    return layer


@pytest.mark.parametrize("name", ["BatchNorm", "BatchNorm1D", "SyncBatchNorm"])
def test_training_uses_the_batch_and_evaluation_the_running_statistics(name):
    layer = ready(getattr(nn, name)(3))
    layer.eval()
    np.testing.assert_allclose(layer(oar.to_tensor(X)).numpy(), by_given(X, MEAN, VARIANCE), atol=1e-5)
    np.testing.assert_array_equal(layer._mean.numpy(), MEAN)
    np.testing.assert_array_equal(layer._variance.numpy(), VARIANCE)
    layer.train()
    np.testing.assert_allclose(layer(oar.to_tensor(X)).numpy(), by_batch(X), atol=1e-5)
    np.testing.assert_allclose(layer._mean.numpy(), 0.9 * MEAN + 0.1 * X.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(layer._variance.numpy(), 0.9 * VARIANCE + 0.1 * X.var((0, 2)), rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options, of_batch", [
    ({"use_global_stats": True}, (False, False)),
    ({"trainable_statistics": True}, (True, True)),
    ({"trainable_statistics": True, "use_global_stats": True}, (False, False)),
    ({"is_test": True}, (True, False)),
])
def test_options_of_the_old_name(options, of_batch, training):
    layer = ready(nn.BatchNorm(3, **options))
    assert layer.training is not options.get("is_test", False)
    layer.train() if training else layer.eval()
    wanted = by_batch(X) if of_batch[0 if training else 1] else by_given(X, MEAN, VARIANCE)
    np.testing.assert_allclose(layer(oar.to_tensor(X)).numpy(), wanted, atol=1e-5)


def test_one_value_for_each_channel():
    layer = ready(nn.BatchNorm2D(3))
    x = oar.to_tensor(X[:1, :, :1, None], stop_gradient=False)
    (layer(x) * 2).sum().backward()
    np.testing.assert_array_equal(layer(x).numpy(), x.numpy())
    np.testing.assert_array_equal(x.grad.numpy(), np.full(x.shape, 2))
    for parameter in (layer.weight, layer.bias):
        np.testing.assert_array_equal(parameter.grad.numpy(), np.zeros(3))
    np.testing.assert_array_equal(layer._mean.numpy(), MEAN)


@pytest.mark.parametrize("base", [nn.BatchNorm2D, nn.InstanceNorm2D])
def test_a_subclass_says_which_inputs_it_takes(base):
    class Loose(base):
        def _check_input_dim(self, input):
            self.seen = input.ndim

    layer = Loose(3)
    layer(oar.to_tensor(X))
    assert layer.seen == 3
    with pytest.raises(ValueError, match="expects a 4-D input"):
        base(3)(oar.to_tensor(X))


def test_a_subclass_says_which_formats_it_takes():
    class Strict(nn.BatchNorm2D):
        def _check_data_format(self, input):
            if input != "NCHW":
                raise ValueError("images only")

    Strict(3)(oar.to_tensor(X[..., None]))
    with pytest.raises(ValueError, match="images only"):
        Strict(3, data_format="NHWC")


LAYERS = [
    (lambda: nn.Linear(5, 2), SHAPE), (lambda: nn.Conv1D(3, 2, 3), SHAPE), (lambda: nn.Conv2D(3, 2, 3), (1, 3, 5, 5)),
    (lambda: nn.Conv1DTranspose(3, 2, 3), SHAPE), (lambda: nn.BatchNorm1D(3), SHAPE), (lambda: nn.BatchNorm(3), SHAPE),
    (lambda: nn.LayerNorm(5), SHAPE), (lambda: nn.GroupNorm(1, 3), SHAPE), (lambda: nn.InstanceNorm1D(3), SHAPE),
    (lambda: nn.PReLU(3), SHAPE), (lambda: nn.LSTM(5, 2), SHAPE), (lambda: nn.GRU(5, 2), SHAPE),
    (lambda: nn.SimpleRNN(5, 2), SHAPE), (lambda: nn.MultiHeadAttention(4, 2), (2, 3, 4)),
]


@pytest.mark.parametrize("make, shape", LAYERS)
def test_float64_is_refused_by_a_layer_of_float32(make, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    with pytest.raises(ValueError, match=r"float64.*float32.*astype\('float32'\)"):
        make()(oar.to_tensor(x))
    make()(oar.to_tensor(x.astype("float32")))


def test_norms_of_16_bits_take_float32_parameters():
    x = oar.to_tensor(X).astype("float16")
    for layer in (nn.BatchNorm1D(3), nn.LayerNorm(5), nn.GroupNorm(1, 3), nn.InstanceNorm1D(3)):
        assert str(layer(x).dtype).endswith("float16")
    assert str(F.batch_norm(x, oar.to_tensor(MEAN), oar.to_tensor(VARIANCE)).dtype).endswith("float16")
