"""Mistakes that only a run finds say the same in eager mode, in programs and in segments: what was called, and where."""

import pytest

import oar
from oar import _C
from oar.jit import capture, to_static
from oar.nn import functional as F
from oar.static import InputSpec

far = oar.to_tensor([40])
labels = oar.full([4], 40, "int64")
columns = oar.full([4, 1], 40, "int64")

MISTAKES = {
    "gather": lambda t: oar.gather(t, far),
    "index_select": lambda t: oar.index_select(t, far),
    "gather_nd": lambda t: oar.gather_nd(t, far.reshape([1, 1])),
    "take": lambda t: oar.take(t, far),
    "take_along_axis": lambda t: oar.take_along_axis(t, columns, 1),
    "scatter": lambda t: oar.scatter(t, far, oar.ones([1, 7])),
    "index_add": lambda t: oar.index_add(t, far, 0, oar.ones([1, 7])),
    "index_fill": lambda t: oar.index_fill(t, far, 0, 1.0),
    "embedding": lambda t: F.embedding(far, t),
    "cross_entropy": lambda t: F.cross_entropy(t, labels),
    "nll_loss": lambda t: F.nll_loss(t, labels),
    "hsigmoid_loss": lambda t: F.hsigmoid_loss(t, labels, 5, oar.ones([4, 7])),
    "indexing": lambda t: t[far],
    "multinomial": lambda t: oar.multinomial(t * 0, 3),
}
# Found as the program is written.
SHAPES = {
    "matmul": lambda t: oar.matmul(t, t),
    "topk": lambda t: oar.topk(t, 9),
    "view": lambda t: t.view([5, 5]),
    "indexing": lambda t: t[9],
    "linear": lambda t: F.linear(t, oar.ones([3, 2])),
}


def raised_by(call):
    try:
        call(oar.ones([4, 7]))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return type(error), str(error)
    return None, "no error"


def in_segments(function):
    return lambda t: _C.run_in_segments(function, (t,), {}, "")


def as_program(function):
    kept = []

    def call(t):
        if not kept:
            kept.append(capture(function, [InputSpec([4, 7], "float32", stop_gradient=True)]))
        return kept[0](t)

    return call


@pytest.mark.parametrize("way", [as_program, in_segments, to_static], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_data(name, way):
    function = MISTAKES[name]
    kind, text = raised_by(function)
    assert kind is not None and text.startswith(f"[{name}] ")
    call = way(function)
    # Later than the call, so it also names the line of the call.
    place = f" ({__file__}:{function.__code__.co_firstlineno})"
    for _ in range(2):  # the second time with what the first one has captured
        late_kind, late_text = raised_by(call)
        assert late_kind is kind and late_text.replace(place, "") == text
        assert way is as_program or place in late_text


@pytest.mark.parametrize("way", [as_program, in_segments, to_static], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", SHAPES)
def test_a_mistake_in_the_shapes(name, way):
    kind, text = raised_by(SHAPES[name])
    assert kind is not None and text.startswith(f"[{name}] ")
    assert raised_by(way(SHAPES[name])) == (kind, text)


def test_a_run_that_fails_leaves_states_and_random_numbers_alone():
    state, index = oar.zeros([1]), oar.to_tensor([1])

    @to_static
    def step(t, index):
        noise = oar.rand([2])
        state.add_(oar.ones([1]))
        return oar.gather(t, index) + noise.sum()

    step(oar.ones([4]), index)
    assert state.item() == 1
    with pytest.raises(IndexError, match=r"^\[gather\] index 40"):
        step(oar.ones([4]), far)
    oar.seed(3)
    first = step(oar.ones([4]), index).item()
    oar.seed(3)
    assert first == (1 + oar.rand([2]).sum()).item()


def test_a_mistake_with_constants_in_a_branch_that_is_not_taken():
    """Constants are folded before a run, and the call may never be reached."""
    weight = oar.ones([4, 7])

    def step(t):
        return oar.static.nn.cond(t.sum() > 0, lambda: t * 2, lambda: oar.gather(weight, far)[0, 0] + t)

    program = as_program(step)
    assert program(oar.ones([4, 7])).numpy().max() == 2
    with pytest.raises(IndexError, match=r"^\[gather\] index 40"):
        program(-oar.ones([4, 7]))
