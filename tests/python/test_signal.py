"""oar.signal: against the definitions, written with NumPy."""

import numpy as np
import pytest

import oar


def numbers(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else made.astype(dtype)


def pieces_of(x, length, hop):
    """[..., pieces, length]."""
    count = (x.shape[-1] - length) // hop + 1
    return np.stack([x[..., i * hop : i * hop + length] for i in range(count)], -2)


def stft(x, n_fft, hop, window, center, pad_mode, normalized, onesided):
    whole = np.zeros(n_fft, window.dtype)
    left = (n_fft - len(window)) // 2
    whole[left : left + len(window)] = window
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode)
    spectra = np.fft.fft(pieces_of(x, n_fft, hop) * whole, norm="ortho" if normalized else None)
    return np.swapaxes(spectra[..., : n_fft // 2 + 1] if onesided else spectra, -1, -2)


@pytest.mark.parametrize("shape", [(160,), (3, 160)])
@pytest.mark.parametrize("n_fft, hop, win_length", [(16, None, None), (32, 5, 20), (15, 4, 15), (64, 64, 33)])
@pytest.mark.parametrize("center, pad_mode, normalized, onesided",
                         [(True, "reflect", False, None), (True, "constant", True, True), (False, "reflect", False, False)])
def test_stft(shape, n_fft, hop, win_length, center, pad_mode, normalized, onesided):
    x, window = numbers(shape), np.abs(numbers(win_length or n_fft, seed=1)) + 0.1
    made = oar.signal.stft(oar.to_tensor(x), n_fft, hop, win_length, oar.to_tensor(window), center, pad_mode, normalized, onesided)
    expected = stft(x, n_fft, hop or n_fft // 4, window, center, pad_mode, normalized, onesided is not False)
    assert made.dtype == oar.complex128
    np.testing.assert_allclose(made.numpy(), expected, atol=1e-12)


def test_stft_of_complex_signals_and_windows():
    x = numbers((2, 64), "complex128")
    made = oar.signal.stft(oar.to_tensor(x), 16, center=False)
    np.testing.assert_allclose(made.numpy(), stft(x, 16, 4, np.ones(16), False, None, False, False), atol=1e-12)
    window = numbers((16,), "complex128", 1)
    made = oar.signal.stft(oar.to_tensor(x.real.copy()), 16, window=oar.to_tensor(window), onesided=False)
    np.testing.assert_allclose(made.numpy(), stft(x.real, 16, 4, window, True, "reflect", False, False), atol=1e-12)
    with pytest.raises(AssertionError, match="onesided should be False"):
        oar.signal.stft(oar.to_tensor(x), 16, onesided=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_fft, hop, win_length", [(16, None, None), (32, 5, 20), (15, 4, 15)])
@pytest.mark.parametrize("normalized, onesided", [(False, True), (True, False)])
def test_istft_restores_the_signal(dtype, n_fft, hop, win_length, normalized, onesided):
    x = numbers((3, 160), dtype)
    window = oar.to_tensor((np.abs(numbers(win_length or n_fft, seed=1)) + 0.1).astype(dtype))
    spectra = oar.signal.stft(oar.to_tensor(x), n_fft, hop, win_length, window, normalized=normalized, onesided=onesided)
    back = oar.signal.istft(spectra, n_fft, hop, win_length, window, normalized=normalized, onesided=onesided, length=140)
    assert back.dtype.name == dtype
    np.testing.assert_allclose(back.numpy(), x[:, :140], atol=1e-12 if dtype == "float64" else 2e-5)
    one = oar.signal.istft(spectra[1], n_fft, hop, win_length, window, normalized=normalized, onesided=onesided, length=140)
    np.testing.assert_allclose(one.numpy(), back[1].numpy(), atol=1e-6)


def test_istft_without_center_and_of_complex_signals():
    x = numbers((2, 64), "complex128")
    spectra = oar.signal.stft(oar.to_tensor(x), 16, center=False)
    back = oar.signal.istft(spectra, 16, center=False, onesided=False, return_complex=True)
    np.testing.assert_allclose(back.numpy(), x, atol=1e-12)
    assert oar.signal.istft(oar.signal.stft(oar.to_tensor(x.real.copy()), 16), 16).shape == [2, 64]


def test_istft_agrees_with_scipy():
    import scipy.signal

    x, window = numbers((400,)), scipy.signal.get_window("hann", 64)
    spectra = oar.signal.stft(oar.to_tensor(x), 64, 16, window=oar.to_tensor(window), pad_mode="constant")
    _, _, expected = scipy.signal.stft(x, window="hann", nperseg=64, noverlap=48, padded=False)
    np.testing.assert_allclose(spectra.numpy() / window.sum(), expected, atol=1e-12)
    _, restored = scipy.signal.istft(expected, window="hann", nperseg=64, noverlap=48)
    back = oar.signal.istft(spectra, 64, 16, window=oar.to_tensor(window))
    np.testing.assert_allclose(back.numpy(), restored[: back.shape[0]], atol=1e-12)


def test_frame_and_overlap_add():
    x = np.arange(2 * 3 * 10.0).reshape(2, 3, 10)
    framed = oar.signal.frame(oar.to_tensor(x), 4, 3)
    assert np.array_equal(framed.numpy(), np.swapaxes(pieces_of(x, 4, 3), -1, -2))
    first = oar.signal.frame(oar.to_tensor(np.moveaxis(x, -1, 0).copy()), 4, 3, axis=0)
    assert np.array_equal(first.numpy(), np.moveaxis(pieces_of(x, 4, 3), (-2, -1), (0, 1)))
    added = oar.signal.overlap_add(framed, 3)
    expected = np.zeros_like(x)
    for i, piece in enumerate(np.moveaxis(pieces_of(x, 4, 3), -2, 0)):
        expected[..., 3 * i : 3 * i + 4] += piece
    assert np.array_equal(added.numpy(), expected)
    assert np.array_equal(oar.signal.overlap_add(first, 3, axis=0).numpy(), np.moveaxis(expected, -1, 0))
    assert oar.signal.overlap_add(oar.arange(16).reshape([2, 8]), 2, axis=0).tolist() == [0, 1, 10, 12, 14, 16, 18, 20, 14, 15]


def test_gradients_are_those_of_finite_differences():
    x = oar.to_tensor(numbers((1, 40)), stop_gradient=False)
    window = oar.to_tensor(np.abs(numbers(16, seed=1)) + 0.1, stop_gradient=False)

    def loss(x, window):
        spectra = oar.signal.stft(x, 16, 4, window=window)
        return (spectra.abs() ** 2).sum() + (oar.signal.istft(spectra * 2, 16, 4, window=window) ** 3).sum()

    grads = oar.grad(loss(x, window), [x, window])
    for tensor, grad in zip((x, window), grads):
        at = (0, 7) if tensor.ndim == 2 else (7,)
        step = np.zeros(tensor.shape)
        step[at] = 1e-6
        up, down = (tensor + oar.to_tensor(step)).detach(), (tensor - oar.to_tensor(step)).detach()
        args = [(up, window), (down, window)] if tensor is x else [(x, up), (x, down)]
        slope = (loss(*args[0]) - loss(*args[1])).item() / 2e-6
        assert abs(grad.numpy()[at] - slope) < 1e-5 * max(1, abs(slope))


@pytest.mark.parametrize("call, text", [
    (lambda x: oar.signal.stft(x.reshape([2, 2, 16]), 4), "1D or 2D"),
    (lambda x: oar.signal.stft(x, 65), r"n_fft should be in \(0, seq_length\(64\)\]"),
    (lambda x: oar.signal.stft(x, 16, 0), "hop_length should be > 0"),
    (lambda x: oar.signal.stft(x, 16, win_length=17), "win_length should be in"),
    (lambda x: oar.signal.stft(x, 16, window=oar.ones([15])), "expected a 1D window"),
    (lambda x: oar.signal.stft(x, 16, pad_mode="circular"), "pad_mode should be"),
    (lambda x: oar.signal.istft(x.astype("complex64"), 16), "2D or 3D"),
    (lambda x: oar.signal.istft(oar.ones([9, 3], dtype="complex64"), 16, 17), "hop_length should be in"),
    (lambda x: oar.signal.istft(oar.ones([8, 3], dtype="complex64"), 16), "it should have 9"),
    (lambda x: oar.signal.istft(oar.ones([9, 0], dtype="complex64"), 16), "empty"),
    (lambda x: oar.signal.istft(oar.ones([9, 3], dtype="complex64"), 16, return_complex=True), "onesided should be False"),
    (lambda x: oar.signal.istft(oar.ones([9, 3], dtype="complex64"), 16, window=oar.zeros([16])), "NOLA"),
    (lambda x: oar.signal.istft(oar.ones([9, 3]), 16), "it should be complex"),
    (lambda x: oar.signal.frame(x, 4, 2, axis=1), "0 or -1"),
    (lambda x: oar.signal.frame(x, 0, 2), "positive integer"),
    (lambda x: oar.signal.frame(x, 65, 2), "larger than axis"),
    (lambda x: oar.signal.overlap_add(x, 0), "at least 2 axes|positive integer"),
    (lambda x: oar.signal.overlap_add(x, 2), "at least 2 axes"),
])  # fmt: skip
def test_mistakes(call, text):
    with pytest.raises((ValueError, AssertionError, TypeError), match=text):
        call(oar.ones([64]))
