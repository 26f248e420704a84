"""Indexing as NumPy does it: reading, writing, and gradients through both."""

import numpy as np
import pytest

import oar

SHAPE = (4, 5, 6)
I = np.array([3, 0, -1, 2])
J = np.array([[1, 3, 0], [2, -2, 1]])
MASK1 = np.array([True, False, True, True])
MASK2 = np.arange(20).reshape(4, 5) % 3 == 0
MASK3 = np.arange(120).reshape(SHAPE) % 7 == 1
B = slice(None)

# What is between the brackets. Arrays become tensors, and stay arrays in a second round.
INDICES = {
    "int": 2, "negative": -1, "two ints": (1, 2), "three ints": (1, -2, 3), "slice": slice(1, 3),
    "step": slice(None, None, 2), "back": slice(None, None, -1), "back by two": slice(3, 0, -2),
    "slices": (slice(1, None), slice(None, -2), slice(None, None, 3)), "beyond": slice(2, 100), "empty": slice(3, 1),
    "all": B, "ellipsis": ..., "ellipsis first": (..., 2), "ellipsis middle": (1, ..., 2), "ellipsis last": (1, ...),
    "newaxis": None, "newaxis inside": (slice(1, 3), None, 2), "newaxis and ellipsis": (None, ..., None),
    "int and back": (2, slice(None, None, -1), slice(4, None, -2)),
    "bool mask": MASK1, "mask of two": MASK2, "mask of three": MASK3,
    "mask behind": (B, np.array([True] * 3 + [False] * 2)),
    "mask and int": (MASK1, 2), "mask and slice": (MASK1, slice(1, 3)), "empty mask": np.zeros(4, bool),
    "integers": I, "integers of rank two": J, "integers behind": (B, I), "integers last": (..., I),
    "two integer arrays": (I, I), "broadcast arrays": (I[:, None], np.array([0, 2, 4])),
    "arrays around a slice": (I, B, I), "array and int": (I, 2), "int, slice, array": (1, B, I),
    "array, newaxis": (I, None), "slice, array, array": (slice(1, 3), I, I), "list": [0, 2, 1],
    "array with ellipsis": (..., I, 2), "array and back": (I, slice(None, None, -1)),
    "true": True, "false": False, "empty array": np.zeros(0, np.int64), "0-d array": np.array(2),
    "arrays around an empty ellipsis": (B, I, ..., I), "array, ellipsis, int": (I, B, ..., 2),
    "int, ellipsis, array": (1, ..., J, B), "mask and array around an ellipsis": (MASK1, ..., B, np.array([1, 2, 0])),
    "array and mask around an ellipsis": (np.array([1, 2, 0]), ..., np.arange(30).reshape(5, 6) % 11 == 0),
    "mask and array": (MASK1, np.array([1, 2, 0])), "uint8 of mask": (I.astype(np.int32),),
}


def as_tensors(index):
    if isinstance(index, np.ndarray):
        return oar.to_tensor(index)
    if isinstance(index, tuple):
        return tuple(as_tensors(i) for i in index)
    return index


def data(dtype=np.float64):
    return np.arange(120, dtype=dtype).reshape(SHAPE) / 7


@pytest.mark.parametrize("form", [as_tensors, lambda i: i], ids=["tensors", "arrays"])
@pytest.mark.parametrize("name", INDICES)
def test_read(name, form):
    a = data()
    found = oar.to_tensor(a)[form(INDICES[name])]
    wanted = a[INDICES[name]]
    assert tuple(found.shape) == wanted.shape
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("name", INDICES)
def test_read_of_transposed(name):
    a = np.ascontiguousarray(data().transpose(2, 1, 0))
    x = oar.transpose(oar.to_tensor(a), [2, 1, 0])
    np.testing.assert_array_equal(x[as_tensors(INDICES[name])].numpy(), a.transpose(2, 1, 0)[INDICES[name]])


@pytest.mark.parametrize("name", INDICES)
def test_write(name):
    index = INDICES[name]
    part = data()[index]
    values = [3.5, np.float64(-1), (np.arange(part.size, dtype=np.float64) * 2).reshape(part.shape)]
    if part.ndim:
        values.append(np.arange(part.shape[-1], dtype=np.float64))  # broadcast from the right
        values.append(np.ones((1,) * part.ndim))
    for value in values:
        a, x = data(), oar.to_tensor(data())
        before = x.data_ptr()
        a[index] = value
        x[as_tensors(index)] = oar.to_tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(x.numpy(), a)
        assert x.data_ptr() == before
        x = oar.to_tensor(data())
        x[index] = value
        np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("name", INDICES)
