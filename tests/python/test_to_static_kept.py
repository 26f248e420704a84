"""Tensors that a function keeps outside from call to call: they are inputs of its program, read at every call."""

import pytest
from eager_twin import Box, assert_whole, run_side_by_side, side_by_side

import oar
from oar import nn


class Mean(nn.Layer):
    """Keeps a running mean."""

    def __init__(self, buffer):
        super().__init__()
        self.linear = nn.Linear(3, 3, weight_attr=nn.initializer.Constant(0.5))
        if buffer:
            self.register_buffer("mean", oar.zeros([3]))
        else:
            self.mean = oar.zeros([3])

    def forward(self, t):
        self.mean = self.mean * 0.9 + t.detach().mean(0) * 0.1
        return self.linear(t) - self.mean


@pytest.mark.parametrize("buffer", [False, True])
def test_captured_once(buffer):
    def scenario(static, x):
        layer = Mean(buffer)
        net = static(layer)
        for _ in range(5):
            yield net(x(2, 3)), layer.mean
        layer.mean = oar.ones([3])
        yield net(x(2, 3)), layer.mean

    for derivatives in (False, True):
        (counts,) = run_side_by_side(scenario, derivatives)
        assert counts == {"captures": 1, "whole": 6, "segments": 0, "eager": 0}, counts


@assert_whole
def test_an_attribute_a_global_an_item_a_variable(static, x):
    box, table = Box(h=oar.zeros([3])), {"h": oar.ones([3])}
    variable = oar.full([3], 0.5)

    @static
    def f(t):
        nonlocal variable
        row = t.detach().mean(0)
        box.h = box.h * 0.5 + row
        table["h"] = table["h"] - row
        variable = variable * row
        return t * box.h, table["h"] + variable

    for _ in range(4):
        yield f(x()), box.h, table["h"], variable


@assert_whole
def test_a_slot(static, x):
    class Slotted:
        __slots__ = ("h",)

    owner = Slotted()
    owner.h = oar.zeros([3])

    @static
    def f(t):
        owner.h = owner.h * 0.5 + t.detach().mean(0)
        return t - owner.h

    for _ in range(4):
        yield f(x()), owner.h


@assert_whole
def test_none_at_first(static, x):
    box = Box(h=None)

    @static
    def f(t):
        box.h = t.detach() * 1 if box.h is None else box.h * 0.5 + t.detach()
        return t * box.h

    for _ in range(4):
        yield f(x()), box.h


@assert_whole
def test_in_a_branch_and_a_loop(static, x):
    box = Box(h=oar.zeros([3]))

    @static
    def f(t):
        h = box.h
        while h.sum() < t.detach().sum():
            h = h + 0.5
        box.h = h if h.max() < 4 else h * 0.5
        return t + box.h

    for fill in (0.5, 1.0, 2.0, -1.0, 3.0):
        yield f(x(2, 3, fill=fill)), box.h


@assert_whole
def test_other_kinds_are_captured_for_themselves(static, x):
    box = Box(h=oar.zeros([3]))

    @static
    def f(t):
        box.h = box.h * 0.5 + 1
        return t * box.h

    yield f(x()), box.h
    for h in (oar.zeros([1, 3]), oar.zeros([3]), oar.ones([])):
        box.h = h
        yield f(x()), box.h
        yield f(x()), box.h


@side_by_side
def test_a_kept_tensor_that_is_given_too(static, x):
    box = Box(h=oar.zeros([2, 3]))

    @static
    def f(t):
        box.h = box.h * 0.5 + t
        return box.h * 2

    for _ in range(2):
        yield f(x(grad=False)), box.h
    yield f(box.h), box.h
    yield f(x(grad=False)), box.h


@side_by_side
def test_one_tensor_in_two_places(static, x):
    both = oar.zeros([3])
    box = Box(h=both, other=both)

    @static
    def f(t):
        box.h = box.h * 0.5 + t.detach().mean(0)
        return t * box.other

    for _ in range(3):
        yield f(x()), box.h, box.other
    box.other = box.h
    yield f(x()), box.h
    yield f(x()), box.h


@side_by_side
def test_a_history_is_left_to_python(static, x):
    box = Box(h=oar.zeros([3]))

    @static
    def f(t):
        box.h = (box.h * 0.5 + t.mean(0)).tanh()
        return t.sum()

    for _ in range(3):
        yield f(x())
    box.h = box.h.detach()
    yield f(x()), box.h.detach()
