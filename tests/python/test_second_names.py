"""Names that PyTorch's users know: second names, tensors like others, sums at places, other forms of tensors."""

import numpy as np
import pytest

import oar

X = np.arange(6, dtype="float32").reshape(2, 3)
NAMES = {**oar._aliases.FUNCTIONS}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_second_name_is_the_same_function(name):
    assert getattr(oar, name) is getattr(oar, NAMES[name])
    if name not in oar._aliases.NO_METHODS:
        assert vars(oar.Tensor)[name] is vars(oar.Tensor)[NAMES[name]]


def test_constants_and_dtypes():
    assert (oar.pi, oar.e, oar.inf, oar.newaxis) == (np.pi, np.e, np.inf, None) and oar.nan != oar.nan
    assert (oar.half, oar.float, oar.double) == (oar.float16, oar.float32, oar.float64)
    assert (oar.cfloat, oar.cdouble) == (oar.complex64, oar.complex128)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_rounded_quotients(mode, dtype):
    x, y = np.array([7, -7, 7, -7, 6, 0], dtype), np.array([2, 2, -2, -2, -3, 5], dtype)
    exact = x.astype("float64") / y
    made = oar.div(oar.to_tensor(x), oar.to_tensor(y), rounding_mode=mode)
    assert made.dtype.name == dtype
    np.testing.assert_array_equal(made.numpy(), np.floor(exact) if mode == "floor" else np.trunc(exact))
    target = oar.to_tensor(x)
    assert target.div_(oar.to_tensor(y), rounding_mode=mode) is target
    np.testing.assert_array_equal(target.numpy(), made.numpy())


def test_quotients_and_differences():
    x, y = oar.to_tensor([7, 3]), oar.to_tensor([2, 2])
    assert oar.div(x, y).tolist() == oar.true_divide(x, y).tolist() == [3.5, 1.5]
    with pytest.raises(ValueError, match="must be 'floor', 'trunc' or None"):
        oar.div(x, y, rounding_mode="up")
    assert oar.sub(x, y, alpha=3).tolist() == [1, -3] and x.sub_(y).tolist() == [5, 1]
    out = oar.zeros([2])
    assert oar.div(oar.to_tensor([7.0, 3.0]), 2.0, out=out) is out and out.tolist() == [3.5, 1.5]


def test_products_and_softmax():
    rng = np.random.default_rng(0)
    c, a, b = (rng.normal(size=s).astype("float32") for s in [(2, 3, 5), (2, 3, 4), (2, 4, 5)])
    tensors = [oar.to_tensor(v) for v in (c, a, b)]
    np.testing.assert_allclose(oar.baddbmm(*tensors, beta=0.5, alpha=2.0).numpy(), 0.5 * c + 2 * a @ b, rtol=1e-5)
    assert tensors[0].baddbmm_(*tensors[1:]) is tensors[0]
    np.testing.assert_allclose(tensors[0].numpy(), c + a @ b, rtol=1e-5)
    for shape, axis in [((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)]:
        x = rng.normal(size=shape)
        wanted = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
        np.testing.assert_allclose(oar.softmax(oar.to_tensor(x)).numpy(), wanted, rtol=1e-6)
    assert oar.special.softmax is oar.softmax and oar.softmax(oar.to_tensor([1, 2]), 0, "float64").dtype == oar.float64


def test_parts_and_orders():
    x = oar.to_tensor(X)
    np.testing.assert_array_equal(oar.narrow(x, 1, -2, 2).numpy(), X[:, 1:])
    np.testing.assert_array_equal(x.narrow(0, oar.to_tensor(1), 1).numpy(), X[1:])
    with pytest.raises(ValueError, match="2 places from 2 on are not within axis 1"):
        oar.narrow(x, 1, 2, 2)
    x.narrow(1, 0, 1).fill_(7)  # a view
    assert x[:, 0].tolist() == [7, 7]
    assert oar.permute(oar.zeros([2, 3, 4]), (2, 0, 1)).shape == oar.zeros([2, 3, 4]).permute(2, 0, 1).shape == [4, 2, 3]
    np.testing.assert_array_equal(oar.msort(oar.to_tensor(X[::-1].copy())).numpy(), X)
    assert oar.ravel(oar.to_tensor(X)).tolist() == X.ravel().tolist()
    np.testing.assert_array_equal(oar.argwhere(oar.to_tensor(X)).numpy(), np.argwhere(X))
    assert oar.broadcast_shapes([2, 1], [3], (1, 1, 3)) == [1, 2, 3] and oar.broadcast_shapes() == []
    assert oar.matrix_transpose(oar.zeros([5, 2, 3])).shape == [5, 3, 2]
    with pytest.raises(ValueError, match="no matrix axes"):
        oar.matrix_transpose(oar.zeros([3]))


def _reduced(x, index, src, reduce, include_self):
    """Along the last axis, element by element."""
    out = x.copy()
    for row in range(x.shape[0]):
        for place in range(x.shape[1]):
            taken = [src[row, i] for i in range(index.shape[1]) if index[row, i] == place]
            if taken:
                values = ([x[row, place]] if include_self else []) + taken
                out[row, place] = {"sum": sum, "prod": np.prod, "mean": np.mean, "amin": min, "amax": max}[reduce](values)
    return out


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amin", "amax"])
def test_reductions_at_places(reduce, include_self):
    rng = np.random.default_rng(1)
    x, src, index = rng.normal(size=(3, 4)), rng.normal(size=(3, 6)), rng.integers(0, 4, (3, 5))
    made = oar.scatter_reduce(*map(oar.to_tensor, (x,)), 1, oar.to_tensor(index), oar.to_tensor(src), reduce,
                              include_self=include_self)  # fmt: skip
    np.testing.assert_allclose(made.numpy(), _reduced(x, index, src, reduce, include_self), rtol=1e-6)


def test_sums_at_places():
    x, src = oar.zeros([2, 3], "float64"), oar.ones([2, 3], "float64")
    src.stop_gradient = False
    index = oar.to_tensor([[0, 0, 2]])
    made = oar.scatter_add(x, 1, index, src)
    assert made.tolist() == [[2, 0, 1], [0, 0, 0]]
    (made * oar.to_tensor([1.0, 2.0, 3.0], dtype="float64")).sum().backward()
    assert src.grad.tolist() == [[1, 1, 3], [0, 0, 0]]
    assert x.scatter_add_(1, index, oar.ones([1, 3], "float64")) is x and x[0].tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="reduce must be one of sum, prod"):
        oar.scatter_reduce(x, 1, index, src, "add")


