"""Splitting, joining and rearranging: the forms of arguments that no schema expresses."""

import itertools

import numpy as np
import pytest

import oar

A = np.arange(24.0).reshape(2, 3, 4)


def equal(found, wanted):
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        np.testing.assert_array_equal(f.numpy(), w)


def test_a_list_of_one_is_a_list():
    x = oar.to_tensor(A)
    equal(oar.split(x, [4], axis=2), [A])
    equal(x.split([3], 1), [A])
    equal(oar.split(x, 2, axis=2), np.split(A, 2, 2))
    equal(oar.split(x, [1, -1], axis=1), [A[:, :1], A[:, 1:]])
    equal(oar.split(x, [oar.to_tensor(1), 2], axis=1), [A[:, :1], A[:, 1:]])
    equal(oar.tensor_split(x, [2], axis=2), [A[..., :2], A[..., 2:]])
    equal(oar.tensor_split(x, 3, axis=2), np.array_split(A, 3, 2))
    with pytest.raises(ValueError, match="add up to 2"):
        oar.split(x, [2], axis=1)


@pytest.mark.parametrize("given", [2, [1], (1, 2)])
def test_splits_along_named_axes(given):
    x = oar.to_tensor(A)
    equal(oar.hsplit(x, given), np.array_split(A, given, 1))
    equal(oar.vsplit(x, given), np.array_split(A, given, 0))
    equal(oar.dsplit(x, given), np.array_split(A, given, 2))
    equal(oar.to_tensor(A[0, 0]).hsplit(given), np.array_split(A[0, 0], given))
    with pytest.raises(ValueError, match="dsplit needs 3 axes"):
        oar.dsplit(x[0], given)


def test_repeats_by_number_and_by_tensor():
    x = oar.to_tensor(A)
    np.testing.assert_array_equal(oar.repeat_interleave(x, 2, 1).numpy(), A.repeat(2, 1))
    np.testing.assert_array_equal(x.repeat_interleave(oar.to_tensor([1, 0, 2]), axis=1).numpy(), A.repeat([1, 0, 2], 1))
    np.testing.assert_array_equal(x.repeat_interleave(3).numpy(), A.repeat(3))
    with pytest.raises(ValueError, match="each slice needs its number"):
        oar.repeat_interleave(x, oar.to_tensor([1, 2]), 1)


def test_where_alone_finds_places():
    condition = np.array([[True, False], [True, True]])
    equal(oar.where(oar.to_tensor(condition)), np.nonzero(condition))
    with pytest.raises(ValueError, match="both or none"):
        oar.where(oar.to_tensor(condition), 1.0)


def test_clip_by_tensors():
    x = oar.to_tensor(A)
    low, high = oar.to_tensor([2.0, 4.0, 6.0, 8.0]), oar.to_tensor(15.0)
    np.testing.assert_array_equal(oar.clip(x, low, high).numpy(), np.clip(A, [2, 4, 6, 8], 15))
    np.testing.assert_array_equal(x.clip(max=high).numpy(), np.minimum(A, 15))
    y = oar.to_tensor(A)
    assert y.clip_(3.0, high) is y
    np.testing.assert_array_equal(y.numpy(), np.clip(A, 3, 15))


def test_grids_and_choices():
    a, b = np.arange(2), np.arange(3)
    x, y = oar.to_tensor(a), oar.to_tensor(b)
    equal(oar.meshgrid(x, y), np.meshgrid(a, b, indexing="ij"))
    equal(oar.meshgrid([x, y]), np.meshgrid(a, b, indexing="ij"))
    np.testing.assert_array_equal(oar.cartesian_prod([x, y]).numpy(), list(itertools.product(a, b)))
    np.testing.assert_array_equal(oar.combinations(y).numpy(), list(itertools.combinations(b, 2)))
    np.testing.assert_array_equal(y.combinations(2, True).numpy(), list(itertools.combinations_with_replacement(b, 2)))
    assert oar.combinations(y, 4).shape == [0, 4]
    assert oar.combinations(y, 0).shape == [0]


@pytest.mark.parametrize("row, col, offset", [(3, 4, 0), (4, 3, 1), (3, 3, -1), (2, None, 0), (3, 3, 9)])
def test_triangle_indices(row, col, offset):
    np.testing.assert_array_equal(oar.tril_indices(row, col, offset).numpy(), np.array(np.tril_indices(row, offset, col)))
    np.testing.assert_array_equal(oar.triu_indices(row, col, offset).numpy(), np.array(np.triu_indices(row, offset, col)))


