"""Elementary functions over the whole range of their arguments: at most 2 units in the last place in
float32 and 2.5 in float64, infinities, NaN and zeros as C has them, 16-bit floats rounded once. Every
instruction set is tried, each in a process of its own, since the choice is made once.

`python test_numerics.py FILE` computes; the tests look at the file.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

def logistic(x):
    return np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x)))


# name: (reference, the most units in the last place that a float32 may be off)
UNARY = {
    "exp": (np.exp, 2),
    "expm1": (np.expm1, 2),
    "log": (np.log, 2),
    "log2": (np.log2, 2),
    "log10": (np.log10, 2),
    "log1p": (np.log1p, 2),
    "sin": (np.sin, 2),
    "cos": (np.cos, 2),
    "tan": (np.tan, 2),
    "asin": (np.arcsin, 2),
    "acos": (np.arccos, 2),
    "atan": (np.arctan, 2),
    "sinh": (np.sinh, 2),
    "cosh": (np.cosh, 2),
    "tanh": (np.tanh, 2),
    "sqrt": (np.sqrt, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "sigmoid": (logistic, 2),
    "silu": (lambda x: x * logistic(x), 2),
    "log_sigmoid": (lambda x: -(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))), 2),
    "erf": ("erf", 2),
    "gelu": ("gelu", 9),  # 6 where the result is a normal number
}
BINARY = {"pow": (np.power, 1), "atan2": (np.arctan2, 2)}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, -0.5, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38,
           -3.4028235e38, 1e5, 4e5, 1e6, 1e10, 1e22, -1e30]


def floats_everywhere():
    """Some 170,000 float32 numbers: every 25,000th there is, and the neighbours of points of interest."""
    bits = np.arange(0, 2**32, 25_013, dtype=np.uint64).astype(np.uint32)
    points = np.array([0.5, 0.55, 1, 2**0.5, 2**-0.5, 4, 10.5, 88, 89, 103] + [k * np.pi / 4 for k in range(1, 200)])
    near = points.astype(np.float32).view(np.uint32)[:, None] + np.arange(-8, 9)
    near = near.astype(np.uint32).view(np.float32).ravel()
    small = np.random.default_rng(5).normal(size=20_000).astype(np.float32)
    return np.concatenate([np.array(SPECIAL, np.float32), bits.view(np.float32), near, -near, small])


def doubles_everywhere():
    with np.errstate(all="ignore"):
        x = floats_everywhere().astype(np.float64)
    far = np.random.default_rng(7).uniform(-300, 300, 20_000)
    return np.concatenate([x, x * (1 + 1e-9), 10.0**far, -(10.0**far)])


def pairs():
    rng = np.random.default_rng(3)
    grid = np.array(SPECIAL + [3.0, -3.0, 7.0, 2**24, 2**25, 1e-3, -2.5], np.float32)
    x, y = np.meshgrid(grid, grid)
    some = np.exp(rng.uniform(-60, 60, 30_000)).astype(np.float32)
    steep = (rng.uniform(-1, 1, 30_000) * 130 / np.abs(np.log2(some.astype(np.float64)))).astype(np.float32)
    plain = rng.normal(size=(2, 30_000)).astype(np.float32)
    return np.concatenate([x.ravel(), some, plain[0]]), np.concatenate([y.ravel(), steep, plain[1]])


def compute(path):
    import oar

    results = {}
    for name in UNARY:
        f = getattr(oar, name, None) or getattr(oar.nn.functional, name)
        results[name] = f(oar.to_tensor(floats_everywhere())).numpy()
        results[name + "64"] = f(oar.to_tensor(doubles_everywhere())).numpy()
        every = oar.to_tensor(np.arange(65536).astype(np.uint16).view(np.float16))
        results[name + "_half"] = f(every).numpy()
        results[name + "_half_from_float"] = f(every.astype("float32")).astype("float16").numpy()
        brain = oar.to_tensor((np.arange(65536).astype(np.uint32) << 16).view(np.float32))
        results[name + "_brain"] = f(brain.astype("bfloat16")).astype("float32").numpy()
        results[name + "_brain_from_float"] = f(brain).astype("bfloat16").astype("float32").numpy()
    for name in BINARY:
        x, y = pairs()
        results[name] = getattr(oar, name)(oar.to_tensor(x), oar.to_tensor(y)).numpy()
    np.savez(path, **results)


@pytest.fixture(scope="module", params=["avx2", "auto"])
def results(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("numerics") / "results.npz"
    environment = dict(os.environ, OAR_CPU_ISA=request.param)
    subprocess.run([sys.executable, __file__, str(path)], check=True, env=environment)
    with np.load(path) as file:
        return dict(file)


def expected(reference, *arguments):
    with np.errstate(all="ignore"):
        if reference in ("erf", "gelu"):
            from scipy import special

            reference = special.erf if reference == "erf" else lambda x: x * special.ndtr(x)
        return reference(*arguments)


def check(name, got, want, arguments, most):
    """`want` has more digits than `got`."""
    kind = got.dtype
    with np.errstate(all="ignore"):
        rounded = want.astype(kind)
        ordinary = np.isfinite(rounded) & np.isfinite(got) & (rounded != 0)
        unit = np.spacing(np.abs(np.where(ordinary, rounded, 1)))
        units = np.where(ordinary, np.abs(got.astype(want.dtype) - want) / unit, 0)
        same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
        # One unit beside the end of the range is allowed, as anywhere else.
        largest, smallest = np.finfo(kind).max, np.finfo(kind).smallest_subnormal
        edge = np.isinf(rounded) & (np.abs(got) == largest) | np.isinf(got) & (np.abs(rounded) == largest)
        edge |= (rounded == 0) & (np.abs(got) == smallest) | (got == 0) & (np.abs(rounded) == smallest)
    wrong = ~(ordinary | same | edge)
    assert not wrong.any(), f"{name}{tuple(a[wrong][0] for a in arguments)} is {got[wrong][0]}, not {rounded[wrong][0]}"
    worst = int(units.argmax())
    assert units[worst] <= most, f"{name}{tuple(a[worst] for a in arguments)} is {units[worst]:.2f} units off"
    return units[worst]


@pytest.mark.parametrize("name", UNARY)
def test_float32(results, name):
    reference, most = UNARY[name]
    x = floats_everywhere()
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
    check(name, results[name], expected(reference, wide), (x,), most)


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("erf", "gelu")])
def test_float64(results, name):
    reference, most = UNARY[name]
    x = doubles_everywhere()
    want = expected(reference, x.astype(np.longdouble))
    if np.finfo(want.dtype).nmant < 60:
        pytest.skip("long double has no more digits than double here")
    check(name, results[name + "64"], want, (x,), max(most, 2.5))


@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(results, name):
    reference, most = BINARY[name]
    x, y = pairs()
    check(name, results[name], expected(reference, x.astype(np.float64), y.astype(np.float64)), (x, y), most)


@pytest.mark.parametrize("kind", ["half", "brain"])
@pytest.mark.parametrize("name", UNARY)
def test_16_bits_are_rounded_once(results, name, kind):
    np.testing.assert_array_equal(results[f"{name}_{kind}"], results[f"{name}_{kind}_from_float"])


def test_reference_against_mpmath():
    """NumPy's doubles, which the other tests trust, against many digits: a few points of each function."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(2)
    functions = dict(exp=mp.exp, expm1=mp.expm1, log=mp.log, log1p=mp.log1p, sin=mp.sin, cos=mp.cos, tan=mp.tan,
                     asin=mp.asin, acos=mp.acos, atan=mp.atan, sinh=mp.sinh, cosh=mp.cosh, tanh=mp.tanh, erf=mp.erf)
    with mp.workdps(60):
        for name, precise in functions.items():
            x = rng.uniform(-0.999, 0.999, 40) if name in ("asin", "acos") else np.exp(rng.uniform(-20, 4, 40))
            if name in ("sin", "cos", "tan"):
                x = np.concatenate([x, np.exp(rng.uniform(5, 80, 40))])
            want = np.array([float(precise(mp.mpf(float(v)))) for v in x])
            np.testing.assert_allclose(expected(UNARY[name][0], x), want, rtol=1e-14)


if __name__ == "__main__":
    compute(sys.argv[1])
