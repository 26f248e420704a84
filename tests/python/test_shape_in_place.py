"""reshape_, flatten_, squeeze_ and unsqueeze_: a tensor that becomes a view of itself, in programs as in eager mode."""

import numpy as np
import pytest

import oar
from oar.static import InputSpec

CALLS = {
    "flatten_": lambda x: x.flatten_(),
    "reshape_": lambda x: x.reshape_([3, 2]),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "twice": lambda x: x.flatten_().unsqueeze_(1),
}
VALUES = np.arange(6, dtype="float32").reshape(2, 1, 3)


def body(call):
    def function(x):
        z = x + 1.0
        row = z[0]
        y = call(z)
        assert y is z
        z.add_(oar.to_tensor(10.0))  # through the new shape: the view taken before sees it
        return y * 2.0, z * 3.0, row * 1.0

    return function


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", ["to_static", "capture"])
def test_in_captured_functions(name, way):
    function = body(CALLS[name])
    expected = [t.numpy() for t in function(oar.to_tensor(VALUES))]
    if way == "to_static":
        captured = oar.jit.to_static(function)
    else:
        captured = oar.jit.capture(function, [InputSpec([2, 1, 3])])
    for _ in range(2):
        made = captured(oar.to_tensor(VALUES))
        for a, b in zip(made, expected):
            np.testing.assert_array_equal(a.numpy(), b)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_in_captured_functions(name):
    def function(x):
        z = x * x
        y = CALLS[name](z)
        return (y * y).sum() + z.sum()

    gradients = []
    for called in (function, oar.jit.to_static(function)):
        x = oar.to_tensor(VALUES, stop_gradient=False)
        called(x).backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(gradients[0], gradients[1])


@pytest.mark.parametrize("name", CALLS)
def test_in_static_programs(name):
    oar.enable_static()
    try:
        program = oar.static.Program()
        with oar.static.program_guard(program):
            x = oar.static.data("x", [2, 1, 3])
            z = x + 1.0
            y = CALLS[name](z)
            fetched = [y, y * 2.0, z * 3.0]
            made = oar.static.Executor().run(program, feed={"x": VALUES}, fetch_list=fetched)
    finally:
        oar.disable_static()
    z = CALLS[name](oar.to_tensor(VALUES) + 1.0).numpy()
    for a, b in zip(made, (z, z * 2, z * 3)):
        np.testing.assert_array_equal(a, b)


def test_the_shape_of_an_argument_or_of_a_tensor_outside_changes_as_in_eager_mode():
    @oar.jit.to_static
    def of_argument(x):
        x.flatten_()
        return x * 2.0

    x = oar.to_tensor(VALUES)
    assert of_argument(x).shape == [6] and x.shape == [6]

    outside = oar.to_tensor(VALUES)

    @oar.jit.to_static
    def of_outside(x):
        outside.flatten_()
        return outside * x

    assert of_outside(oar.ones([6])).shape == [6] and outside.shape == [6]


@pytest.mark.parametrize("name", CALLS)
def test_another_shape_counts_as_a_write(name):
    x = oar.to_tensor(VALUES, stop_gradient=False)
    z = x * 2.0
    y = z * z  # its gradient needs z
    CALLS[name](z)
    assert z.inplace_version > 0
    with pytest.raises(RuntimeError, match="changed in place since"):
        y.sum().backward()


@pytest.mark.parametrize("change", [*CALLS.values(), lambda x: x.cast_("float64"), lambda x: x.cumsum_()])
def test_a_leaf_that_requires_a_gradient_keeps_its_shape(change):
    x = oar.to_tensor(VALUES, stop_gradient=False)
    with pytest.raises(ValueError, match="leaf that requires a gradient"):
        change(x)


def test_cumsum_without_an_axis_makes_a_vector():
    x = oar.to_tensor(VALUES, stop_gradient=False)
    z = x * 1.0
    assert z.cumsum_() is z
    np.testing.assert_array_equal(z.numpy(), VALUES.cumsum())
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy().ravel(), [6, 5, 4, 3, 2, 1])
