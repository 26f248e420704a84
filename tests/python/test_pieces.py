"""Products and convolutions are cut into a piece per thread: every cut gives what one thread gives."""

import contextlib

import numpy as np
import pytest

import oar
from oar.nn import functional as F


@contextlib.contextmanager
def threads(count):
    before = oar.get_flags("num_threads")
    oar.set_flags({"num_threads": count})
    try:
        yield
    finally:
        oar.set_flags(before)


def values(*shape, dtype="float32"):
    return oar.to_tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")).astype(dtype)


def alike(function, dtype="float32", counts=(2, 3, 5, 16)):
    with threads(1):
        wanted = [t.astype("float32").numpy() for t in function()]
    for count in counts:
        with threads(count):
            for got, want in zip(function(), wanted):
                scale = np.abs(want).max()
                limit = {"float32": 3e-6, "bfloat16": 2e-2}[dtype] * scale
                np.testing.assert_allclose(got.astype("float32").numpy(), want, rtol=0, atol=limit)


PRODUCTS = {
    "square": ((512, 512), (512, 512)), "tall": ((1500, 70), (70, 90)), "wide": ((70, 200), (200, 1500)),
    "uneven": ((333, 217), (217, 131)), "long": ((40, 9000), (9000, 33)), "batch": ((7, 90, 80), (7, 80, 70)),
    "few batches": ((2, 300, 80), (2, 80, 170)), "broadcast": ((3, 1, 120, 64), (1, 4, 64, 150)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products(name, dtype):
    x, y = (values(*shape, dtype=dtype) for shape in PRODUCTS[name])
    t = [*range(len(y.shape) - 2), -1, -2]
    turned = y.transpose([i % len(y.shape) for i in t]).contiguous()
    alike(lambda: [oar.matmul(x, y), oar.matmul(x, turned, transpose_y=True)], dtype)


@pytest.mark.parametrize("activation", [None, "relu"])
def test_captured_products_with_epilogues(activation):
    x, residual = values(300, 200), values(300, 250)
    layer = oar.nn.Linear(200, 250)

    def function(x, residual):
        y = layer(x) * 0.5 + residual
        return F.relu(y) if activation else y

    program = oar.jit.to_static(function)

    def run():
        with oar.no_grad():
            return [program(x, residual) for _ in range(3)]  # from the second run on weights are packed

    alike(run)


# images, weight, stride, padding, dilation, groups
CONVOLUTIONS = {
    "batch": ((6, 16, 20, 20), (32, 16, 3, 3), 1, 1, 1, 1),
    "one image": ((1, 24, 41, 30), (40, 24, 3, 3), 1, 1, 1, 1),
    "one image, strided": ((1, 16, 47, 33), (48, 16, 5, 5), 2, [2, 1], 1, 1),
    "one image, dilated": ((1, 16, 40, 40), (32, 16, 3, 3), 1, 3, 3, 1),
    "one small image": ((1, 64, 6, 6), (128, 64, 3, 3), 1, 1, 1, 1),
    "pointwise": ((4, 64, 24, 24), (96, 64, 1, 1), 1, 0, 1, 1),
    "one image, pointwise": ((1, 64, 40, 40), (96, 64, 1, 1), 1, 0, 1, 1),
    "groups": ((3, 32, 18, 18), (64, 8, 3, 3), 1, 1, 1, 4),
    "one image, groups": ((1, 32, 26, 26), (64, 8, 3, 3), 1, 1, 1, 4),
    "depthwise": ((1, 64, 30, 30), (64, 1, 3, 3), 2, 1, 1, 64),
    "two images": ((2, 16, 28, 28), (64, 16, 3, 3), 1, 1, 1, 1),
}


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_gradients(name, data_format):
    image, kernel, stride, padding, dilation, groups = CONVOLUTIONS[name]
    x, w, b = values(*image), values(*kernel), values(kernel[0])
    if data_format == "NHWC":
        x = x.transpose([0, 2, 3, 1]).contiguous()

    def function():
        for t in (x, w, b):
            t.stop_gradient = False
            t.clear_grad()
        y = F.conv2d(x, w, b, stride, padding, dilation, groups, data_format)
        (y * y).sum().backward()
        return [y.detach(), x.grad, w.grad, b.grad]

    alike(function)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("axes", [1, 3])
def test_convolutions_of_other_ranks(axes, dtype):
    sizes = {1: (300,), 3: (9, 10, 11)}[axes]
    x, w = values(4, 16, *sizes, dtype=dtype), values(32, 16, *[3] * axes, dtype=dtype)
    convolve = {1: F.conv1d, 3: F.conv3d}[axes]

    def function():
        for t in (x, w):
            t.stop_gradient = False
            t.clear_grad()
        y = convolve(x, w, padding=1)
        y.astype("float32").sum().backward()
        return [y.detach(), x.grad, w.grad]

    alike(function, dtype)
    one = x[:1].detach()
    alike(lambda: [convolve(one, w.detach(), padding=1)], dtype)


@pytest.mark.parametrize("images", [1, 5])
def test_captured_convolutions(images):
    oar.seed(3)
    net = oar.nn.Sequential(
        oar.nn.Conv2D(3, 32, 3, padding=1), oar.nn.BatchNorm2D(32), oar.nn.ReLU(),
        oar.nn.Conv2D(32, 32, 3, padding=1, bias_attr=False), oar.nn.BatchNorm2D(32), oar.nn.ReLU())
    net.eval()
    program = oar.jit.to_static(lambda x: net(x) + net[:3](x))
    x = values(images, 3, 33, 29)

    def run():
        with oar.no_grad():
            return [program(x) for _ in range(3)]

    alike(run)


def test_calls_that_wait_and_calls_that_do_not():
    """A plan belongs to its call: products of other shapes between queued ones are not mixed up with them."""
    a, b = values(300, 200), values(200, 310)

    def function(x, y):
        made = [oar.matmul(x, y)]
        if float(made[0][0, 0]) > -1e9:  # a value is read: the function runs in segments
            made.append(oar.matmul(y, made[0], transpose_y=True))
            made.append(oar.matmul(x[:150], y))
        return made

    waiting = oar.jit.to_static(function)
    for _ in range(4):
        for got, want in zip(waiting(a, b), function(a, b)):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-3)
        between = oar.matmul(b, a, transpose_x=True, transpose_y=True)
        np.testing.assert_allclose(between.numpy(), (a.numpy() @ b.numpy()).T, rtol=1e-4, atol=1e-3)