def test_making_tensors():
    assert oar.as_tensor([1, 2], dtype="float32", requires_grad=True).requires_grad
    array = np.zeros(2, "float32")
    shared, copied = oar.asarray(array, copy=False), oar.asarray(array)
    array[0] = 5
    assert shared.tolist() == [5, 0] and copied.tolist() == oar.from_numpy(np.zeros(2)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="no memory to share"):
        oar.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="the data is float32, not float64"):
        oar.asarray(array, copy=False, dtype="float64")
    assert oar.range(5).tolist() == [0, 1, 2, 3, 4, 5] and oar.range(3, 1, -1, dtype="int64").tolist() == [3, 2, 1]
    with pytest.raises(ValueError, match="does not lead from 0 to 3"):
        oar.range(0, 3, -1)
    like = oar.zeros([1000, 2], "float64")
    uniform, normal = oar.rand_like(like), oar.randn_like(like, dtype="float32")
    assert uniform.dtype == oar.float64 and 0.45 < float(uniform.mean()) < 0.55 and float(uniform.max()) < 1
    assert normal.dtype == oar.float32 and abs(float(normal.std()) - 1) < 0.1


def test_tensors_like_a_tensor():
    x = oar.to_tensor([1, 2])
    assert x.new_zeros(2, 3).shape == x.new_empty([2, 3]).shape == [2, 3] and x.new_ones([2]).dtype == oar.int64
    assert x.new_full([2], 7, dtype="float32", requires_grad=True).requires_grad
    assert x.new_full([], 3).tolist() == 3
    with pytest.raises(RuntimeError, match="pin memory"):
        x.new_zeros(2, pin_memory=True)
    drawn = oar.zeros([2000], "int32").random_(-3, 3)
    assert sorted(set(drawn.tolist())) == [-3, -2, -1, 0, 1, 2]
    assert float(oar.zeros([100]).random_(5).max()) <= 4 and float(oar.zeros([100]).random_().max()) > 1000
    with pytest.raises(ValueError, match="no integer from 3 up to but without 3"):
        x.random_(3, 3)


@pytest.mark.parametrize("name", sorted(oar._tensor_forms._DTYPES))
def test_conversions(name):
    made = getattr(oar.to_tensor([2.0, 0.0]), name)()
    assert made.dtype.name == oar._tensor_forms._DTYPES[name]
    assert made.astype("float64").tolist() == ([1.0, 0.0] if name == "bool" else [2.0, 0.0])


def test_other_forms():
    x = oar.to_tensor(X)
    assert x.stride() == x.get_strides() == [3, 1] and x.stride(0) == 3 and x.T.stride() == [1, 3]
    assert x.is_same_shape(x + 1) and not x.is_same_shape(x.T)
    np.testing.assert_array_equal(x.repeat(2, 1, 2).numpy(), np.tile(X, (2, 1, 2)))
    assert x.clone().resize_([2, 2]).tolist() == [[0, 1], [2, 3]]
    assert x.clone().resize_([8]).tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    y = oar.zeros([1]).set_(x, [3], [2], 4)  # every second element from the second on
    assert y.tolist() == [1, 3, 5]
    x[0, 1] = 9.0
    assert y.tolist() == [9, 3, 5]  # the same memory
    assert [part.shape for part in x.split_with_sizes([1, 2], dim=1)] == [[2, 1], [2, 2]]
    assert oar.to_tensor([1, 2]).type_as(x).dtype == oar.float32


def test_applied_functions_and_gradients():
    x = oar.to_tensor([1.0, 2.0])
    assert x.apply(lambda v: 3 * v).tolist() == [3, 6] and x.apply_(lambda v: v + 1) is x and x.tolist() == [2, 3]
    assert x.requires_grad_() is x and x.requires_grad and not x.stop_gradient
    with pytest.raises(RuntimeError, match="requires a gradient"):
        x.apply(abs)
    y = (x * x).detach_()
    assert y.is_leaf and not y.requires_grad
    x.sum().backward()
    assert x.grad_.tolist() == [1, 1]
    x.requires_grad = False
    assert x.stop_gradient
