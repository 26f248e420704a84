"""Training that expects to be quantised, and calibration of trained models."""

import copy

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn.quant.format import LinearDequanter, LinearQuanter, LinearQuanterDequanter
from oar.nn.quant.qat import QuantedConv2D, QuantedLinear
from oar.quantization import PTQ, QAT, BaseObserver, BaseQuanter, QuantConfig, quanter
from oar.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver
from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
from oar.quantization.quanters.abs_max import FakeQuanterWithAbsMaxObserverLayer


def away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(1, 4, 3, padding=1, padding_mode="reflect")
        self.act = nn.ReLU()
        self.stub = nn.quant.Stub()
        self.fc = nn.Sequential(nn.Linear(4 * 36, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.fc(self.stub(oar.flatten(self.act(self.conv(x)), 1)))


def count(model, kind):
    return sum(isinstance(layer, kind) for layer in model.sublayers(True))


def test_fake_quanter_follows_the_moving_average():
    layer = FakeQuanterWithAbsMaxObserver(moving_rate=0.8, bit_length=6)._instance(nn.ReLU())
    state = accum = 1.0
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(5, 7)).astype("float32") * (seed + 1)
        tensor = oar.to_tensor(x, stop_gradient=False)
        y = layer(tensor)
        state, accum = state * 0.8 + 1, accum * 0.8 + np.abs(x).max()
        scale = accum / state
        np.testing.assert_allclose(layer.scales().numpy(), [scale], rtol=1e-6)
        np.testing.assert_allclose(y.numpy(), np.clip(away(x / scale * 31), -31, 31) * scale / 31, rtol=1e-5, atol=1e-6)
        (y * 3).sum().backward()
        np.testing.assert_array_equal(tensor.grad.numpy(), np.full_like(x, 3))  # as if nothing was rounded
    layer.eval()
    before = layer.scales().numpy().copy()
    layer(oar.full([2], 100.0))
    np.testing.assert_array_equal(layer.scales().numpy(), before)


def test_training_with_rounding_learns():
    oar.seed(3)
    r = np.random.default_rng(0)
    x, y = r.normal(size=(64, 1, 6, 6)).astype("float32"), r.integers(0, 3, 64)
    fake = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    model = QAT(QuantConfig(activation=fake, weight=fake)).quantize(Net())
    assert count(model, QuantedLinear) == 2 and count(model, QuantedConv2D) == 1
    assert count(model, FakeQuanterWithAbsMaxObserverLayer) == 2 * 3 + 2 + 1  # layers, activations, the stub
    adam = oar.optimizer.Adam(0.01, parameters=model.parameters())
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(oar.to_tensor(x)), oar.to_tensor(y))
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    for parameter in model.parameters():
        assert not parameter.name.startswith("quant_dequant") or parameter.grad is None


@pytest.mark.parametrize("bits, room", [(8, 0.02), ((4, 3), 0.15), (4, 0.5)])
def test_calibration(bits, room, tmp_path):
    oar.seed(1)
    model = Net()
    model.eval()
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(bits), weight=AbsmaxObserver(bits)))
    observed = ptq.quantize(model)
    x = oar.randn([8, 1, 6, 6])
    np.testing.assert_array_equal(observed(x).numpy(), model(x).numpy())  # observers change nothing
    ready = ptq.convert(observed)
    assert count(ready, BaseObserver) == 0
    assert count(ready, LinearDequanter) == 2 * 3 + 2 + 1 and count(ready, LinearQuanter) == 3 + 2 + 1
    wanted, found = model(x).numpy(), ready(x).numpy()
    assert 0 < np.abs(found - wanted).max() <= room * np.abs(wanted).max()
    weight = ready.fc[0].weight.numpy()
    if bits != (4, 3):
        np.testing.assert_array_equal(weight, np.round(weight))
        assert np.abs(weight).max() == 2 ** (bits - 1) - 1
    oar.jit.save(ready, str(tmp_path / "ready"), input_spec=[x])
    np.testing.assert_allclose(oar.jit.load(str(tmp_path / "ready"))(x).numpy(), found, rtol=1e-5, atol=1e-5)
    again = copy.deepcopy(ready)
    again.set_state_dict(ready.state_dict())
    np.testing.assert_array_equal(again(x).numpy(), found)


def test_converted_weights_can_stay_floats():
    model = nn.Sequential(nn.Linear(4, 3))
    model.eval()
    ptq = PTQ(QuantConfig(activation=None, weight=AbsmaxObserver()))
    observed = ptq.quantize(model)
    x = oar.randn([5, 4])
    observed(x)
    rounded, floats = ptq.convert(observed), ptq.convert(observed, remain_weight=True)
    np.testing.assert_array_equal(floats[0].weight.numpy(), model[0].weight.numpy())
    np.testing.assert_allclose(floats(x).numpy(), rounded(x).numpy(), rtol=1e-6)
    with pytest.raises(AssertionError, match="converted already"):
        rounded[0]._convert()


