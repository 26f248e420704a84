"""Functions of one number over the whole range of their arguments: at most 2 units in the last place in
float32 and 2.5 in float64, infinities, NaN and zeros as C has them, 16-bit floats rounded once. Every
instruction set is tried, each in a process of its own, since the choice is made once.

`python test_numerics.py FILE` computes; the tests read the file.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

PI = np.longdouble("3.14159265358979323846264")


def logistic(x):
    return np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x):
    return np.where(x < 0, np.expm1(x), x)


def selu(x):
    return 1.0507009873554804934193349852946 * np.where(x < 0, 1.6732632423543772848170429916717 * np.expm1(x), x)


def tanhshrink(x):
    z = x * x
    series = x * z * (1 / 3 - z * (2 / 15 - z * (17 / 315 - z * (62 / 2835 - z * 1382 / 155925))))
    return np.where(np.abs(x) < 0.05, series, x - np.tanh(x))


def mish(x):
    n = np.exp(np.minimum(x, 50))
    return x * (n * (n + 2) / (n * (n + 2) + 2))


def sinc(x):
    rest = x - np.rint(x)  # exact; the sine of pi times an odd number is 0, and changes its sign there
    sign = np.where(np.rint(x) % 2 == 0, 1, -1)
    return np.where(x == 0, 1, sign * np.sin(PI * rest) / (PI * x)) + 0.0  # no negative 0


class SciPy:
    """A function of scipy.special, which has doubles."""

    def __init__(self, of):
        self.of = of

    def __call__(self, *arguments):
        from scipy import special

        return self.of(special, *arguments)


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
    "asinh": (np.arcsinh, 2),
    "acosh": (np.arccosh, 2),
    "atanh": (np.arctanh, 2),
    "sqrt": (np.sqrt, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "sigmoid": (logistic, 2),
    "silu": (lambda x: x * logistic(x), 2),
    "swish": (lambda x: x * logistic(x), 2),
    "log_sigmoid": (lambda x: -softplus(-x), 2),
    "softplus": (lambda x: np.where(x > 20, x, softplus(x)), 2),
    "elu": (elu, 2),
    "celu": (elu, 2),
    "selu": (selu, 2),
    "tanhshrink": (tanhshrink, 2),
    "stanh": (lambda x: 1.7159 * np.tanh(0.67 * x), 3),  # the error of tanh, then of a product with what it lost
    "softsign": (lambda x: x / (1 + np.abs(x)), 2),
    "mish": (mish, 2),
    "sinc": (sinc, 2),
    "logit": (SciPy(lambda s, x: s.logit(x)), 2),
    "erf": (SciPy(lambda s, x: s.erf(x)), 2),
    # A polynomial in a logarithm of which only a float is kept; beyond 0.99 its error counts most.
    "erfinv": (SciPy(lambda s, x: np.copysign(s.erfinv(np.abs(x)), x)), 2.5),
    "gelu": (SciPy(lambda s, x: x * s.ndtr(x)), 2),
    "gelu_tanh": (lambda x: x * logistic(2 * np.sqrt(2 / PI) * (x + np.longdouble("0.044715") * x**3)), 2),
    "lgamma": (SciPy(lambda s, x: np.where(np.isinf(x), np.inf, s.gammaln(x))), 2),
    "digamma": (SciPy(lambda s, x: s.psi(x)), 2),
    "i0": (SciPy(lambda s, x: s.i0(x)), 2),
    "i0e": (SciPy(lambda s, x: s.i0e(x)), 2),
    "i1": (SciPy(lambda s, x: np.copysign(s.i1(np.abs(x)), x)), 2),
    "i1e": (SciPy(lambda s, x: np.copysign(s.i1e(np.abs(x)), x)), 2),
}
CALLS = {"gelu_tanh": lambda x: function_of("gelu")(x, approximate=True)}
# References that have no more digits than a double, or doubles that have fewer.
WITHOUT_FLOAT64 = {name for name, (reference, _) in UNARY.items() if isinstance(reference, SciPy)}
WITHOUT_FLOAT64 |= {"tanhshrink", "stanh", "mish", "sinc"}
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


def function_of(name):
    import oar

    return CALLS.get(name) or getattr(oar, name, None) or getattr(oar.nn.functional, name)


def compute(path):
    import oar

    results = {}
    for name in UNARY:
        f = function_of(name)
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
        # One unit beyond the end of the range is allowed, as anywhere else.
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


@pytest.mark.parametrize("name", [n for n in UNARY if n not in WITHOUT_FLOAT64])
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
    """The references, which the other tests trust, against many digits: a few points of each function."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(2)
    logistic_of = lambda x: 1 / (1 + mp.exp(-x))
    softplus_of = lambda x: mp.log(1 + mp.exp(x))
    elu_of = lambda x: x if x > 0 else mp.expm1(x)
    root = mp.sqrt(2 / mp.mpf(mp.pi))
    functions = dict(
        exp=mp.exp, expm1=mp.expm1, sin=mp.sin, cos=mp.cos, tan=mp.tan, atan=mp.atan, sinh=mp.sinh, cosh=mp.cosh,
        tanh=mp.tanh, asinh=mp.asinh, sigmoid=logistic_of, silu=lambda x: x * logistic_of(x),
        log_sigmoid=lambda x: -softplus_of(-x), softplus=lambda x: x if x > 20 else softplus_of(x), elu=elu_of,
        selu=lambda x: mp.mpf("1.0507009873554804934193349852946") * (
            x if x > 0 else mp.mpf("1.6732632423543772848170429916717") * mp.expm1(x)),
        tanhshrink=lambda x: x - mp.tanh(x), stanh=lambda x: mp.mpf("1.7159") * mp.tanh(mp.mpf("0.67") * x),
        mish=lambda x: x * mp.tanh(softplus_of(x)), sinc=mp.sincpi, erf=mp.erf, gelu=lambda x: x * mp.ncdf(x),
        gelu_tanh=lambda x: x * logistic_of(2 * root * (x + mp.mpf("0.044715") * x**3)),
        lgamma=lambda x: mp.log(abs(mp.gamma(x))), digamma=mp.digamma, i0=lambda x: mp.besseli(0, x),
        i0e=lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), i1=lambda x: mp.besseli(1, x),
        i1e=lambda x: mp.besseli(1, x) * mp.exp(-abs(x)))
    of_positive = dict(log=mp.log, log1p=mp.log1p, acosh=mp.acosh)
    inside_1 = dict(asin=mp.asin, acos=mp.acos, atanh=mp.atanh, erfinv=mp.erfinv, logit=lambda x: mp.log(x / (1 - x)))
    with mp.workdps(60):
        for name, precise in {**functions, **of_positive, **inside_1}.items():
            x = np.exp(rng.uniform(-20, 4, 40))
            if name in inside_1:
                x = rng.uniform(0.001, 0.999, 40)
            elif name in ("sin", "cos", "tan"):
                x = np.concatenate([x, np.exp(rng.uniform(5, 80, 40))])
            elif name in functions:
                x = np.concatenate([x, -x])
            elif name == "acosh":
                x = 1 + x
            want = np.array([float(precise(mp.mpf(float(v)))) for v in x])
            np.testing.assert_allclose(expected(UNARY[name][0], x), want, rtol=1e-12, err_msg=name)


if __name__ == "__main__":
    compute(sys.argv[1])
