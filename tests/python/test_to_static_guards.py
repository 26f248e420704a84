"""``to_static``: captured again where something has changed, and only there; the forms in which it is used."""

import copy
import threading
import warnings

import numpy as np
import pytest
from static_functions import captures, close, numbers, same, switched_on  # noqa: F401 - a fixture

import oar
from oar import nn
from oar.jit import capture_counts, to_static

FACTOR = 2.0
TABLE = {"scale": [1.0, 2.0]}


# guards ----------------------------------------------------------------------------------------


def test_a_global_that_changes(monkeypatch):
    f = to_static(lambda x: x * FACTOR + TABLE["scale"][0])
    x = numbers(3)
    close(f(x), x * 2 + 1)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    close(f(x), x * 5 + 1)
    monkeypatch.setitem(TABLE, "scale", [7.0, 2.0])
    close(f(x), x * 5 + 7)
    TABLE["scale"][0] = 8.0
    close(f(x), x * 5 + 8)
    close(f(x), x * 5 + 8)
    assert captures(f) == 4


def test_variables_of_enclosing_functions():
    factor, shifts = 2.0, [1.0]

    def shift(x):
        return x + shifts[0]

    f = to_static(lambda x: shift(x * factor))
    x = numbers(3)
    close(f(x), x * 2 + 1)
    factor = 3.0
    close(f(x), x * 3 + 1)
    shifts[0] = 4.0
    close(f(x), x * 3 + 4)
    assert captures(f) == 3


class Config:
    depth = 1

    def __init__(self):
        self.scale = 2.0


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.linear = nn.Linear(3, 3)
        self.flip = False
        self.parts = [Config(), Config()]

    def forward(self, x):
        y = self.linear(x) * self.config.scale
        for part in self.parts:
            y = y * part.scale
        for _ in range(self.config.depth):
            y = y + 1
        return -y if self.flip else y


def test_attributes_that_change():
    net = to_static(Net())
    x = numbers(2, 3)

    def check(count):
        close(net(x), Net.forward(net, x))
        close(net(x), Net.forward(net, x))
        assert captures(net) == count

    check(1)
    net.config.scale = 3.0
    check(2)
    net.flip = True
    check(3)
    net.parts[1].scale = 0.5
    check(4)
    net.parts.append(Config())
    check(5)
    Config.depth = 2
    try:
        check(6)
    finally:
        Config.depth = 1
    check(6)  # as it was
    net.linear.weight = net.create_parameter([3, 3])
    check(7)
    net.linear.bias.set_value(oar.ones([3]))
    check(7)  # contents are read at every run
    hook = net.linear.register_forward_post_hook(lambda layer, inputs, outputs: outputs * 2)
    check(8)
    hook.remove()
    check(8)


