"""Random numbers: reproducible, the same for any number of threads, and distributed as they say."""

import numpy as np
import pytest

import oar

N = 200_000

# name, how to draw, mean, standard deviation
DISTRIBUTIONS = {
    "rand": (lambda n: oar.rand([n]), 0.5, 12 ** -0.5),
    "randn": (lambda n: oar.randn([n]), 0.0, 1.0),
    "uniform": (lambda n: oar.uniform([n], min=-2.0, max=4.0), 1.0, 6 * 12 ** -0.5),
    "normal": (lambda n: oar.normal(3.0, 0.5, [n]), 3.0, 0.5),
    "standard_normal": (lambda n: oar.standard_normal([n]), 0.0, 1.0),
    "randint": (lambda n: oar.randint(0, 10, [n]).astype("float64"), 4.5, (99 / 12) ** 0.5),
    "bernoulli": (lambda n: oar.bernoulli(oar.full([n], 0.3)), 0.3, 0.21 ** 0.5),
}
NAMES = [name for name in DISTRIBUTIONS if hasattr(oar, name)]


@pytest.mark.parametrize("name", NAMES)
def test_moments(name):
    draw, mean, deviation = DISTRIBUTIONS[name]
    oar.seed(11)
    x = draw(N).numpy().astype(np.float64)
    assert abs(x.mean() - mean) < 5 * deviation / N ** 0.5
    assert abs(x.std() - deviation) < 0.01 * deviation
    # Neighbours know nothing of each other.
    centred = x - x.mean()
    assert abs((centred[1:] * centred[:-1]).mean()) < 5 * deviation ** 2 / N ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_seed_and_threads(name):
    draw = DISTRIBUTIONS[name][0]
    runs = []
    for threads in (1, 2, 1):
        oar.set_num_threads(threads)
        oar.seed(5)
        runs.append((draw(N).numpy(), draw(7).numpy()))
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0][0], other[0])
        np.testing.assert_array_equal(runs[0][1], other[1])
    assert not np.array_equal(draw(N).numpy(), draw(N).numpy())


def test_normal_tail_and_shape():
    oar.seed(3)
    x = np.sort(oar.randn([N]).numpy())
    for z, p in ((-2, 0.02275), (-1, 0.15866), (0, 0.5), (1, 0.84134), (2, 0.97725)):
        assert abs(np.searchsorted(x, z) / N - p) < 5 * (p * (1 - p) / N) ** 0.5


def test_uniform_stays_within():
    x = oar.uniform([N], min=-1.0, max=1.0).numpy()
    assert x.min() >= -1 and x.max() < 1
    i = oar.randint(3, 5, [N]).numpy()
    assert set(np.unique(i)) == {3, 4}


def test_state():
    oar.seed(9)
    oar.rand([5])
    state = oar.get_rng_state()
    a = [oar.rand([3]).numpy(), oar.randn([4]).numpy()]
    oar.set_rng_state(state)
    b = [oar.rand([3]).numpy(), oar.randn([4]).numpy()]
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="4 numbers"):
        oar.set_rng_state([oar.zeros([2], "int64")])


def test_randperm():
    p = oar.randperm(1000).numpy()
    assert sorted(p) == list(range(1000)) and not np.array_equal(p, np.arange(1000))


def test_dropout_keeps_the_mean():
    x = oar.ones([N])
    y = oar.nn.functional.dropout(x, p=0.25, training=True).numpy()
    assert abs((y == 0).mean() - 0.25) < 0.005
    assert abs(y.mean() - 1) < 0.01
    np.testing.assert_array_equal(oar.nn.functional.dropout(x, p=0.25, training=False).numpy(), x.numpy())


def test_dropout_gradient_uses_the_same_mask():
    x = oar.ones([1000])
    x.stop_gradient = False
    y = oar.nn.functional.dropout(x, p=0.5, training=True)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_dtype(dtype):
    oar.set_default_dtype(dtype)
    assert oar.rand([2]).dtype.name == dtype and oar.randn([2]).dtype.name == dtype


@pytest.mark.parametrize("call", [lambda: oar.rand([-1]), lambda: oar.randint(5, 5, [2]), lambda: oar.randperm(-1)])
def test_errors(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("dtype, part", [("complex64", "float32"), ("complex128", "float64")])
def test_complex_normal_numbers_have_unit_variance(dtype, part):
    for function in (oar.randn, oar.standard_normal):
        x = function([200, 300], dtype=dtype)
        assert x.dtype.name == dtype and oar.real(x).dtype.name == part
        values = x.numpy()
        assert abs(values.mean()) < 0.02
        np.testing.assert_allclose([values.real.var(), values.imag.var()], 0.5, rtol=0.03)
        assert abs(np.mean(values.real * values.imag)) < 0.01


def test_internal_parameters_are_not_part_of_functions():
    import inspect

    for function in (oar.uniform, oar.bernoulli, oar.poisson, oar.multinomial, oar.binomial):
        names = list(inspect.signature(function).parameters)
        assert names[-2:] == ["name", "out"] and not any(name.startswith("_") for name in names)
    assert "_part" not in oar.bernoulli.schema
    with pytest.raises(TypeError, match="_part"):
        oar.bernoulli(oar.rand([3]), _part=[0, 3])
    assert oar.bernoulli(oar.rand([3]), "a name").shape == [3]  # name comes right after what users see


def test_normal_around_complex_means():
    oar.seed(5)
    for mean, std in [(1 + 2j, 2.0), (oar.to_tensor([1 + 2j]), 2.0), (oar.to_tensor([1 + 2j]), oar.to_tensor([2.0])),
                      (1 + 2j, oar.full([4000], 2.0))]:  # fmt: skip
        shape = None if isinstance(mean, oar.Tensor) or isinstance(std, oar.Tensor) else [4000]
        mean = mean.expand([4000]) if isinstance(mean, oar.Tensor) else mean
        drawn = oar.normal(mean, std, shape)
        assert drawn.dtype == oar.complex64 and drawn.shape == [4000]
        away = drawn.numpy() - (1 + 2j)
        assert abs(away.mean()) < 0.15
        np.testing.assert_allclose([away.real.var(), away.imag.var()], 2.0, rtol=0.15)
