"""The tensor as an object: how it looks, converts, compares, copies and shares memory."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest

import oar

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128"]


# ---- looks -----------------------------------------------------------------------------------------


HEAD = "Tensor(shape={}, dtype={}, place=Place(cpu), stop_gradient=True,\n       "


@pytest.mark.parametrize("make, shape, dtype, body", [
    (lambda: oar.to_tensor([1.0, 2.0]), [2], "float32", "[1., 2.]"),
    (lambda: oar.to_tensor([0.5, 2.0]), [2], "float32", "[0.50000000, 2.        ]"),
    (lambda: oar.to_tensor([-1.0, 2.0]), [2], "float32", "[-1.,  2.]"),
    (lambda: oar.to_tensor([[1, 2], [3, 4]]), [2, 2], "int64", "[[1, 2],\n        [3, 4]]"),
    (lambda: oar.to_tensor([True, False]), [2], "bool", "[True , False]"),
    (lambda: oar.to_tensor(2.5), [], "float32", "2.50000000"),
    (lambda: oar.zeros([0, 3]), [0, 3], "float32", "[]"),
    (lambda: oar.to_tensor([1.0, 2.5], dtype="bfloat16"), [2], "bfloat16", "[1.        , 2.50000000]"),
    (lambda: oar.to_tensor([float("nan"), float("inf")]), [2], "float32", "[nan, inf]"),
])
def test_repr(make, shape, dtype, body):
    assert repr(make()) == str(make()) == HEAD.format(shape, dtype) + body + ")"


def test_repr_of_much():
    text = repr(oar.arange(2000))
    assert "[0   , 1   , 2   , ..., 1997, 1998, 1999]" in text
    text = repr(oar.zeros([30, 40, 50]))
    assert text.count("...") > 3 and len(text) < 3000
    x = oar.ones([1])
    x.stop_gradient = False
    assert "stop_gradient=False" in repr(x)


def test_print_options():
    from oar._framework import print_options
    before = dict(print_options)
    try:
        oar.set_printoptions(precision=2)
        assert "[0.33]" in repr(oar.to_tensor([1 / 3]))
        oar.set_printoptions(sci_mode=True)
        assert "3.33e-01" in repr(oar.to_tensor([1 / 3]))
        oar.set_printoptions(threshold=4, edgeitems=1)
        assert "..." in repr(oar.arange(9))
    finally:
        print_options.update(before)


def test_format():
    assert f"{oar.to_tensor(3.14159):.2f}" == "3.14" and f"{oar.to_tensor(7):04d}" == "0007"
    assert f"{oar.ones([2])}".startswith("Tensor(")


# ---- questions -------------------------------------------------------------------------------------


def test_properties():
    x = oar.zeros([2, 3, 4], "float64")
    assert x.shape == [2, 3, 4] and isinstance(x.shape, list)
    assert x.ndim == x.dim() == x.rank() == 3 and x.size == 24 and x.numel().item() == 24
    assert x.dtype == oar.float64 and x.dtype == "float64" and x.element_size() == x.itemsize == 8
    assert x.strides == [12, 4, 1] and x.is_contiguous() and len(x) == 2
    assert repr(x.place) == "Place(cpu)" and x.stop_gradient and x.is_leaf and x.grad is None
    assert x.T.shape == [4, 3, 2] and x.mT.shape == [2, 4, 3]
    assert isinstance(x.name, str) and x.persistable is False
    assert oar.is_tensor(x) and not oar.is_tensor(3)


def test_numbers():
    assert int(oar.to_tensor(3.7)) == 3 and float(oar.to_tensor([2])) == 2.0 and bool(oar.to_tensor(0.0)) is False
    assert complex(oar.to_tensor(1 + 2j)) == 1 + 2j and complex(oar.to_tensor(2.0)) == 2
    assert [10, 20, 30][oar.to_tensor(1)] == 20 and list(range(oar.to_tensor(3))) == [0, 1, 2]
    assert oar.to_tensor(5).item() == 5 and isinstance(oar.to_tensor(5).item(), int)
    assert isinstance(oar.to_tensor(5.0).item(), float) and isinstance(oar.to_tensor(True).item(), bool)
    assert oar.to_tensor([1, 2, 3]).item(1) == 2 and oar.to_tensor([[1, 2], [3, 4]]).item(1, 0) == 3
    assert math.sqrt(oar.to_tensor(4.0)) == 2 and round(float(oar.to_tensor(2.6))) == 3
    assert oar.to_tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]] and oar.to_tensor(1.5).tolist() == 1.5


def test_truth():
    assert oar.to_tensor([[5]]) and not oar.to_tensor([0]) and oar.to_tensor(True)
    with pytest.raises(ValueError):
        bool(oar.ones([2]))
    assert 2 in oar.to_tensor([1, 2]) and 3 not in oar.to_tensor([1, 2])


def test_iteration():
    assert [t.tolist() for t in oar.to_tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    a, b = oar.to_tensor([1, 2])
    assert a.item() == 1 and b.item() == 2
    assert len(oar.zeros([0, 2])) == 0 and list(oar.zeros([0, 2])) == []
    assert dict(enumerate(oar.to_tensor([7]))).keys() == {0}


# ---- operators -------------------------------------------------------------------------------------


A, B = np.array([[5, -3], [2, 7]]), np.array([[2, 4], [3, 2]])


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                                operator.mod, operator.matmul, operator.eq, operator.ne, operator.lt, operator.le,
                                operator.gt, operator.ge])
def test_binary_operators(op):
    for dtype in ("int64", "float64"):
        a, b = A.astype(dtype), B.astype(dtype)
        x, y = oar.to_tensor(a), oar.to_tensor(b)
        np.testing.assert_allclose(op(x, y).numpy(), op(a, b), rtol=1e-6)
        if op is not operator.matmul:
            np.testing.assert_allclose(op(x, 2).numpy(), op(a, 2), rtol=1e-6)
            np.testing.assert_allclose(op(3, y).numpy(), op(3, b), rtol=1e-6)
            np.testing.assert_allclose(op(x, b).numpy(), op(a, b), rtol=1e-6)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bit_operators(op):
    np.testing.assert_array_equal(op(oar.to_tensor(A), oar.to_tensor(B)).numpy(), op(A, B))
    np.testing.assert_array_equal(op(oar.to_tensor(A), 3).numpy(), op(A, 3))
    np.testing.assert_array_equal(op(oar.to_tensor(A > 0), oar.to_tensor(B > 2)).numpy(), op(A > 0, B > 2))


def test_unary_operators():
    x = oar.to_tensor(A)
    np.testing.assert_array_equal((-x).numpy(), -A)
    np.testing.assert_array_equal((+x).numpy(), A)
    np.testing.assert_array_equal(abs(x).numpy(), abs(A))
    np.testing.assert_array_equal((~x).numpy(), ~A)
    np.testing.assert_array_equal((~oar.to_tensor(A > 0)).numpy(), ~(A > 0))


def test_power():
    x = oar.to_tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose((x ** 2).numpy(), [1, 4, 9])
    np.testing.assert_allclose((2 ** x).numpy(), [2, 4, 8])
    np.testing.assert_allclose((x ** x).numpy(), [1, 4, 27])


def test_augmented_operators():
    x = oar.to_tensor([1.0, 2.0])
    y = x
    y += 1
    y *= 2
    y -= 1
    y /= 3
    np.testing.assert_allclose(y.numpy(), [1, 5 / 3])


def test_unknown_operands_are_left_to_python():
    class Other:
        def __radd__(self, left):
            return "other"
    assert oar.ones([2]) + Other() == "other"
    with pytest.raises(TypeError):
        oar.ones([2]) + object()
    assert (oar.ones([2]) == None) is not True  # noqa: E711


# ---- dtypes ----------------------------------------------------------------------------------------


# Paddle's table: between tensors the wider category wins, within a category the wider dtype; f16 with bf16 is f32.
@pytest.mark.parametrize("a, b, wanted", [
    ("int32", "int64", "int64"), ("uint8", "int8", "int16"), ("int8", "int16", "int16"), ("bool", "int32", "int32"),
    ("int64", "float32", "float32"), ("int64", "float16", "float16"), ("float16", "float32", "float32"),
    ("float16", "bfloat16", "float32"), ("float32", "float64", "float64"), ("bfloat16", "float32", "float32"),
    ("float32", "complex64", "complex64"), ("float64", "complex64", "complex128"), ("int32", "complex64", "complex64"),
    ("complex64", "complex128", "complex128"), ("bool", "float32", "float32"), ("bool", "bool", "bool"),
])
def test_promotion(a, b, wanted):
    x, y = oar.ones([2], a), oar.ones([2], b)
    assert (x * y).dtype.name == (y * x).dtype.name == wanted


@pytest.mark.parametrize("dtype, number, wanted", [
    ("float16", 2.0, "float16"), ("float32", 2, "float32"), ("bfloat16", 2.5, "bfloat16"), ("int32", 2, "int32"),
    ("int32", 2.5, "float32"), ("int64", True, "int64"), ("float64", 2.5, "float64"), ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"), ("bool", 2, "int64"), ("uint8", 2, "uint8"),
])
def test_numbers_do_not_widen(dtype, number, wanted):
    assert (oar.ones([2], dtype) * number).dtype.name == wanted
    assert (number * oar.ones([2], dtype)).dtype.name == wanted


def test_division_of_integers():
    x = oar.to_tensor([3, -3])
    assert (x / 2).dtype.name == "float32" and (x / 2).tolist() == [1.5, -1.5]
    assert (x // 2).dtype.name == "int64" and (x // 2).tolist() == [1, -2]
    assert (x % 2).tolist() == [1, 1]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast(source, target):
    x = oar.to_tensor([0, 1, 1, 3 if source != "bool" else 1]).astype(source)
    y = x.astype(target)
    assert y.dtype.name == target
    back = y.astype("complex128").numpy()
    wanted = [0, 1, 1, 1 if "bool" in (source, target) else 3]
    np.testing.assert_array_equal(back, wanted)


def test_dtype_objects():
    assert oar.float32 == "float32" and oar.float32 != "float64" and hash(oar.int8) == hash(oar.int8)
    assert oar.zeros([1], np.float64).dtype == oar.zeros([1], np.dtype("float64")).dtype == oar.float64
    assert oar.zeros([1], float).dtype == oar.float64 and oar.zeros([1], int).dtype == oar.int64
    assert pickle.loads(pickle.dumps(oar.bfloat16)) == oar.bfloat16 and copy.deepcopy(oar.int8) == oar.int8
    assert oar.finfo("bfloat16").bits == 16 and oar.iinfo("int8").max == 127


# ---- copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [[], [0, 2], [2, 3]])
def test_copies(dtype, shape):
    x = oar.ones(shape, dtype)
    x.note = [1]
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert twin is not x and twin.dtype == x.dtype and twin.shape == x.shape
        assert bytes(twin.numpy()) == bytes(x.numpy())
        assert x.size == 0 or twin.data_ptr() != x.data_ptr()
    twin = copy.deepcopy(x)
    assert twin.note == [1] and twin.note is not x.note
    assert pickle.loads(pickle.dumps(x)).note == [1]


def test_copies_of_recorded():
    x = oar.ones([2])
    x.stop_gradient = False
    assert not copy.deepcopy(x).stop_gradient and not pickle.loads(pickle.dumps(x)).stop_gradient
    assert not x.clone().stop_gradient and x.detach().stop_gradient
    twin = copy.deepcopy(x * 2)
    assert twin.is_leaf and not twin.stop_gradient and twin.tolist() == [2.0, 2.0]
    memo = copy.deepcopy([x, x])
    assert memo[0] is memo[1]
    shallow = copy.copy(x)
    assert shallow is not x and shallow.data_ptr() == x.data_ptr()


def test_pickle_of_a_view_is_small():
    x = oar.zeros([1000, 1000])
    assert len(pickle.dumps(x[0, :3])) < 2000


def test_set_value_and_copy():
    x = oar.zeros([2])
    place = x.data_ptr()
    x.set_value(np.array([1.0, 2.0], np.float32))
    x.set_value(oar.to_tensor([3.0, 4.0]))
    assert x.tolist() == [3, 4] and x.data_ptr() == place
    x.copy_(oar.to_tensor([5.0, 6.0]))
    x.fill_(7.0)
    assert x.tolist() == [7, 7] and x.zero_().tolist() == [0, 0]


def test_copy_is_outside_of_gradients():
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    cache = oar.zeros([2])
    assert cache.copy_(x * 2, True) is cache and cache.stop_gradient and cache.tolist() == [2, 4]
    weight = oar.nn.Linear(2, 2).weight
    weight.copy_(oar.ones([2, 2]), False)
    assert weight.is_leaf and not weight.stop_gradient and weight.tolist() == [[1, 1], [1, 1]]
    z = x * 3
    z.copy_(x * 5)
    z.sum().backward()
    assert z.tolist() == [5, 10] and x.grad.tolist() == [3, 3]


def test_to():
    x = oar.ones([2])
    assert x.to("float64").dtype == oar.float64 and x.to(oar.int32).dtype == oar.int32
    assert x.to(oar.ones([1], "float16")).dtype == oar.float16 and x.to("cpu") is x
    assert x.to("cpu", "int64").dtype == oar.int64 and x.to(dtype="bool").dtype == oar.bool
    with pytest.raises(TypeError):
        x.to(color="red")


# ---- memory ----------------------------------------------------------------------------------------


def test_views_share_memory():
    x = oar.to_tensor(np.arange(12.0).reshape(3, 4))
    for view in (x.reshape([4, 3]), x[1:], oar.transpose(x, [1, 0]), x.flatten(), x.T, x.detach(), x.unsqueeze(0)):
        before = x.numpy().copy()
        view.add_(oar.ones([], "float64"))
        np.testing.assert_allclose(x.numpy().sum(), before.sum() + view.size)
    assert x.clone().data_ptr() != x.data_ptr() and x.reshape([12]).data_ptr() == x.data_ptr()


def test_contiguous():
    x = oar.transpose(oar.to_tensor(np.arange(6.0).reshape(2, 3)), [1, 0])
    assert not x.is_contiguous() and x.strides == [1, 3]
    y = x.contiguous()
    assert y.is_contiguous() and y.tolist() == x.tolist() and y.contiguous() is y
    assert x.reshape([6]).tolist() == [0, 3, 1, 4, 2, 5]


def test_zero_d_and_zero_size():
    x = oar.to_tensor(3.0)
    assert x.shape == [] and x.ndim == 0 and x.size == 1 and (x + x).shape == [] and x.sum().item() == 3
    e = oar.zeros([0, 3])
    assert e.sum().item() == 0 and e.sum(axis=1).shape == [0] and (e + 1).shape == [0, 3]
    assert oar.concat([e, oar.ones([2, 3])]).shape == [2, 3] and oar.matmul(e, oar.ones([3, 2])).shape == [0, 2]
    assert oar.matmul(oar.ones([2, 0]), oar.ones([0, 3])).tolist() == [[0] * 3] * 2
    assert e.reshape([3, 0]).shape == [3, 0]


def test_many_ranks():
    x = oar.ones([1] * 10)
    assert x.sum().item() == 1 and (x + x).ndim == 10 and oar.transpose(x, list(range(10))[::-1]).ndim == 10


def test_threads_give_the_same():
    rng = np.random.default_rng(0)
    x = oar.to_tensor(rng.standard_normal((300, 400)).astype(np.float32))
    results = []
    for n in (1, 2):
        oar.set_num_threads(n)
        results.append([(x * 2).exp().numpy(), x.sum().numpy(), x.sum(axis=0).numpy(), oar.tanh(x).mean().numpy()])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("nested", [False, True])
def test_to_tensor_of_a_tensor_leaves_the_graph(nested):
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    given = [x[0] * 2, x[1] * 2] if nested else x * 2
    plain, leaf = oar.to_tensor(given), oar.to_tensor(given, stop_gradient=False)
    assert plain.stop_gradient and not leaf.stop_gradient and leaf.is_leaf
    (leaf * leaf).sum().backward()
    assert x.grad is None and leaf.grad.tolist() == [4.0, 8.0]
    assert not oar.to_tensor(x) is x and not x.stop_gradient