def test_gradient_of_read(name):
    index = INDICES[name]
    x = oar.to_tensor(data(), stop_gradient=False)
    y = x[as_tensors(index)]
    weight = np.random.default_rng(0).standard_normal(y.shape)
    (y * oar.to_tensor(np.asarray(weight))).sum().backward()
    wanted = np.zeros(SHAPE)
    np.add.at(wanted, index, weight)
    np.testing.assert_allclose(x.grad.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("name", INDICES)
def test_gradient_of_write(name):
    index = INDICES[name]
    part = data()[index]
    base = oar.to_tensor(data(), stop_gradient=False)
    value = oar.to_tensor(np.asarray(np.ones(part.shape)), stop_gradient=False)
    x = base * 1.0
    x[as_tensors(index)] = value
    weight = np.random.default_rng(1).standard_normal(SHAPE)
    (x * oar.to_tensor(weight)).sum().backward()
    untouched = np.ones(SHAPE)
    untouched[index] = 0
    np.testing.assert_allclose(base.grad.numpy(), weight * untouched, atol=1e-12)
    if value.size:
        # Where an element is written twice, one of the writers has the gradient: the sums agree.
        np.testing.assert_allclose(value.grad.numpy().sum(), (weight * (1 - untouched)).sum(), atol=1e-9)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    x = oar.ones([3, 4], dtype)
    x[1, ::2] = 0
    assert x[1].astype("float32").tolist() == [0, 1, 0, 1] if dtype != "complex64" else x.dtype.name == dtype
    assert x[oar.to_tensor([0, 1])].dtype.name == dtype


def test_views_share_memory():
    x = oar.zeros([4, 5])
    v = x[1:3, ::2]
    v[...] = 7.0
    assert x.numpy()[1:3, ::2].min() == 7 and x.numpy().sum() == 7 * 6
    x[1] = 1.0
    np.testing.assert_array_equal(v.numpy()[0], [1, 1, 1])
    copied = x[oar.to_tensor([1, 2])]
    copied[...] = 9.0
    assert x.numpy().max() == 7


def test_write_of_itself():
    x = oar.to_tensor(np.arange(6.0))
    x[1:] = x[:-1]
    np.testing.assert_array_equal(x.numpy(), [0, 0, 1, 2, 3, 4])
    x[::-1] = x
    np.testing.assert_array_equal(x.numpy(), [4, 3, 2, 1, 0, 0])


def test_augmented():
    x = oar.zeros([3, 3])
    x[1] += 2.0
    x[:, 0] *= 3.0
    x[oar.to_tensor([0, 2])] -= 1.0
    np.testing.assert_array_equal(x.numpy(), [[-1, -1, -1], [6, 2, 2], [-1, -1, -1]])


def test_slices_of_tensors():
    x = oar.arange(10)
    assert x[oar.to_tensor(2):oar.to_tensor(5)].tolist() == [2, 3, 4]
    assert x[oar.to_tensor(3)].item() == 3


def test_zero_size():
    x = oar.zeros([0, 3])
    assert x[:, 1].shape == [0] and x[oar.zeros([0], "int64")].shape == [0, 3]
    x[...] = 1.0
    assert oar.to_tensor(5.0)[...].item() == 5 and oar.to_tensor(5.0)[None].shape == [1]


@pytest.mark.parametrize("index, error", [
    (4, IndexError), (-5, IndexError), ((0, 0, 0, 0), IndexError), (np.array([0, 4]), IndexError),
    (np.array([-5]), IndexError), (np.ones(3, bool), IndexError), ("text", (TypeError, IndexError)),
    (1.5, (TypeError, IndexError)), (np.array([0.5]), (TypeError, IndexError)), ((..., ...), (IndexError, ValueError)),
    (slice(None, None, 0), ValueError), (slice("a", None), (TypeError, IndexError)),
    ((np.array([0, 1]), np.array([0, 1, 2])), (IndexError, ValueError)),
])
def test_errors(index, error):
    for action in (lambda x: x[as_tensors(index)], lambda x: x.__setitem__(as_tensors(index), 1.0)):
        x = oar.to_tensor(data())
        with pytest.raises(error):
            action(x)
        np.testing.assert_array_equal(x.numpy(), data())


def test_write_of_wrong_shape():
    x = oar.zeros([3, 4])
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        x[0] = oar.ones([3])
    with pytest.raises(ValueError):
        x[oar.to_tensor([0, 1])] = oar.ones([3, 4])


def test_many_random_indices():
    rng = np.random.default_rng(5)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        a = rng.standard_normal(shape)
        index = []
        for n in shape[:rng.integers(0, len(shape) + 1)]:
            kind = rng.integers(0, 4)
            if kind == 0:
                index.append(int(rng.integers(-n, n)))
            elif kind == 1:
                bounds = [None if rng.random() < 0.3 else int(v) for v in rng.integers(-n - 1, n + 2, 2)]
                index.append(slice(*bounds, int(rng.choice([-2, -1, 1, 2]))))
            elif kind == 2:
                index.append(rng.integers(-n, n, 3))
            else:
                index.append(B)
            if rng.random() < 0.15:
                index.append(None)
        if rng.random() < 0.3:
            index.append(...)
        index = tuple(index)
        wanted = a[index]
        found = oar.to_tensor(a)[as_tensors(index)]
        assert tuple(found.shape) == wanted.shape, index
        np.testing.assert_array_equal(found.numpy(), wanted, err_msg=str(index))
        x, value = oar.to_tensor(a), rng.standard_normal()
        x[as_tensors(index)] = value
        a[index] = value
        np.testing.assert_array_equal(x.numpy(), a, err_msg=str(index))
