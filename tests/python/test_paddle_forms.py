"""Calls in the forms that Paddle 3.3 takes, and what it does at edges."""


import numpy as np
import pytest

import oar
from oar import _C, nn


@pytest.mark.parametrize("call", [
    lambda x, y, z: oar.logical_and(x, y, z), lambda x, y, z: oar.logical_or(x, y, z, "name"), lambda x, y, z: x.logical_xor(y, z),
    lambda x, y, z: oar.logical_not(x, z), lambda x, y, z: oar.bitwise_and(x, y, z), lambda x, y, z: oar.bitwise_not(x, z),
])
def test_the_place_of_a_result_after_the_operands(call):
    x, y = oar.to_tensor([True, False, True]), oar.to_tensor([True, True, False])
    z = oar.zeros([3], "bool")
    made = call(x, y, z)
    assert made is z and made.tolist() == call(x, y, None).tolist()


def test_a_wrong_place_is_an_error():
    with pytest.raises(TypeError, match=r"\[logical_not\] it takes 1 arguments"):
        oar.logical_not(oar.to_tensor([True]), 3)


def test_a_0d_tensor_yields_nothing():
    assert list(oar.to_tensor(3.0)) == []
    with pytest.raises(TypeError):
        len(oar.to_tensor(3.0))


@pytest.mark.parametrize(("values", "shape"), [([1.0, 2.0], [2, 3, 1]), ([[1.0], [2.0]], [2, 3])])
def test_values_of_sparse_tensors_with_and_without_axes_of_size_1(values, shape):
    made = oar.sparse.sparse_coo_tensor([[0, 1], [1, 2]], values, shape)
    expected = np.array([[0, 1, 0], [0, 0, 2]], "float32").reshape(shape)
    np.testing.assert_array_equal(made.to_dense().numpy(), expected)
    eager = oar.framework.core.eager.sparse_coo_tensor(oar.to_tensor([[0, 1], [1, 2]]), oar.to_tensor(values), shape, False)
    np.testing.assert_array_equal(eager.to_dense().numpy(), expected)
    assert not eager.stop_gradient


def test_values_that_do_not_fill_the_dense_axes():
    with pytest.raises(ValueError, match=r"shape \[2, 3, 2\] does not fit"):
        oar.sparse.sparse_coo_tensor([[0, 1], [1, 2]], [[1.0], [2.0]], [2, 3, 2])


def test_nested_lists_of_variables():
    oar.enable_static()
    try:
        program = oar.static.Program()
        with oar.static.program_guard(program):
            x = oar.static.data("x", [], "int64")
            made = oar.to_tensor([[x, 2], [3, x]])
            assert made.shape == [2, 2] and made.dtype == oar.int64
            wide = oar.to_tensor([x, 1], dtype="float32")
        found = oar.static.Executor().run(program, feed={"x": np.array(7)}, fetch_list=[made, wide])
    finally:
        oar.disable_static()
    assert found[0].tolist() == [[7, 2], [3, 7]] and found[1].tolist() == [7.0, 1.0]


@pytest.mark.parametrize("stops", [False, True])
def test_arrays_of_programs_stop_gradients(stops):
    oar.enable_static()
    try:
        program = oar.static.Program()
        with oar.static.program_guard(program):
            x = oar.static.data("x", [2])
            x.stop_gradient = False
            array = oar.tensor.create_array("float32", [x * 3])
            array.stop_gradient = stops
            read = oar.tensor.array_read(array, 0)
            joined, _ = oar.tensor.tensor_array_to_tensor(array, axis=0)
            assert read.stop_gradient is stops and joined.stop_gradient is stops
    finally:
        oar.disable_static()
    assert type(oar.tensor.create_array("float32")) is list


def test_a_seed_of_the_default_program_fixes_initial_parameters():
    try:
        oar.framework.random._manual_program_seed(5)
        first, second = nn.Linear(3, 4), nn.Linear(3, 4)
        np.testing.assert_array_equal(first.weight.numpy(), second.weight.numpy())
        drawn = [nn.initializer.Normal().sample([4], "float32").tolist() for _ in range(2)]
        assert drawn[0] == drawn[1]
    finally:
        oar.framework.random._manual_program_seed(0)
    assert nn.Linear(3, 4).weight.tolist() != nn.Linear(3, 4).weight.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_gelu_by_tanh_far_out(dtype):
    x = oar.to_tensor([1e25, -1e25, float("inf"), float("-inf"), float("nan")], dtype, stop_gradient=False)
    nn.functional.gelu(x, approximate=True).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0, 1, 0, float("nan")])


@pytest.mark.parametrize("shape", [[3, -1], [2], [1, 3, 4], [4, 3]])
def test_sum_to_refuses_shapes_that_do_not_fit(shape):
    with pytest.raises(ValueError, match=r"\[sum_to\] a tensor of shape \[3, 4\] cannot be summed to shape"):
        _C.ops.sum_to(oar.ones([3, 4]), shape)


def test_integers_have_no_sgn():
    with pytest.raises(TypeError, match=r"\[sgn\] x has dtype int64"):
        oar.sgn(oar.to_tensor([1, -2]))


def test_programs_of_a_static_function():
    f = oar.jit.to_static(lambda x: x * 2)
    with pytest.raises(RuntimeError, match="no program has been captured yet"):
        f.program_cache.last()
    f(oar.ones([2])), f(oar.ones([2], "float64"))
    assert len(f.program_cache) == f.get_traced_count() == len(f.program_cache.concrete_programs()) == 2
    _, (concrete, partial) = f.program_cache.last()
    assert [op.name() for op in partial.infer_program.program.global_block().ops] == ["pd_op.multiply"]
    assert concrete.main_program.op_names == ["multiply"]
    f.program_cache.clear()
    assert len(f.program_cache) == 0 and f(oar.ones([2])).tolist() == [2.0, 2.0]
