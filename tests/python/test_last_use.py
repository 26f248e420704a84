"""Gradients that take the memory of what the tape has saved for them: only when nobody will read it again."""

import numpy as np
import pytest

import oar
from oar.nn import functional as F

ROWS, CLASSES = 64, 20000
BYTES = ROWS * CLASSES * 4


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    weight = oar.to_tensor(rng.standard_normal((ROWS, CLASSES)).astype("float32"))
    weight.stop_gradient = False
    label = rng.integers(0, CLASSES, ROWS)
    label[3] = -100
    return weight, oar.to_tensor(label)


def expected(weight, label):
    x, y = weight.numpy().astype("float64"), label.numpy()
    e = np.exp(x - x.max(1, keepdims=True))
    grad = e / e.sum(1, keepdims=True)
    counts = y != -100
    grad[np.arange(ROWS)[counts], y[counts]] -= 1
    return grad * counts[:, None] / ROWS  # as in Paddle, where only an ignore_index from 0 on leaves the mean


def growth(run):
    """How far memory rises above what is in use before."""
    oar.device.reset_max_memory_allocated()
    before = oar.device.memory_allocated()
    run()
    return oar.device.max_memory_allocated() - before


class Scores(oar.autograd.PyLayer):
    """Scores whose derivative needs no memory to speak of."""

    @staticmethod
    def forward(ctx, bias):
        return oar.zeros([ROWS, CLASSES]) + bias

    @staticmethod
    def backward(ctx, grad):
        return grad.sum()


def close(grad, wanted):
    np.testing.assert_allclose(grad.numpy(), wanted, rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("kept", [False, True])
def test_scores_that_nobody_has_become_their_gradient(data, kept):
    bias = oar.zeros([])
    bias.stop_gradient = False
    scores = Scores.apply(bias)
    loss = F.cross_entropy(scores, data[1])
    if not kept:
        del scores
    assert (growth(loss.backward) > BYTES / 2) == kept


def test_the_gradient_of_scores_that_nobody_has(data):
    weight, label = data
    loss = F.cross_entropy(weight + 1.0, label)
    loss.backward()
    close(weight.grad, expected(weight, label))
    with pytest.raises(RuntimeError, match="freed"):
        loss.backward()


def test_scores_in_use_are_kept(data):
    weight, label = data
    scores = weight + 1.0
    F.cross_entropy(scores, label).backward()
    np.testing.assert_array_equal(scores.numpy(), weight.numpy() + np.float32(1))
    close(weight.grad, expected(weight, label))

    part = (weight + 2.0)[1:]  # a view
    F.cross_entropy(part, label[1:]).backward()
    np.testing.assert_array_equal(part.numpy(), weight.numpy()[1:] + np.float32(2))


def test_a_leaf_is_kept(data):
    weight, label = data
    before = weight.numpy().copy()
    F.cross_entropy(weight, label).backward()
    np.testing.assert_array_equal(weight.numpy(), before)
    close(weight.grad, expected(weight, label))


def test_scores_of_a_graph_that_is_kept_are_kept(data):
    weight, label = data
    loss = F.cross_entropy(weight + 1.0, label)
    wanted = expected(weight, label)
    for times in (1, 2, 3):
        loss.backward(retain_graph=times < 3)
        close(weight.grad, times * wanted)


def test_scores_that_another_node_saved_are_kept(data):
    weight, label = data
    scores = weight + 1.0
    loss = F.cross_entropy(scores, label) + (scores * scores).sum()
    del scores
    loss.backward()
    close(weight.grad, expected(weight, label) + 2 * (weight.numpy().astype("float64") + 1))


def test_second_derivatives(data):
    weight, label = data
    (first,) = oar.grad(F.cross_entropy(weight + 1.0, label), weight, create_graph=True)
    (first * first).sum().backward()
    g = expected(weight, label)
    p = g.copy()
    y, counts = label.numpy(), label.numpy() != -100
    p[np.arange(ROWS)[counts], y[counts]] += 1 / ROWS  # probabilities by the number of rows
    wanted = 2 * p * (g - (p * g).sum(1, keepdims=True) * ROWS)
    np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_other_dtypes_and_axes(data, dtype):
    weight, label = data
    x = weight.detach()[:, :300].astype(dtype)
    x.stop_gradient = False
    y = oar.to_tensor(np.where(label.numpy() < 0, -100, label.numpy() % 300))
    grads = []
    for keep in (False, True):
        for axis in (-1, 0):
            scores = x * 1.0 if axis else (x * 1.0).transpose([1, 0])
            loss = F.cross_entropy(scores, y if axis else y.reshape([1, -1]), axis=axis)
            if not keep:
                del scores
            x.clear_grad()
            loss.backward()
            grads.append(x.grad.astype("float64").numpy())
    for grad in grads[1:]:
        np.testing.assert_allclose(grad, grads[0], rtol=1e-2 if dtype == "bfloat16" else 1e-12, atol=1e-12)


def test_captured_steps_share_the_memory(data):
    weight, label = data
    step = oar.jit.to_static(lambda: F.cross_entropy(weight + 1.0, label))
    step().backward()
    close(weight.grad, expected(weight, label))