def test_the_training_flag():
    net = to_static(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    x = numbers(4, 3)
    net.train()
    net(x)
    net.eval()
    same(net(x), net(x))
    net.train()
    net(x)
    assert captures(net) == 2


def test_freezing_a_parameter():
    net = to_static(nn.Linear(3, 2))
    x = numbers(4, 3)
    net(x).sum().backward()
    net.weight.stop_gradient = True
    net.clear_gradients()
    net.weight.clear_gradient(False)
    net(x).sum().backward()
    assert net.weight.grad is None and net.bias.grad is not None
    assert captures(net) == 2


def test_tensors_and_arrays_outside():
    mask, table = oar.ones([3]), np.ones(3, "float32")
    f = to_static(lambda x: x * mask + oar.to_tensor(table))
    x = numbers(3)
    close(f(x), x + 1)
    mask.add_(oar.ones([3]))  # read at every run
    close(f(x), x * 2 + 1)
    assert captures(f) == 1
    table[0] = 5
    close(f(x), x * 2 + oar.to_tensor(table))
    assert captures(f) == 2


def test_the_content_of_a_tensor_that_python_looks_at():
    steps = oar.to_tensor([2])
    f = to_static(lambda x: x * int(steps))
    x = numbers(3)
    close(f(x), x * 2)
    steps.add_(oar.to_tensor([1]))
    close(f(x), x * 3)
    close(f(x), x * 3)
    assert capture_counts(f) == {"captures": 2, "whole": 3, "segments": 0, "eager": 0}


# forms of use ----------------------------------------------------------------------------------


class Box:
    def __init__(self, factor):
        self.factor = factor

    @to_static
    def scale(self, x):
        return x * self.factor


def test_methods_have_programs_per_instance():
    a, b = Box(2.0), Box(3.0)
    for _ in range(2):
        close(a.scale(numbers(3)), numbers(3) * 2)
        close(b.scale(numbers(3)), numbers(3) * 3)
    assert captures(a.scale) == captures(b.scale) == 1
    bound = to_static(a.scale.dygraph_function)
    close(bound(numbers(3)), numbers(3) * 2)


def test_switches_and_attributes():
    @to_static(full_graph=True, backend="CINN")
    def f(x):
        """A sum."""
        return x + 1

    assert f.__name__ == "f" and f.__doc__ == "A sum."
    assert "return x + 1" in f.code
    oar.jit.enable_to_static(False)
    f(numbers(3))
    assert captures(f) == 0
    oar.jit.enable_to_static(True)
    f(numbers(3))
    assert captures(f) == 1
    assert "add" in str(f.concrete_program.main_program)
    close(f.rollback()(numbers(3)), numbers(3) + 1)
    left = to_static(oar.jit.not_to_static(lambda x: x * 2))
    close(left(numbers(3)), numbers(3) * 2)
    assert captures(left) == 0
    with pytest.raises(ValueError, match="should be 'CINN' or None"):
        to_static(f, backend="other")
    with pytest.raises(TypeError, match="takes a bool"):
        oar.jit.enable_to_static(1)


def test_rollback_of_a_layer():
    net = to_static(nn.Linear(3, 2))
    net.forward.rollback()
    net(numbers(2, 3))
    assert not isinstance(net.forward, oar.jit.StaticFunction)


def test_a_copy_of_a_layer_has_its_own_programs():
    net = to_static(nn.Linear(3, 2))
    net(numbers(2, 3))
    other = copy.deepcopy(net)
    with oar.no_grad():
        other.weight.set_value(other.weight * 2)
    close(other(numbers(2, 3)), nn.functional.linear(numbers(2, 3), other.weight, other.bias))
    assert captures(net) == 1


def test_threads():
    net = to_static(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    problems = []

    def work(rows):
        try:
            for _ in range(20):
                x = numbers(rows, 4)
                close(net(x), net[2](net[1](net[0](x))))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (2, 3, 4, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    assert capture_counts(net)["whole"] == 80
    assert captures(net) <= 3


def test_the_cache_is_bounded():
    f = to_static(lambda x, n: x * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(40):
            f(numbers(3), n)
    assert sum(len(group.variants) for group in f._groups.values()) == 32
    assert len([w for w in caught if "has been captured" in str(w.message)]) == 1
    f(numbers(3), 39)
    assert captures(f) == 40
    f(numbers(3), 0)
    assert captures(f) == 41


def test_a_limit_for_the_backward_half_changes_no_bit():
    oar.seed(3)
    x, w, v = oar.randn([128, 16]), oar.randn([16, 4096]), oar.randn([4096, 2])
    w.stop_gradient = v.stop_gradient = False

    def net(x):
        return oar.sum(oar.nn.functional.gelu(x @ w) @ v)

    found = []
    for limit in (0, 1):
        before = oar.get_flags("backward_memory_mb")
        oar.set_flags({"backward_memory_mb": limit})
        try:
            static = oar.jit.to_static(net)
            static(x).backward()
        finally:
            oar.set_flags(before)
        found.append((w.grad.numpy(), v.grad.numpy(), str(static.concrete_program.backward_program)))
        w.clear_grad()
        v.clear_grad()
    for a, b in zip(found[0][:2], found[1][:2]):
        np.testing.assert_array_equal(a, b)
    assert "gelu(" not in found[0][2] and "gelu(" in found[1][2]


def test_hooks_on_inputs_are_part_of_the_program():
    def doubled(x):
        total = (x + 4) ** 2
        x.register_hook(lambda g: 2 * g)
        x.register_hook(lambda g: g + 1)
        return total

    eager, captured = oar.to_tensor([2.0], stop_gradient=False), oar.to_tensor([2.0], stop_gradient=False)
    doubled(eager).backward()
    oar.jit.to_static(doubled)(captured).backward()
    assert eager.grad.tolist() == captured.grad.tolist() == [25.0]
