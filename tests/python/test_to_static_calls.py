"""Which captured form a call finds: what counts as another call, and what does not."""

import collections
import gc
import threading
import weakref

import numpy as np
import pytest

import oar
from oar.jit import capture_counts, not_to_static, to_static

Pair = collections.namedtuple("Pair", "a b")


def captures_of(calls):
    """How many forms a function needs that is called with these arguments, each call twice."""
    f = to_static(lambda *args, **kwargs: (oar.ones([2]) * 2, 1))
    for _ in range(2):
        for args, kwargs in calls:
            f(*args, **kwargs)
    counts = capture_counts(f)
    assert counts["whole"] == 2 * len(calls)
    return counts["captures"]


def args(*given, **named):
    return given, named


class Other:
    pass


APART = {
    "zeros with signs": [args(0.0), args(-0.0)],
    "bool, int, float": [args(1), args(True), args(1.0), args(1 + 0j)],
    "large ints": [args(2**70), args(2**70 + 1), args(-(2**70))],
    "text and bytes": [args("a"), args(b"a"), args("ä"), args("aä"), args("")],
    "None and Ellipsis": [args(None), args(...)],
    "lengths": [args(), args(1), args(1, 1), args([1, 1]), args((1, 1)), args([(1,), 1]), args([(1, 1)])],
    "kinds of tuples": [args((1, 2)), args(Pair(1, 2)), args([1, 2])],
    "kinds of dictionaries": [args({"a": 1}), args(collections.OrderedDict(a=1)), args(a=1)],
    "order of dictionaries": [args({"a": 1, "b": 2}), args({"b": 2, "a": 1})],
    "keys": [args({1: 2}), args({True: 2}), args({"1": 2})],
    "slices": [args(slice(1)), args(slice(1, None)), args(slice(None, 1, 2)), args(slice(1.0))],
    "numbers of NumPy": [args(np.float32(1)), args(np.float64(1)), args(np.int64(1)), args(np.float32(2))],
    "objects": [args(Other), args(Pair), args(len)],
    "types of tensors": [args(oar.ones([2])), args(oar.ones([2, 2])), args(oar.ones([2], "int32")), args(oar.ones([1]))],
    "arrays and tensors": [args(np.ones(2, "float32")), args(oar.ones([2]))],
}


@pytest.mark.parametrize("name", APART)
def test_calls_that_differ(name):
    assert captures_of(APART[name]) == len(APART[name])


def test_one_object_twice():
    x, y, many = oar.ones([2]), oar.ones([2]), [1]
    assert captures_of([args(x, x), args(x, y)]) == 2
    assert captures_of([args(many, many), args(many, [1])]) == 2


def test_equal_arguments_share_a_form():
    calls = [args([1, {"a": (2.0, None)}], x=oar.ones([2])) for _ in range(3)]
    assert captures_of(calls) == 1
    assert captures_of([args(slice(1)), args(slice(None, 1))]) == 1


class Items(list):
    pass


def test_names_and_sizes_of_tensors_in_containers():
    x = oar.ones([2, 3])
    spec = oar.static.InputSpec([None, 3], "float32", "y")
    f = to_static(lambda many, y: many[0].sum() + y, input_spec=[[None], spec])
    for rows in (2, 4, 5):
        np.testing.assert_array_equal(f([x, x], oar.ones([rows, 3])).numpy(), np.full((rows, 3), 7))
    assert capture_counts(f)["captures"] == 1
    own = Items([x])  # not one of the call's own containers
    g = to_static(lambda many, y: many[0].sum() + y, input_spec=[None, spec])
    for rows in (2, 4, 5):
        np.testing.assert_array_equal(g(own, oar.ones([rows, 3])).numpy(), np.full((rows, 3), 7))
    assert capture_counts(g)["captures"] == 1


def test_a_list_that_holds_itself():
    one, other = [1], [1]
    one.append(one)
    other.append(other)
    assert captures_of([args(one), args(other)]) == 1


def test_arguments_nested_too_deep_raise():
    f = to_static(lambda x: oar.ones([2]))
    f([])
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        f(deep)
    while deep:  # taken apart by hand: freeing it is recursive too
        deep = deep.pop()
    np.testing.assert_array_equal(f([]).numpy(), 1)


def test_an_object_at_the_address_of_another():
    f = to_static(lambda o, x: x * o.s)
    x = oar.ones([2])
    for s in range(20):
        o = Other()
        o.s = float(s)
        assert f(o, x)[0].item() == s


def test_more_forms_than_are_kept_at_hand():
    f = to_static(lambda x, n: x * n)
    x = oar.ones([2])
    for n in [*range(20), *range(20)]:
        assert f(x, n)[0].item() == n
    assert capture_counts(f)["captures"] == 20


def test_switched_off_after_a_capture():
    ran = []
    f = to_static(lambda x: (ran.append(1), x + 1)[1])
    x = oar.ones([2])
    f(x), f(x)
    before = capture_counts(f)
    oar.jit.enable_to_static(False)
    try:
        f(x)
    finally:
        oar.jit.enable_to_static(True)
    assert capture_counts(f) == before and len(ran) == 3
    f(x)
    assert capture_counts(f)["whole"] == before["whole"] + 1


def test_left_out_after_a_capture():
    def f(x):
        return x + 1

    g = to_static(f)
    x = oar.ones([2])
    g(x), g(x)
    not_to_static(f)
    g(x)
    assert capture_counts(g)["whole"] == 2


def test_eval_after_a_capture_with_gradients():
    w = oar.ones([2])
    w.stop_gradient = False
    f = to_static(lambda x: x * w)
    x = oar.ones([2])
    assert not f(x).stop_gradient and not f(x).stop_gradient
    f.eval()
    assert f(x).stop_gradient and f(x).stop_gradient
    f.train()
    assert not f(x).stop_gradient


def test_a_write_outside_runs_in_turn():
    total = oar.zeros([1], "int64")

    @to_static
    def count(x):
        total.add_(x)

    one = oar.ones([1], "int64")
    count(one)
    threads = [threading.Thread(target=lambda: [count(one) for _ in range(500)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert total.item() == 2001
    assert capture_counts(count)["whole"] == 2001


def test_an_assertion_on_values_that_fails_later():
    changed = []

    @to_static
    def f(x):
        assert x.sum() > 0, "too small"
        changed.append(1)
        return x * 2

    x = oar.ones([2])
    f(x), f(x)
    with pytest.raises(AssertionError, match="too small"):
        f(-x)
    assert len(changed) == 2
    f(x)
    assert len(changed) == 3


def test_functions_are_freed():
    layer = oar.nn.Linear(2, 2)
    holder = Other()
    holder.layer = layer
    f = to_static(lambda x, o=None: holder.layer(x))
    holder.f = f  # a cycle: the guards keep the holder
    f(oar.ones([2, 2])), f(oar.ones([2, 2]), holder)
    gone = weakref.ref(layer)
    layer = holder = f = None
    gc.collect()
    assert gone() is None