@pytest.mark.parametrize("zero_point", [None, 3.0])
def test_quanter_and_dequanter(zero_point):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    scales = np.array([1.0, 0.5, 2.0, 3.0], "float32")
    zeros = None if zero_point is None else np.full(4, zero_point, "float32")
    q, d = (kind(scales, zeros, quant_axis=1) for kind in (LinearQuanter, LinearDequanter))
    step, offset = scales[:, None] / 127, zero_point or 0
    integers = np.clip(np.round(x / step) + offset, -128, 127)
    np.testing.assert_allclose(q(oar.to_tensor(x)).numpy(), integers, atol=1)
    np.testing.assert_allclose(d(oar.to_tensor(integers)).numpy(), (integers - offset) * step, rtol=1e-5)
    np.testing.assert_allclose(LinearQuanterDequanter(q, d)(oar.to_tensor(x)).numpy(), (integers - offset) * step,
                               atol=float(step.max()))


def test_scales_of_groups_of_rows():
    linear = nn.Linear(128, 5)
    linear.eval()
    model = nn.Sequential(linear)
    model.eval()
    ptq = PTQ(QuantConfig(activation=None, weight=GroupWiseWeightObserver(quant_bits=4, group_size=64)))
    observed = ptq.quantize(model)
    x = oar.randn([2, 128])
    observed(x)
    w = linear.weight.numpy()
    most = np.abs(w.reshape(2, 64, 5)).max(1)
    np.testing.assert_array_equal(observed[0].weight_quanter.scales().numpy(), most)
    step = np.repeat(most, 64, 0) / 7
    wanted = x.numpy() @ (np.clip(np.round(w / step), -8, 7) * step) + linear.bias.numpy()
    np.testing.assert_allclose(ptq.convert(observed)(x).numpy(), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="rows are a multiple of group_size"):
        GroupWiseWeightObserver()._instance(linear)(oar.ones([100, 5]))


def test_settings_by_layer_name_and_type():
    fake = FakeQuanterWithAbsMaxObserver()
    model = Net()
    config = QuantConfig(activation=None, weight=None)
    config.add_type_config(nn.Linear, weight=fake)
    config.add_layer_config(model.fc[2], activation=fake)
    config.add_customized_leaf(nn.Sequential)
    config._specify(model)
    assert config._get_config_by_layer(model.conv) is None
    assert config._get_config_by_layer(model.fc[0]).weight is fake
    last = config._get_config_by_layer(model.fc[2])
    assert last.activation is fake and last.weight is None  # the layer's own setting replaces that of its type
    assert "Linear" in config.details() and "FakeQuanterWithAbsMaxObserver" in str(config)
    with pytest.raises(AssertionError, match="subclass of nn.Layer"):
        config.add_qat_layer_mapping(nn.Linear, int)


def test_quanters_of_ones_own():
    @quanter("Grid")
    class GridLayer(BaseQuanter):
        def __init__(self, layer, step):
            super().__init__()
            self.step = step

        def forward(self, input):
            return oar.round(input / self.step) * self.step

        def scales(self):
            return None

        def zero_points(self):
            return None

        def quant_axis(self):
            return -1

        def bit_length(self):
            return 8

    grid = globals().pop("Grid")(step=0.25)
    assert str(grid) == "Grid(step=0.25)"
    qat = QAT(QuantConfig(activation=grid, weight=grid))
    model = qat.quantize(nn.Sequential(nn.Linear(3, 2)))
    x = oar.randn([4, 3])
    rounded = [np.round(a / 0.25) * 0.25 for a in (x.numpy(), model[0].weight.numpy())]
    np.testing.assert_allclose(model(x).numpy(), rounded[0] @ rounded[1], rtol=1e-5, atol=1e-6)
    assert isinstance(qat.convert(model)[0].weight_quanter, GridLayer)  # without scales it stays as it is


def test_mistakes():
    fake = FakeQuanterWithAbsMaxObserver()
    model = nn.Sequential(nn.Linear(2, 2))
    model.eval()
    with pytest.raises(AssertionError, match="Call model.train()"):
        QAT(QuantConfig(fake, fake)).quantize(model)
    model.train()
    with pytest.raises(AssertionError, match="Call model.eval()"):
        PTQ(QuantConfig(fake, fake)).quantize(model)
    with pytest.raises(ValueError, match="bit_length is 1"):
        FakeQuanterWithAbsMaxObserver(bit_length=1)._instance(model)
    with pytest.raises(NotImplementedError, match="float8_e4m3"):
        LinearQuanter(1.0, bit_length=(3, 2))


def test_functions_as_layers():
    x, y = oar.randn([3, 4]), oar.rand([3, 4]) + 1
    for name in ("add", "subtract", "multiply", "divide"):
        np.testing.assert_array_equal(getattr(nn.quant, name)()(x, y).numpy(), getattr(oar, name)(x, y).numpy())
    assert nn.quant.matmul()(x, y, transpose_y=True).shape == [3, 3]
    assert nn.quant.concat()([x, y], 1).shape == [3, 8]
    assert nn.quant.reshape()(x, [2, 6]).shape == [2, 6] and nn.quant.transpose()(x, [1, 0]).shape == [4, 3]
    assert nn.quant.flatten()(x).shape == [12]
