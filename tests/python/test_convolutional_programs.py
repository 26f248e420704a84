"""Captured convolutional networks: layouts, fused calls and what programs keep between runs change no values."""

import numpy as np
import pytest

import oar
from oar import nn
import oar.nn.functional as F


class Block(nn.Layer):
    def __init__(self, channels, act):
        super().__init__()
        self.stem = nn.Conv2D(3, channels, 3, stride=2, padding=1, bias_attr=False)
        self.stem_bn = nn.BatchNorm2D(channels)
        self.depth = nn.Conv2D(channels, channels, 5, padding=2, groups=channels, bias_attr=False)
        self.depth_bn = nn.BatchNorm2D(channels)
        self.se1, self.se2 = nn.Conv2D(channels, 8, 1), nn.Conv2D(8, channels, 1)
        self.mix = nn.Conv2D(channels, channels, 1, bias_attr=False)
        self.mix_bn = nn.BatchNorm2D(channels)
        self.head = nn.Linear(channels, 5)
        self.act = act

    def forward(self, x):
        x = F.max_pool2d(self.act(self.stem_bn(self.stem(x))), 3, stride=2, padding=1)
        h = self.act(self.depth_bn(self.depth(x)))
        h = h * F.hardsigmoid(self.se2(F.relu(self.se1(F.adaptive_avg_pool2d(h, 1)))))
        h = self.act(self.mix_bn(self.mix(h)) + x)
        return self.head(oar.flatten(F.adaptive_avg_pool2d(h, 1), 1))


@pytest.fixture
def image():
    return oar.to_tensor(np.random.default_rng(3).normal(size=(4, 3, 33, 31)).astype("float32"))


def trained(net, image):
    """The loss, its gradients and the running statistics after one step."""
    loss = (net(image) ** 2).mean()
    loss.backward()
    grads = {n: p.grad.numpy() for n, p in net.named_parameters() if not p.stop_gradient}
    return loss.item(), grads, {n: b.numpy() for n, b in net.named_buffers()}


@pytest.mark.parametrize("act", [F.relu, F.hardswish], ids=["relu", "hardswish"])
def test_a_training_step_is_that_of_eager_mode(image, act):
    oar.seed(1)
    net = Block(24, act)
    twin = Block(24, act)
    twin.set_state_dict(net.state_dict())
    loss, grads, buffers = trained(net, image)
    twin_loss, twin_grads, twin_buffers = trained(oar.jit.to_static(twin), image)
    assert twin_loss == pytest.approx(loss, rel=1e-4)
    for name, g in grads.items():
        np.testing.assert_allclose(twin_grads[name], g, rtol=2e-3, atol=2e-5, err_msg=name)
    for name, b in buffers.items():
        np.testing.assert_allclose(twin_buffers[name], b, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_program_sees_weights_that_have_changed(image):
    """Weights are cached in the layout that kernels prefer until they are written, in whatever way."""
    oar.seed(2)
    net = Block(32, F.relu)
    net.eval()
    fast = oar.jit.to_static(net)

    def check():
        with oar.no_grad():
            eager = Block.forward(net, image)
            for _ in range(3):
                np.testing.assert_allclose(fast(image).numpy(), eager.numpy(), rtol=1e-4, atol=1e-5)

    check()
    net.mix.weight.set_value(net.mix.weight.numpy() * 1.5)
    check()
    with oar.no_grad():
        net.mix.weight.scale_(-1.0)
    check()
    state = {k: v * 0.5 for k, v in net.state_dict().items()}
    net.set_state_dict(state)
    check()
    other = oar.utils.dlpack.from_dlpack(net.mix.weight.detach().__dlpack__())  # counts its writes for itself
    check()
    other.scale_(2.0)
    check()
