"""Selecting, moving and padding at the sizes where a kernel changes its way: short and long lines, few and many."""

import numpy as np
import pytest

import oar
import oar.nn.functional as F

RNG = np.random.default_rng(5)


def lines(kind, n):
    if kind == "ties":
        return RNG.integers(0, 4, (3, n)).astype("float32")
    if kind == "special":
        x = RNG.standard_normal((3, n)).astype("float32")
        x[:, ::7], x[:, 1::7], x[:, 2::7], x[:, 3::7] = np.nan, np.inf, -np.inf, -0.0
        return x
    if kind == "int64":
        return RNG.integers(-2**62, 2**62, (3, n))
    return RNG.standard_normal((3, n)).astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "ties", "special"])
@pytest.mark.parametrize("n, k", [(1, 1), (5, 2), (64, 3), (200, 32), (255, 100), (300, 149), (300, 151), (1500, 700),
                                  (2048, 10), (2048, 200), (2048, 2048)])
def test_topk_is_the_start_of_a_stable_sort(kind, n, k):
    x = lines(kind, n)
    for largest in (True, False):
        values, places = oar.topk(oar.to_tensor(x), k, axis=1, largest=largest)
        # NaN is the largest; of equal elements the first one comes first.
        key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
        rank = np.lexsort((np.arange(n)[None].repeat(3, 0), -key if largest else key,
                           (~np.isnan(x) if largest else np.isnan(x)) if x.dtype.kind == "f" else key * 0), axis=1)
        np.testing.assert_array_equal(places.numpy(), rank[:, :k])
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, rank[:, :k], 1))


@pytest.mark.parametrize("shape", [(5,), (3, 40), (2, 3, 19), ()])
def test_masks_of_any_layout(shape):
    x = RNG.standard_normal(shape).astype("float32")
    mask = RNG.random(shape) < 0.4
    for flip in (False, True):
        view = (lambda a: a[..., ::-1]) if flip and shape else (lambda a: a)
        tx, tm = view(oar.to_tensor(x)), view(oar.to_tensor(mask))
        nx, nm = view(x), view(mask)
        np.testing.assert_array_equal(oar.masked_select(tx, tm).numpy(), nx[nm].reshape(-1))
        np.testing.assert_array_equal(oar.nonzero(tm).numpy().reshape(-1), np.argwhere(nm).reshape(-1))
        written, given = nx.copy(), np.arange(nm.sum(), dtype="float32")
        written[nm] = given
        np.testing.assert_array_equal(oar.masked_scatter(tx, tm, oar.to_tensor(given)).numpy(), written)


def test_a_mask_needs_as_many_values():
    x, mask = oar.zeros([4]), oar.to_tensor([True, False, True, False])
    with pytest.raises(ValueError, match=r"value has shape \[3\] .* indexed shape \[2\]"):
        x[mask] = oar.ones([3])
    x[mask] = oar.to_tensor([5.0])
    assert x.tolist() == [5, 0, 5, 0]


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "constant"])
@pytest.mark.parametrize("pads", [(1, 2, 2, 1), (0, 3, 3, 0), (-1, 2, 1, -2), (-1, -1, 0, 0)])
def test_padding(mode, pads):
    x = RNG.standard_normal((2, 3, 5, 6)).astype("float32")
    left, right, top, bottom = pads
    cut = x[:, :, max(-top, 0):5 - max(-bottom, 0), max(-left, 0):6 - max(-right, 0)]
    around = [(0, 0), (0, 0)] + [(max(a, 0), max(b, 0)) for a, b in ((top, bottom), (left, right))]
    names = {"edge": "replicate", "wrap": "circular"}
    for tensor, wanted in ((oar.to_tensor(x), cut), (oar.to_tensor(x).transpose([0, 1, 3, 2]), None)):
        if wanted is None:
            tensor = oar.to_tensor(np.ascontiguousarray(x.swapaxes(2, 3))).transpose([0, 1, 3, 2])
        np.testing.assert_array_equal(F.pad(tensor, list(pads), mode=names.get(mode, mode)).numpy(),
                                      np.pad(cut, around, mode=mode))


def test_padding_that_cuts_off_too_much():
    with pytest.raises(ValueError, match="cut off more of axis 3"):
        F.pad(oar.zeros([1, 1, 2, 2]), [2, -3, 0, 0])


@pytest.mark.parametrize("shape, order", [((70, 33), (1, 0)), ((3, 65, 40), (2, 1, 0)), ((2, 17, 3, 16), (0, 2, 1, 3)),
                                          ((5, 1, 129), (2, 0, 1))])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_copies_of_turned_tensors(shape, order, dtype):
    x = (RNG.standard_normal(shape) * 50).astype(dtype)
    turned = oar.to_tensor(x).transpose(list(order))
    np.testing.assert_array_equal(turned.contiguous().numpy(), x.transpose(order))
    np.testing.assert_array_equal(turned[::-1].contiguous().numpy(), x.transpose(order)[::-1])
    np.testing.assert_array_equal(oar.concat([turned, turned], -1).numpy(), np.concatenate([x.transpose(order)] * 2, -1))


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 1000, 4097])
def test_randperm_is_a_permutation(n):
    oar.seed(n)
    p = oar.randperm(n)
    assert sorted(p.tolist()) == list(range(n))
    oar.seed(n)
    np.testing.assert_array_equal(oar.randperm(n, dtype="int32").numpy(), p.numpy())


def test_masked_scatter_in_place_takes_as_many_values_as_places():
    """The number of places is not known while sizes are inferred; that must not count as too many."""
    x, mask = oar.to_tensor([1.0, 2.0, 3.0]), oar.to_tensor([True, False, True])
    oar.masked_scatter_(x, mask, oar.to_tensor([8.0, 9.0]))
    assert x.tolist() == [8.0, 2.0, 9.0]
    for scatter in (oar.masked_scatter, oar.masked_scatter_):
        with pytest.raises(ValueError, match="value has 1 elements for the 2 places"):
            scatter(x, mask, oar.to_tensor([8.0]))
    assert x.tolist() == [8.0, 2.0, 9.0]
    program = oar.jit.to_static(lambda x, mask, value: oar.masked_scatter(x, mask, value) * 2)
    assert program(x, mask, oar.to_tensor([1.0, 5.0])).tolist() == [2.0, 4.0, 10.0]