def test_ranks_are_made_up():
    assert oar.atleast_2d(oar.to_tensor(1.0)).shape == [1, 1]
    both = oar.atleast_3d(oar.to_tensor([1.0, 2.0]), oar.to_tensor(A))
    assert [t.shape for t in both] == [[1, 2, 1], [2, 3, 4]]


def test_view_under_a_shape_and_a_dtype():
    x = oar.to_tensor(A.astype("float32"))
    assert x.view([6, 4]).shape == [6, 4]
    np.testing.assert_array_equal(oar.view(x, "int32").numpy(), A.astype("float32").view("int32"))
    np.testing.assert_array_equal(x.view("uint8").numpy(), A.astype("float32").view("uint8"))
    with pytest.raises(ValueError, match="are not whole elements"):
        oar.view(oar.zeros([3], "uint8"), "int32")


def test_in_place_forms_keep_the_tensor():
    for name, args, shape in [("reshape_", ([6, 4],), [6, 4]), ("flatten_", (), [24]), ("unsqueeze_", ([0],), [1, 2, 3, 4]),
                              ("transpose_", ([2, 0, 1],), [4, 2, 3])]:
        x = oar.to_tensor(A)
        assert getattr(x, name)(*args) is x
        assert x.shape == shape
    x = oar.to_tensor(A[:, :1])
    assert x.squeeze_(1).shape == [2, 4]
    np.testing.assert_array_equal(oar.t_(oar.to_tensor(A[0])).numpy(), A[0].T)
    leaf = oar.to_tensor(A, stop_gradient=False)
    with pytest.raises(RuntimeError, match="cannot change in place"):
        leaf.reshape_([24])
    inner = leaf * 2
    inner.reshape_([24])
    (inner * oar.arange(24, dtype="float64")).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 2 * A)


def test_t_and_its_error():
    np.testing.assert_array_equal(oar.t(oar.to_tensor(A[0])).numpy(), A[0].T)
    with pytest.raises(ValueError, match="Use transpose"):
        oar.t(oar.to_tensor(A))


# Copies go by tiles where the two sides run along different axes; sizes around the tiles' edges.
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (65, 67), (130, 9), (2, 64, 3), (70, 2), (70, 3), (70, 4), (5, 66, 4, 9)])
def test_copies_of_permuted_axes(shape, dtype):
    a = (np.arange(np.prod(shape)) % 127).astype(dtype).reshape(shape)
    x = oar.to_tensor(a)
    for perm in itertools.permutations(range(len(shape))):
        np.testing.assert_array_equal(oar.transpose(x, list(perm)).contiguous().numpy(), a.transpose(perm))
        turned = oar.flip(oar.transpose(x, list(perm)), [0])
        np.testing.assert_array_equal(turned.numpy(), a.transpose(perm)[::-1])
        np.testing.assert_array_equal(oar.flip(oar.transpose(x, list(perm)), [-1]).numpy(), a.transpose(perm)[..., ::-1])


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, -1, -2])
def test_copies_of_steps(step):
    a = np.arange(7 * 40, dtype="float32").reshape(7, 40)
    x = oar.to_tensor(a)
    np.testing.assert_array_equal(x[:, ::step].contiguous().numpy(), a[:, ::step])
    y = oar.to_tensor(a)
    y[:, ::2] = x[:, 1::2]
    b = a.copy()
    b[:, ::2] = a[:, 1::2]
    np.testing.assert_array_equal(y.numpy(), b)


def test_norms_of_results_that_are_written_past_the_caches():
    """From 16 MiB on; every element must have been written, also at lengths that are not whole vectors."""
    rng = np.random.default_rng(11)
    for shape in [(33, 16, 91, 89), (4300, 1003)]:
        x = rng.normal(size=shape).astype(np.float32)
        axes = tuple(i for i in range(x.ndim) if i != 1)
        keep = [-1 if i == 1 else 1 for i in range(x.ndim)]
        mean, var = x.mean(axes).reshape(keep), x.var(axes).reshape(keep)
        made = oar._C.ops.batch_norm_train(oar.to_tensor(x), None, None, 1e-5, 1)[0].numpy()
        np.testing.assert_allclose(made, (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-4)
    rows = oar.nn.functional.layer_norm(oar.to_tensor(x), [1003]).numpy()
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rows, wanted, rtol=1e-4, atol=1e-4)
