"""Reductions and scans of awkward lengths, axes and values; the registry's samples are small."""

import os
import subprocess
import sys

import numpy as np
import pytest

import oar

LENGTHS = [1, 3, 15, 16, 17, 63, 64, 65, 130, 1000, 1025]


def expected(name, x, axis):
    wide = x.astype("float64")
    return {
        "sum": lambda: wide.sum(axis),
        "mean": lambda: wide.mean(axis),
        "max": lambda: wide.max(axis),
        "min": lambda: wide.min(axis),
        "prod": lambda: wide.prod(axis),
        "nansum": lambda: np.nansum(wide, axis),
        "var": lambda: wide.var(axis),
        "logsumexp": lambda: np.logaddexp.reduce(wide, axis),
        "norm": lambda: np.sqrt((wide * wide).sum(axis)),
    }[name]()


def computed(name, x, axis):
    if name == "var":
        return oar.var(x, axis=axis, unbiased=False)
    return oar.linalg.norm(x, axis=axis) if name == "norm" else getattr(oar, name)(x, axis=axis)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "nansum", "var", "logsumexp", "norm"])
def test_any_length_along_any_axis(name, dtype):
    rng = np.random.default_rng(1)
    tolerance = {"float32": 3e-6, "float64": 1e-12, "bfloat16": 1e-2}[dtype]
    for n in LENGTHS:
        for shape, axis in [((3, n), 1), ((n, 3), 0), ((n, 70), 0), ((2, n, 5), 1), ((2, 3, n), (0, 2))]:
            x = oar.to_tensor(rng.uniform(0.97, 1.03, shape)).astype(dtype)
            made = computed(name, x, list(axis) if isinstance(axis, tuple) else axis)
            assert made.shape == list(np.zeros(shape).sum(axis).shape)
            want = expected(name, x.astype("float64").numpy(), axis)
            if name == "var":  # tiny relative to the numbers themselves
                np.testing.assert_allclose(made.astype("float64").numpy(), want, rtol=max(tolerance, 1e-4), atol=1e-9)
            else:
                np.testing.assert_allclose(made.astype("float64").numpy(), want, rtol=tolerance)


@pytest.mark.parametrize("axis", [0, 1])
def test_nan_and_infinity(axis):
    x = np.random.default_rng(2).standard_normal((70, 70)).astype("float32")
    x[5, 7], x[69, 69], x[33, 3] = np.nan, np.nan, np.inf
    x[:, 9] = x[9, :] = -np.inf
    t = oar.to_tensor(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(oar.max(t, axis=axis).numpy(), x.max(axis))
        np.testing.assert_array_equal(oar.min(t, axis=axis).numpy(), x.min(axis))
        np.testing.assert_array_equal(oar.argmax(t, axis=axis).numpy(), x.argmax(axis))
        np.testing.assert_array_equal(oar.argmin(t, axis=axis).numpy(), x.argmin(axis))
        np.testing.assert_allclose(oar.nansum(t, axis=axis).numpy(), np.nansum(x, axis), rtol=1e-5)
        want = np.logaddexp.reduce(x.astype("float64"), axis)
    np.testing.assert_allclose(oar.logsumexp(t, axis=axis).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_sums(dtype):
    rng = np.random.default_rng(3)
    for n in LENGTHS:
        for shape, axis in [((2, n), 1), ((11, n), 1), ((n, 3), 0), ((n, 80), 0)]:
            x = rng.standard_normal(shape).astype(dtype)
            t = oar.to_tensor(x, stop_gradient=False)
            made = oar.cumsum(t, axis=axis)
            np.testing.assert_allclose(made.numpy(), np.cumsum(x.astype("float64"), axis), rtol=1e-5, atol=1e-5)
            made.backward(oar.to_tensor(x))
            want = np.flip(np.cumsum(np.flip(x.astype("float64"), axis), axis), axis)
            np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-5, atol=1e-5)


def test_a_long_sum_of_float32_is_accurate():
    x = np.random.default_rng(4).random(3_000_001, dtype=np.float32)
    exact = x.astype("float64").sum()
    assert abs(float(oar.sum(oar.to_tensor(x))) - exact) <= exact * 2.0**-23
    columns = x[:3_000_000].reshape(-1, 3)
    np.testing.assert_allclose(oar.sum(oar.to_tensor(columns), axis=0).numpy(), columns.astype("float64").sum(0), rtol=2.0**-22)


def test_integers():
    x = np.random.default_rng(5).integers(-3, 3, (37, 133))
    t = oar.to_tensor(x)
    for axis in (0, 1, None):
        np.testing.assert_array_equal(oar.sum(t, axis=axis).numpy(), x.sum(axis))
        np.testing.assert_array_equal(oar.count_nonzero(t, axis=axis).numpy(), np.count_nonzero(x, axis))
    top = oar.to_tensor(np.array([2**63 - 1, 1]))
    assert int(oar.sum(top)) == -(2**63)  # wraps, as in NumPy


PROGRAM = """
import numpy as np, oar
x = oar.to_tensor(np.random.default_rng(6).standard_normal((67, 333)).astype('float32'))
made = [f(x, axis=a) for a in (0, 1) for f in (oar.sum, oar.max, oar.prod, oar.cumsum, oar.logsumexp)]
made += [oar.nn.functional.softmax(x, axis=a) for a in (0, 1)] + [oar.sum(x), oar.linalg.norm(x)]
print(b''.join(m.numpy().tobytes() for m in made).hex())
"""


def test_instruction_sets_and_threads_agree():
    def run(**settings):
        out = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, **settings}, capture_output=True, check=True)
        return np.frombuffer(bytes.fromhex(out.stdout.decode()), "float32")

    plain = run()
    np.testing.assert_array_equal(run(OAR_NUM_THREADS="1"), plain)
    np.testing.assert_allclose(run(OAR_CPU_ISA="avx2"), plain, rtol=1e-6)


def test_long_products_keep_their_digits():
    """Sums of products in pieces that are added pairwise, on any number of threads."""
    x = np.random.default_rng(0).random((2, 1 << 22)).astype("float32")
    exact = x.astype("float64") @ x[0].astype("float64")
    before, seen = oar.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            oar.set_num_threads(threads)
            seen.append([oar.dot(oar.to_tensor(x[1]), oar.to_tensor(x[0])).item(), *oar.mv(oar.to_tensor(x), oar.to_tensor(x[0])).tolist()])
    finally:
        oar.set_num_threads(before)
    assert seen[0] == seen[1] == seen[2]
    np.testing.assert_allclose(seen[0], [exact[1], *exact], rtol=2e-7)
