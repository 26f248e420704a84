"""Methods of layers that PyTorch's modules have."""

import numpy as np
import pytest

import oar
from oar import nn


@pytest.fixture
def net():
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.BatchNorm1D(2)))


def test_finding_layers_and_parameters(net):
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.0", "1.1"]
    assert list(net.modules())[0] is net and len(list(net.modules())) == 5
    shared = nn.ReLU()
    twice = nn.Sequential(shared, shared)
    assert len(list(twice.modules())) == 2
    assert net.get_submodule("1.0") is net[1][0] and net.get_sublayer("") is net
    net[0].register_buffer("seen", oar.zeros([1]))
    assert net.get_parameter("0.weight") is net[0].weight and net.get_buffer("0.seen") is net[0].seen
    for call, text in [(lambda: net.get_submodule("1.x"), "no sublayer 'x', of '1.x'"),
                       (lambda: net.get_parameter("0.x"), "no parameter 'x'"), (lambda: net.get_buffer("x"), "no buffer 'x'")]:  # fmt: skip
        with pytest.raises(AttributeError, match=text):
            call()


def test_replacing_layers(net):
    net.set_submodule("1.0", nn.Tanh())
    assert isinstance(net[1][0], nn.Tanh)
    net.add_module("last", nn.Linear(2, 1))
    net.register_module("more", nn.Linear(1, 1))
    net.register_parameter("scale", nn.Parameter(oar.ones([1])))
    assert {"last.weight", "more.bias", "scale"} <= {name for name, _ in net.named_parameters()}
    with pytest.raises(AttributeError, match="no sublayer 'y'"):
        net.set_submodule("1.y", nn.Tanh(), strict=True)
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
    assert isinstance(layers.pop(1), nn.Tanh) and len(layers) == 2 and isinstance(layers.pop(-1), nn.Sigmoid)


def test_loading(net):
    other = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.BatchNorm1D(2)))
    result = net.load_state_dict(other.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    np.testing.assert_array_equal(net[0].weight.numpy(), other[0].weight.numpy())
    before = net[0].weight.numpy().copy()
    with pytest.raises(RuntimeError, match=r"missing \['0.bias'.*unexpected \['x'\]"):
        net.load_state_dict({"0.weight": np.zeros((2, 2), "float32"), "x": 1})
    np.testing.assert_array_equal(net[0].weight.numpy(), before)
    result = net.load_state_dict({"0.weight": np.zeros((2, 2), "float32"), "x": 1}, strict=False)
    assert result.unexpected_keys == ["x"] and "0.bias" in result.missing_keys and not net[0].weight.numpy().any()
    with pytest.raises(RuntimeError, match=r"mismatched \{'0.weight': has shape \[3, 3\], expected \[2, 2\]\}"):
        net.load_state_dict({**other.state_dict(), "0.weight": np.zeros((3, 3), "float32")})


def test_dtypes_devices_and_gradients(net):
    assert net.half() is net and net[0].weight.dtype == oar.float16
    assert net.double()[0].weight.dtype == oar.float64 and net.type("float32")[0].weight.dtype == oar.float32
    assert net.cpu() is net
    for call, kind in ((net.cuda, "GPU"), (net.xpu, "XPU")):
        with pytest.raises(RuntimeError, match=f"there is no {kind} here"):
            call()
    net(oar.ones([3, 2])).sum().backward()
    net.zero_grad(set_to_none=False)
    assert not net[0].weight.grad.numpy().any()
    net.zero_grad()
    assert net[0].weight.grad is None
    assert net.requires_grad_(False) is net and all(p.stop_gradient for p in net.parameters())
    assert not net.requires_grad_()[0].weight.stop_gradient


def test_hooks_in_order(net):
    seen = []
    net.register_forward_pre_hook(lambda layer, inputs: seen.append("second"))
    net.register_forward_pre_hook(lambda layer, inputs: seen.append("first"), prepend=True)
    net.register_forward_hook(lambda layer, inputs, outputs: outputs * 0).remove()
    handle = net.register_forward_hook(lambda layer, inputs, outputs: outputs * 0)
    assert not net(oar.ones([3, 2])).numpy().any() and seen == ["first", "second"]
    handle.remove()
