"""Small questions about tensors and about the build."""

import numpy as np
import pytest

import oar


def test_kinds_of_elements():
    for dtype, kinds in [("int32", (False, False, True)), ("bfloat16", (False, True, False)),
                         ("complex64", (True, False, False)), ("bool", (False, False, False))]:
        x = oar.zeros([2], dtype=dtype)
        assert (oar.is_complex(x), oar.is_floating_point(x), oar.is_integer(x)) == kinds


@pytest.mark.parametrize("question", ["is_complex", "is_floating_point", "is_integer"])
def test_kinds_are_of_tensors(question):
    with pytest.raises(TypeError, match=rf"\[{question}\] x must be a tensor, not ndarray"):
        getattr(oar, question)(np.zeros(2))


def test_rank_is_a_tensor():
    x = oar.zeros([2, 3])
    for made in (oar.rank(x), x.rank()):
        assert made.shape == [] and made.dtype == oar.int32 and made.item() == 2
    assert x.dim() == x.ndimension() == 2


def test_shapes_may_be_arrays():
    for shape in ([2, 3], (2, 3), np.array([2, 3]), oar.to_tensor([2, 3]), [np.int32(2), oar.to_tensor(3)]):
        assert oar.ones(shape).shape == oar.expand(oar.ones([3]), shape).shape == [2, 3]
    assert oar.ones(np.array(4)).shape == [4]
    assert oar.sum(oar.ones([2, 3]), axis=np.array([1])).shape == [2]


def test_empty_like_takes_arrays():
    made = oar.empty_like(np.ones([2, 3], "float64"))
    assert made.shape == [2, 3] and made.dtype == oar.float64
    assert oar.empty_like(oar.ones([2]), dtype="int32").dtype == oar.int32


def test_check_shape():
    oar.check_shape([2, 0, oar.to_tensor(3)])
    oar.check_shape(oar.to_tensor([2, 3]))
    with pytest.raises(ValueError, match="must not be negative"):
        oar.check_shape([2, -1])
    with pytest.raises(TypeError, match="must be integers, not float"):
        oar.check_shape((2, 1.5))
    with pytest.raises(TypeError, match="int32 or int64, not float32"):
        oar.check_shape([oar.to_tensor(2.0)])


@pytest.mark.parametrize("start, stop, num, base", [(0, 3, 4, 10.0), (-2.0, 2.0, 9, 2.0), (1, 1, 1, 3),
                                                    (2, -1, 5, 0.5)])
def test_logspace(start, stop, num, base):
    made = oar.logspace(start, stop, num, base, dtype="float64")
    np.testing.assert_allclose(made.numpy(), np.logspace(start, stop, num, base=base), rtol=1e-14)
    from_tensors = oar.logspace(oar.to_tensor(start), oar.to_tensor(stop), oar.to_tensor(num), oar.to_tensor(base))
    assert from_tensors.dtype == oar.float32
    np.testing.assert_allclose(from_tensors.numpy(), made.numpy(), rtol=1e-6)


def test_logspace_needs_a_number():
    with pytest.raises(ValueError, match="num must be at least 1, not 0"):
        oar.logspace(0, 1, 0)


def test_histogramdd_says_what_is_wrong():
    x = oar.rand([4, 2])
    for wrong, error, text in [({"bins": 2.0}, ValueError, "must be an integer"),
                               ({"bins": [3.4, 4.5]}, ValueError, "must be an integer"),
                               ({"density": 10}, TypeError, "density must be a bool"),
                               ({"weights": oar.ones([3])}, ValueError, "one number for each row")]:
        with pytest.raises(error, match=text):
            oar.histogramdd(x, **wrong)


def test_median_is_of_a_tensor():
    for function in (oar.median, oar.nanmedian):
        with pytest.raises(TypeError, match="x must be a tensor, not list"):
            function([1, 2, 3])


@pytest.mark.parametrize("mode", ["avg", "min"])
def test_nanmedian_of_nothing_but_nan_has_no_gradient(mode):
    nan = float("nan")
    x = oar.to_tensor([[nan, nan, nan], [3.0, nan, 1.0], [4.0, 5.0, 6.0]], stop_gradient=False)
    made = oar.nanmedian(x, axis=1, mode=mode)
    values = made[0] if isinstance(made, tuple) else made
    np.testing.assert_array_equal(values.numpy(), [nan, 2.0 if mode == "avg" else 1.0, 5.0])
    values.sum().backward()
    shares = [0.5, 0, 0.5] if mode == "avg" else [0, 0, 1]
    assert x.grad.tolist() == [[0, 0, 0], shares, [0, 1, 0]]
    alone = oar.to_tensor(nan, stop_gradient=False)
    oar.nanmedian(alone).backward()
    assert alone.grad.item() == 0
