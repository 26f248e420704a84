"""Programs of oar.jit.capture that write tensors outside, called with arguments in the same memory."""

import numpy as np
import pytest

import oar
from oar.jit import capture
from oar.static import InputSpec


def spec(*shape):
    return InputSpec(shape, "float32", stop_gradient=True)


def writer(state):
    def step(x):
        state.add_(oar.ones_like(state))
        return x * 10

    return step


VIEWS = {
    "itself": lambda state: state,
    "a view": lambda state: state.reshape([2, 2]),
    "a part": lambda state: state[1:3],
    "an alias": lambda state: state.detach(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_an_argument_in_memory_that_the_program_writes_is_refused(name):
    state = oar.to_tensor([1.0, 2.0, 3.0, 4.0])
    given = VIEWS[name](state)
    program = capture(writer(state), [spec(*given.shape)])
    with pytest.raises(NotImplementedError, match="argument %x shares memory with .* step writes. Pass a copy"):
        program(given)
    assert state.tolist() == [1, 2, 3, 4]  # nothing has run
    np.testing.assert_array_equal(program(given.clone()).numpy(), given.numpy() * 10 - 10)
    assert state.tolist() == [2, 3, 4, 5]


def test_parts_that_do_not_overlap_are_accepted():
    base = oar.arange(6, dtype="float32")
    state, other = base[:3], base[3:]
    program = capture(writer(state), [spec(3)])
    assert program(other).tolist() == [30, 40, 50]
    assert base.tolist() == [1, 2, 3, 3, 4, 5]


def test_a_program_that_writes_nothing_takes_one_tensor_twice():
    weight = oar.to_tensor([2.0, 3.0])
    program = capture(lambda x, y: x * y + weight, [spec(2), spec(2)])
    assert program(weight, weight).tolist() == [6, 12]


def test_a_differentiated_program_checks_too():
    state = oar.zeros([2])

    def step(x):
        state.add_(x.detach())
        return (x * x).sum()

    program = capture(step, [InputSpec([2], "float32", stop_gradient=False)]).differentiate(["x"])
    loss, slope = program(oar.ones([2]))
    assert loss.item() == 2 and slope.tolist() == [2, 2] and state.tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="shares memory"):
        program(state)


def test_a_program_that_would_write_its_argument_is_not_captured():
    with pytest.raises(NotImplementedError, match="writes to one of its inputs"):
        capture(lambda x: x.add_(oar.ones([2])), [spec(2)])
