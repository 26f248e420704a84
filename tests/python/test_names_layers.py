"""Layers around normalisation, and dictionaries of parameters, against NumPy."""

import numpy as np
import pytest

import oar
from oar import nn


def _data(*shape):
    return np.random.default_rng(7).normal(2.0, 3.0, shape).astype("float32")


def _normalised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_instance_norm(rank):
    x = _data(2, 3, *range(4, 2 + rank))
    layer = getattr(nn, f"InstanceNorm{rank - 2}D")(3)
    assert list(layer.state_dict()) == ["scale", "bias"]
    layer.bias.set_value(np.array([1, 2, 3], "float32"))
    expected = _normalised(x, tuple(range(2, rank))) + np.arange(1, 4).reshape(3, *[1] * (rank - 2))
    np.testing.assert_allclose(layer(oar.to_tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="expects"):
        layer(oar.ones([2] * 6))


def test_instance_norm_drops_both_parameters_or_none():
    assert not nn.InstanceNorm2D(3, weight_attr=False, bias_attr=False).state_dict()
    with pytest.raises(AssertionError):
        nn.InstanceNorm2D(3, weight_attr=False)


def test_group_norm():
    x = _data(2, 6, 4, 5)
    layer = nn.GroupNorm(3, 6, weight_attr=False)
    assert layer.weight is None and list(layer.state_dict()) == ["bias"]
    expected = _normalised(x.reshape(2, 3, -1), (2,)).reshape(x.shape)
    np.testing.assert_allclose(layer(oar.to_tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("data_format", ["NCDHW", "NDHWC"])
def test_batch_norm_3d(data_format):
    x = _data(2, 3, 4, 5, 3)
    channel = data_format.index("C")
    axes = tuple(axis for axis in range(5) if axis != channel)
    layer = nn.BatchNorm3D(3, data_format=data_format)
    np.testing.assert_allclose(layer(oar.to_tensor(x)).numpy(), _normalised(x, axes), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(layer._mean.numpy(), 0.1 * x.mean(axes), rtol=1e-4)
    with pytest.raises(ValueError, match="5-D"):
        layer(oar.ones([2, 3, 4, 5]))


def test_parameter_dict():
    first, second = (oar.create_parameter([n], "float32") for n in (2, 3))
    layer = nn.ParameterDict({"a": first})
    layer.update([("b", second)])
    layer["c"] = first
    assert list(layer) == ["a", "b", "c"] and len(layer) == 3 and layer["b"] is second
    assert list(nn.ParameterDict(layer).state_dict()) == ["a", "b", "c"]


def test_bilinear():
    layer = nn.Bilinear(3, 4, 5)
    assert {key: list(value.shape) for key, value in layer.state_dict().items()} == {
        "weight": [5, 3, 4],
        "bias": [1, 5],
    }
    layer.bias.set_value(_data(1, 5))
    a, b = _data(2, 3), _data(2, 4)
    expected = np.einsum("bi,kij,bj->bk", a, layer.weight.numpy(), b) + layer.bias.numpy()
    result = layer(oar.to_tensor(a), oar.to_tensor(b))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
    result.sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy()[2], a.T @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("maxlen", [None, 5, 2])
def test_sequence_mask(maxlen):
    lengths = np.array([[0, 3], [1, 4]])
    mask = nn.functional.sequence_mask(oar.to_tensor(lengths), maxlen, "float32")
    np.testing.assert_array_equal(mask.numpy(), np.arange(maxlen or 4) < lengths[..., None])
    assert mask.dtype == oar.float32


def test_convert_sync_batchnorm():
    model = nn.Sequential(nn.Conv2D(3, 4, 3), nn.Sequential(nn.BatchNorm2D(4, epsilon=1e-3)))
    x = oar.to_tensor(_data(2, 3, 5, 6))
    expected, names, weight = model(x).numpy(), list(model.state_dict()), model[1][0].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(converted[1][0], nn.SyncBatchNorm) and converted[1][0].weight is weight
    assert list(converted.state_dict()) == names
    np.testing.assert_allclose(converted(x).numpy(), expected, rtol=1e-5, atol=1e-5)
    with_activation = nn.BatchNorm(4, act="relu")
    assert nn.SyncBatchNorm.convert_sync_batchnorm(with_activation) is with_activation


def test_sequence_mask_of_no_sequences():
    assert nn.functional.sequence_mask(oar.zeros([0], dtype="int64")).shape == [0, 0]
