"""Embedding's two kinds of gradient, and selected-rows tensors."""

import numpy as np
import pytest

import oar
from oar._C import ops

WEIGHT = np.random.default_rng(3).standard_normal((6, 3)).astype("float32")
NUMBERS = np.array([[1, 2, 1], [5, 0, 1]])


def parameter(values=WEIGHT):
    weight = oar.to_tensor(values)
    weight.stop_gradient = False
    return weight


def dense(grad):
    return ops.selected_rows_to_dense(grad).numpy()


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding", [None, 1, -1])
def test_gradient_of_the_weight(padding, sparse, by_frequency):
    weight = parameter()
    out = ops.embedding(oar.to_tensor(NUMBERS), weight, padding_idx=padding, sparse=sparse,
                        scale_grad_by_freq=by_frequency)
    given = np.random.default_rng(4).standard_normal(out.shape).astype("float32")
    oar.sum(out * oar.to_tensor(given)).backward()

    kept = np.ones(NUMBERS.shape, bool) if padding is None else NUMBERS != padding % 6
    counts = np.bincount(NUMBERS.ravel(), minlength=6)[NUMBERS] if by_frequency else np.ones(NUMBERS.shape)
    wanted = np.zeros_like(WEIGHT)
    np.add.at(wanted, NUMBERS[kept], (given / counts[..., None])[kept])
    assert weight.grad.is_selected_rows() == sparse
    np.testing.assert_allclose(dense(weight.grad), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out.numpy(), np.where(kept[..., None], WEIGHT[NUMBERS], 0))


# Rows of less than a piece, of whole pieces and of both; more of them than are prefetched.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 2, 4, 5, 16, 40, 100])
def test_rows_of_any_width_are_looked_up_summed_and_updated(width, dtype):
    rng = np.random.default_rng(width)
    values = rng.standard_normal((50, width)).astype(dtype)
    numbers = rng.integers(0, 50, (7, 30))
    given = rng.standard_normal((7, 30, width)).astype(dtype)
    wanted = np.zeros_like(values)
    np.add.at(wanted, numbers, given)
    for sparse in (False, True):
        weight = parameter(values)
        out = ops.embedding(oar.to_tensor(numbers), weight, sparse=sparse)
        np.testing.assert_array_equal(out.numpy(), values[numbers])
        out.backward(oar.to_tensor(given))
        np.testing.assert_allclose(dense(weight.grad), wanted, rtol=1e-5, atol=1e-5)
        oar.optimizer.SGD(0.5, parameters=[weight]).step()
        np.testing.assert_allclose(weight.numpy(), values - 0.5 * wanted, rtol=1e-5, atol=1e-5)


def test_sparse_gradients_add_up_without_becoming_dense():
    weight = parameter()
    for _ in range(2):
        oar.sum(ops.embedding(oar.to_tensor(NUMBERS), weight, sparse=True)).backward()
    assert weight.grad.is_selected_rows()
    assert ops.selected_rows_rows(weight.grad).numpy().tolist() == NUMBERS.ravel().tolist() * 2
    assert ops.selected_rows_values(weight.grad).shape == [12, 3]
    np.testing.assert_allclose(dense(weight.grad)[:, 0], [2, 6, 2, 0, 0, 2])


def test_other_ops_see_a_dense_tensor():
    weight = parameter()
    loss = oar.sum(ops.embedding(oar.to_tensor(NUMBERS), weight, sparse=True)) + oar.sum(weight * weight)
    loss.backward()
    assert not weight.grad.is_selected_rows()
    counts = np.bincount(NUMBERS.ravel(), minlength=6)[:, None]
    np.testing.assert_allclose(weight.grad.numpy(), 2 * WEIGHT + counts, rtol=1e-6)


def test_a_gradient_that_is_differentiated_again_is_dense():
    weight = parameter()
    out = ops.embedding(oar.to_tensor(NUMBERS), weight, sparse=True)
    grad, = oar.grad(oar.sum(out * out * out), [weight], create_graph=True)
    assert not grad.is_selected_rows()
    second, = oar.grad(oar.sum(grad), [weight])
    counts = np.bincount(NUMBERS.ravel(), minlength=6)[:, None]
    np.testing.assert_allclose(dense(second), 6 * WEIGHT * counts, rtol=1e-5)


def test_max_norm_scales_the_rows_that_are_used():
    weight = parameter(WEIGHT.copy())
    out = ops.embedding(oar.to_tensor(NUMBERS), weight, max_norm=1.0)
    norms = np.linalg.norm(WEIGHT, axis=1, keepdims=True)
    wanted = WEIGHT * np.where((norms > 1) & np.isin(np.arange(6), NUMBERS)[:, None], 1 / (norms + 1e-7), 1)
    np.testing.assert_allclose(weight.numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(out.numpy(), wanted[NUMBERS], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_sums_do_not_depend_on_the_threads(dtype):
    random = np.random.default_rng(5)
    rows = oar.to_tensor(random.integers(0, 40, 5000))
    values = oar.cast(oar.to_tensor(random.standard_normal((5000, 32)).astype("float32")), dtype)
    found = []
    for threads in (1, 2, 3):
        oar.set_num_threads(threads)
        table = oar.zeros([40, 32], dtype)
        found.append([oar.cast(t, "float64").numpy() for t in
                      (ops.embedding_grad(rows, values, 40), ops.index_put(table, [rows], values, True),
                       ops.index_put(table, [rows], values))])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("numbers, text", [([6], "row number 6; weight has 6 rows"), ([-1], "row number -1")])
def test_rows_that_are_not_there(numbers, text):
    with pytest.raises(IndexError, match=text):
        ops.embedding(oar.to_tensor(np.array(numbers)), parameter())


def test_captured_gradients_hold_the_rows_too():
    found = []
    for wrap in (lambda f: f, oar.jit.to_static):
        weight = parameter(WEIGHT.copy())
        optimizer = oar.optimizer.SGD(0.1, parameters=[weight])

        def net(numbers):
            rows = ops.embedding(numbers, weight, sparse=True)
            return oar.sum(rows * rows)

        call = wrap(net)
        for _ in range(3):
            call(oar.to_tensor(NUMBERS)).backward()
            assert weight.grad.is_selected_rows()
            optimizer.step()
            optimizer.clear_grad()
        found.append(weight.numpy())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_updates_by_rows_are_those_of_the_dense_gradient(dtype):
    random = np.random.default_rng(6)
    table, values = random.standard_normal((300, 24)), random.standard_normal((4000, 24))
    numbers = random.integers(0, 300, 4000)
    dense = np.zeros_like(table)
    np.add.at(dense, numbers, values)
    found = []
    for threads in (1, 2, 3):
        oar.set_num_threads(threads)
        weight = oar.cast(oar.to_tensor(table), dtype)
        weight.stop_gradient = False
        optimizer = oar.optimizer.SGD(0.125, parameters=[weight])
        out = ops.embedding(oar.to_tensor(numbers), weight, sparse=True)
        out.backward(oar.cast(oar.to_tensor(values), dtype))
        optimizer.step()
        found.append(oar.cast(weight.detach(), "float64").numpy())
    tolerance = {"float16": 3e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found[0], table - 0.125 * dense, rtol=0, atol=tolerance)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
