"""Captured functions and names that do not repeat: every call has the name that a plain call would have."""

import pytest
from eager_twin import assert_whole, run_side_by_side

from oar import nn
from oar.utils import unique_name

outside: list = []
table: dict = {}


def returned(t):
    return t * 2, unique_name.generate("a")


def appended(t):
    outside.append(unique_name.generate("b"))
    return t * 2


def as_a_key(t):
    table[unique_name.generate("c")] = 1
    return t * 2


def decides(t):
    return t * 100 if unique_name.generate("d").endswith("_1") else t


def derived(t):
    name = unique_name.generate("e")
    return t, f"{name}-x", len(name), name == "e_1"


def of_a_tensor(t):
    y = t * 2
    y.name = unique_name.generate("f")
    return y, y.name


def in_a_guard(t):
    with unique_name.guard("own_"):
        return t * 2, unique_name.generate("g"), unique_name.generate("g")


def of_a_layer(t):
    layer = nn.ReLU()
    return layer(t), layer.full_name()


def a_layer(t):
    layer = nn.ReLU()
    outside.append(layer)
    return layer(t)


def of_a_layer_by_its_attribute(t):
    layer = nn.ReLU()
    table[layer._full_name] = layer._full_name == "re_lu_1"
    return layer(t)


FUNCTIONS = [returned, appended, as_a_key, decides, derived, of_a_tensor, in_a_guard, of_a_layer, a_layer,
             of_a_layer_by_its_attribute]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_name_is_another_one_at_every_call(function, tmp_path):
    def scenario(static, x):
        outside.clear(), table.clear()
        f = static(function)
        with unique_name.guard():
            for _ in range(4):
                yield f(x())
                yield [v.full_name() if isinstance(v, nn.Layer) else v for v in outside], dict(table)
                yield unique_name.generate("re_lu")

    run_side_by_side(scenario, False, tmp_path)


@assert_whole
def test_a_layer_whose_name_nobody_asks_for_is_part_of_the_program(static, x):
    f = static(lambda t: nn.LeakyReLU(0.1)(t))
    with unique_name.guard():
        for _ in range(3):
            yield f(x())
        yield nn.LeakyReLU().full_name()
