"""oar.fft: values against NumPy's, errors, and what derivatives and other features make of transforms."""

import itertools

import numpy as np
import pytest

import oar

NORMS = ("backward", "ortho", "forward")
COMPLEX = ("fft", "ifft")
REAL = ("rfft", "ihfft")
HERMITIAN = ("irfft", "hfft")


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else made.astype(dtype)


def wide(x):
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def compare(made, expected, dtype):
    assert list(made.shape) == list(expected.shape)
    single = dtype in ("float32", "complex64", "float16")
    assert made.dtype.name.endswith(("64", "32") if single else ("128", "64"))
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(made.numpy(), expected, rtol=0, atol=(2e-6 if single else 4e-15) * scale)


LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 30, 31, 32, 36, 48, 49, 61, 64, 67, 77, 96, 97, 100, 121, 127, 128, 143, 210,
           256, 257, 360, 461, 512, 625, 1000, 1024]  # fmt: skip


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length_along_lines_and_columns(n):
    for dtype, (before, after) in itertools.product(("complex64", "complex128"), [(1, 1), (3, 1), (9, 1), (2, 3), (1, 9), (2, 16)]):
        x = numbers((before, n, after), dtype, n)
        for name in COMPLEX:
            compare(getattr(oar.fft, name)(oar.to_tensor(x), axis=1), getattr(np.fft, name)(wide(x), axis=1), dtype)
        real = np.ascontiguousarray(x.real)
        for name in REAL:
            compare(getattr(oar.fft, name)(oar.to_tensor(real), axis=1), getattr(np.fft, name)(wide(real), axis=1), dtype)
        compare(oar.fft.fft(oar.to_tensor(real), axis=1), np.fft.fft(wide(real), axis=1), dtype)
        half = x[:, : n // 2 + 1]
        for name in HERMITIAN:
            compare(getattr(oar.fft, name)(oar.to_tensor(half), n=n, axis=1), getattr(np.fft, name)(wide(half), n=n, axis=1), dtype)


@pytest.mark.parametrize("n", [2048, 3125, 4099, 16384, 16386, 20011, 19683, 65536, 3 << 17])
def test_long_lines(n):
    for dtype in ("complex64", "complex128"):
        x = numbers((n,), dtype, n)
        compare(oar.fft.fft(oar.to_tensor(x)), np.fft.fft(wide(x)), dtype)
        compare(oar.fft.ifft(oar.to_tensor(x)), np.fft.ifft(wide(x)), dtype)
        real = np.ascontiguousarray(x.real)
        compare(oar.fft.rfft(oar.to_tensor(real)), np.fft.rfft(wide(real)), dtype)
        half = x[: n // 2 + 1]
        compare(oar.fft.irfft(oar.to_tensor(half), n=n), np.fft.irfft(wide(half), n=n), dtype)


@pytest.mark.parametrize("n", [7, 64, 127, 1000, 1024, 4096])
def test_errors_are_as_small_as_those_of_scipy(n):
    """Against the sum itself, in extended precision."""
    import scipy.fft

    x = numbers((n,), "complex128", n)
    k = np.arange(n)
    angle = (k[:, None] * k[None, :] % n).astype("longdouble") * (8 * np.arctan(np.longdouble(1)) / n)
    exact = (np.cos(angle) - 1j * np.sin(angle)) @ x.astype("clongdouble")
    error = [float(np.abs(made - exact).max() / np.abs(exact).max())
             for made in (oar.fft.fft(oar.to_tensor(x)).numpy(), scipy.fft.fft(x))]
    assert error[0] <= max(2 * error[1], 5e-16)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [None, 3, 6, 9])
def test_lengths_axes_and_norms_of_one_axis(norm, axis, n):
    x = numbers((6, 5, 7), "complex128")
    for name in COMPLEX + HERMITIAN:
        compare(getattr(oar.fft, name)(oar.to_tensor(x), n, axis, norm), getattr(np.fft, name)(x, n, axis, norm), "complex128")
    for name in REAL:
        real = np.ascontiguousarray(x.real)
        compare(getattr(oar.fft, name)(oar.to_tensor(real), n, axis, norm), getattr(np.fft, name)(real, n, axis, norm), "complex128")


CASES = [(None, None), (None, (0, 1)), (None, (2, 0)), (None, (-1,)), ((3, 8), None), ((4, 9), (0, 1)), ((5, 3), (-1, -2)), ((8, 4, 6), None)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("s, axes", CASES)
def test_lengths_axes_and_norms_of_several_axes(norm, s, axes):
    import scipy.fft

    x = numbers((4, 5, 6), "complex128")
    real = np.ascontiguousarray(x.real)
    for name in ("fftn", "ifftn", "irfftn", "hfftn"):
        compare(getattr(oar.fft, name)(oar.to_tensor(x), s, axes, norm), getattr(scipy.fft, name)(x, s, axes, norm), "complex128")
    for name in ("rfftn", "ihfftn", "fftn"):
        compare(getattr(oar.fft, name)(oar.to_tensor(real), s, axes, norm), getattr(scipy.fft, name)(real, s, axes, norm), "complex128")
    if axes is not None and len(axes) == 2:
        for name in ("fft2", "ifft2", "irfft2", "hfft2"):
            compare(getattr(oar.fft, name)(oar.to_tensor(x), s, axes, norm), getattr(scipy.fft, name)(x, s, axes, norm), "complex128")
        for name in ("rfft2", "ihfft2"):
            compare(getattr(oar.fft, name)(oar.to_tensor(real), s, axes, norm), getattr(scipy.fft, name)(real, s, axes, norm), "complex128")


@pytest.mark.parametrize("n", [3, 8, 30])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("loud", [1e6, 1e25, np.nan, np.inf, 3e38])
def test_lines_do_not_reach_each_other(loud, axis, n):
    """Real lines are transformed in pairs; neither the errors nor the NaN of one are those of the other."""
    quiet = numbers((20, n), "float32") * np.float32(1e-6)
    quiet[::3] = loud
    kept = np.arange(20) % 3 > 0
    x = quiet if axis else np.ascontiguousarray(quiet.T)
    found, wanted = oar.fft.rfft(oar.to_tensor(x), axis=axis).numpy(), np.fft.rfft(x.astype("float64"), axis=axis)
    rows = kept if axis else (slice(None), kept)
    np.testing.assert_allclose(found[rows], wanted[rows], atol=1e-11)
    with np.errstate(all="ignore"):
        spectrum = wanted.astype("complex64")
    found = oar.fft.irfft(oar.to_tensor(spectrum), n=n, axis=axis).numpy()
    np.testing.assert_allclose(found[rows], x[rows], atol=1e-12)


def test_results_do_not_depend_on_strides_or_threads():
    x = numbers((33, 40), "complex64")
    expected = oar.fft.fft(oar.to_tensor(np.ascontiguousarray(x.T))).numpy()
    assert np.array_equal(oar.fft.fft(oar.to_tensor(x).t()).numpy(), expected)
    long = oar.to_tensor(numbers((1 << 16,), "float32"))
    threads = oar.get_num_threads()
    try:
        made = []
        for count in (1, 2):
            oar.set_num_threads(count)
            made.append((oar.fft.rfft(long).numpy(), oar.fft.fft2(oar.to_tensor(numbers((64, 96), "complex64"))).numpy()))
    finally:
        oar.set_num_threads(threads)
    for one, two in zip(*made):
        assert np.array_equal(one, two)


def test_dtypes():
    assert oar.fft.fft(oar.to_tensor([1, 2, 3])).dtype == oar.complex64
    assert oar.fft.fft(oar.to_tensor([1.0, 2.0], dtype="float64")).dtype == oar.complex128
    for function in (oar.fft.fft, oar.fft.rfft, oar.fft.hfft, oar.fft.ihfftn):
        with pytest.raises(RuntimeError, match=f"{function.__name__}. x has dtype bool"):
            function(oar.to_tensor([True, False]))
    for dtype in ("float16", "bfloat16"):
        x = oar.to_tensor([1.0, 2.0, 4.0], dtype=dtype)
        assert oar.fft.rfft(x).dtype == oar.complex64
        np.testing.assert_allclose(oar.fft.fft(x).numpy(), np.fft.fft([1, 2, 4]), atol=1e-5)
    assert oar.fft.irfft(oar.to_tensor([1.0, 2.0])).dtype == oar.float32
    with pytest.raises(TypeError, match=r"\[rfft2\] x has dtype complex64.*Use fft2"):
        oar.fft.rfft2(oar.ones([2, 2], dtype="complex64"))
    with pytest.raises(TypeError, match=r"\[ihfft\] .*Use ifft"):
        oar.fft.ihfft(oar.ones([2], dtype="complex64"))


def test_zero_sizes():
    assert oar.fft.fft(oar.zeros([0])).shape == [0]
    assert oar.fft.fftn(oar.zeros([0, 3, 4])).shape == [0, 3, 4]
    assert oar.fft.rfft(oar.zeros([3, 0])).tolist() == [[0j]] * 3
    assert oar.fft.rfft(oar.zeros([0, 5])).shape == [0, 3]
    assert oar.fft.irfft(oar.zeros([0, 5])).shape == [0, 8]
    assert oar.fft.irfft(oar.ones([3, 1])).shape == [3, 0]
    assert oar.fft.fft(oar.zeros([2, 0]), n=3).tolist() == [[0j] * 3] * 2
    assert oar.fft.fftn(oar.to_tensor(2.0)).item() == 2
    with pytest.raises(ValueError, match="would have -2 elements"):
        oar.fft.irfft(oar.zeros([3, 0]))


@pytest.mark.parametrize("call, text", [
    (lambda x: oar.fft.fft(x, norm="both"), "Unexpected norm: 'both'"),
    (lambda x: oar.fft.fft(x, n=0), "should be positive"),
    (lambda x: oar.fft.irfft(x, n=-3), "should be positive"),
    (lambda x: oar.fft.fft(x, n=2.0), "should be an integer"),
    (lambda x: oar.fft.fft(x, axis=2), r"range \[-2, 2\)"),
    (lambda x: oar.fft.rfft(x, axis=-3), r"range \[-2, 2\)"),
    (lambda x: oar.fft.fft(x, axis=(0,)), "should be an integer"),
    (lambda x: oar.fft.fft(oar.to_tensor(1.0)), r"range \[-0, 0\)"),
    (lambda x: oar.fft.fftn(x, s=3), "sequence of integers"),
    (lambda x: oar.fft.fftn(x, s=[3, 0]), "should be positive"),
    (lambda x: oar.fft.fftn(x, s=[3, 4, 5]), "3 lengths, but x has 2 axes"),
    (lambda x: oar.fft.fftn(x, axes=0), "sequence of integers"),
    (lambda x: oar.fft.fftn(x, axes=[0, 1, 0]), "names 3 axes"),
    (lambda x: oar.fft.fftn(x, axes=[0, -2]), "names an axis twice"),
    (lambda x: oar.fft.rfftn(x, axes=[3]), r"range \[-2, 2\)"),
    (lambda x: oar.fft.rfftn(x, axes=[]), "no axis to transform"),
    (lambda x: oar.fft.rfftn(x, s=[3], axes=[0, 1]), "there should be as many"),
    (lambda x: oar.fft.fft2(x, s=[3]), "sequence of 2 integers"),
    (lambda x: oar.fft.hfft2(x, axes=(0, 1, 1)), "sequence of 2 integers"),
    (lambda x: oar.fft.fft2(x[0]), "at least 2 axes"),
    (lambda x: oar.fft.fftfreq(0), "neither may be 0"),
    (lambda x: oar.fft.rfftfreq(4, d=0.0), "neither may be 0"),
    (lambda x: oar.fft.fftshift(x, axes=5), "5"),
    (lambda x: oar._C.ops.fft_c2r(x.astype("complex64"), [1], "backward", False, 9), "9 real numbers have 5"),
    (lambda x: oar._C.ops.fft_c2r(x.astype("complex64"), [1], "backward", False, -4), "must not be negative"),
    (lambda x: oar._C.ops.fft_r2c(x, [], "backward", True, True), "at least one axis"),
    (lambda x: oar._C.ops.fft_c2c(x.astype("complex64"), [0], "none", True), "norm is 'none'"),
])  # fmt: skip
def test_mistakes(call, text):
    with pytest.raises((ValueError, IndexError), match=text):
        call(oar.ones([3, 4]))


def test_out():
    x, out = oar.to_tensor([1.0, 2.0, 3.0]), oar.zeros([3], dtype="complex64")
    assert oar.fft.fft(x, out=out) is out
    assert np.array_equal(out.numpy(), oar.fft.fft(x).numpy())
    out = oar.zeros([4])
    oar.fft.fftfreq(4, out=out)
    assert out.tolist() == [0.0, 0.25, -0.5, -0.25]


def test_frequencies_and_shifts():
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(oar.fft.fftfreq(n, 0.3, dtype="float64").numpy(), np.fft.fftfreq(n, 0.3), rtol=1e-15)
        np.testing.assert_allclose(oar.fft.rfftfreq(n, 0.3, dtype="float64").numpy(), np.fft.rfftfreq(n, 0.3), rtol=1e-15)
    x = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    for axes in (None, 1, (0, 2), (-1,)):
        assert np.array_equal(oar.fft.fftshift(oar.to_tensor(x), axes).numpy(), np.fft.fftshift(x, axes))
        assert np.array_equal(oar.fft.ifftshift(oar.to_tensor(x), axes).numpy(), np.fft.ifftshift(x, axes))
    assert not oar.fft.fftfreq(3, requires_grad=True).stop_gradient


@pytest.mark.parametrize("n", [7, 8])
def test_a_power_spectrum_has_the_gradient_of_parseval(n):
    """The sum of |fft(x)|² is n times that of x², whatever part of the spectrum the ops compute."""
    x = oar.to_tensor(numbers((3, n), "float64"), stop_gradient=False)
    (oar.fft.fft(x).abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * n * x.numpy(), rtol=1e-12)
    x.clear_grad()
    half = oar.fft.rfft(x, norm="ortho")
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    ((half.abs() ** 2) * oar.to_tensor(weights)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), rtol=1e-12)


def test_transforms_in_programs_with_open_sizes():
    from oar.static import InputSpec

    def power(x):
        loss = (oar.fft.irfft(oar.fft.rfft(x), n=6) ** 2).sum() + oar.fft.rfft2(x).abs().sum()
        (grad,) = oar.grad(loss, [x])
        return loss, grad

    step = oar.jit.capture(power, [InputSpec(["batch", 6], "float64", stop_gradient=False)])
    for batch in (2, 5):
        x = oar.to_tensor(numbers((batch, 6), "float64"), stop_gradient=False)
        for made, expected in zip(step(x), power(x)):
            np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12)


def test_vmap():
    x = oar.to_tensor(numbers((4, 3, 6), "float64"))
    for f in (lambda row: oar.fft.rfft(row, axis=0), oar.fft.fftn, lambda row: oar.fft.irfft(oar.fft.rfft(row), n=6)):
        expected = np.stack([f(x[i]).numpy() for i in range(4)])
        np.testing.assert_allclose(oar.func.vmap(f)(x).numpy(), expected, atol=1e-12)


def test_threads_share_plans():
    import threading

    lengths = [int(n) for n in np.random.default_rng(0).integers(1, 300, 200)]
    failed = []

    def work(seed):
        for n in lengths[seed::2] + lengths[::-1]:
            x = numbers((n,), "complex128", seed)
            if not np.allclose(oar.fft.fft(oar.to_tensor(x)).numpy(), np.fft.fft(x), atol=1e-11):
                failed.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts_take_the_names_of_arguments_of_pytorch(name):
    x = np.arange(12.0).reshape(3, 4)
    for dim in (0, [1], (0, 1), None):
        np.testing.assert_array_equal(getattr(oar.fft, name)(input=oar.to_tensor(x), dim=dim), getattr(np.fft, name)(x, dim))
