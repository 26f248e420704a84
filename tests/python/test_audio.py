"""oar.audio: windows against SciPy's, features against NumPy, WAV files against the standard library."""

import io
import struct
import wave

import numpy as np
import pytest

import oar
from oar.audio import features, functional

WINDOWS = ["hamming", "hann", "blackman", "nuttall", "bartlett", "triang", "bohman", "cosine", "tukey", ("tukey", 0.3), ("tukey", 1.5), ("tukey", 0.0),
           "taylor", ("taylor", 5, 40), ("kaiser", 8.6), ("gaussian", 7), ("general_gaussian", 1.5, 7), ("exponential", None, 3.0),
           ("general_cosine", [0.4, 0.3, 0.3]), ("general_hamming", 0.6)]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 64, 101])
def test_windows(window, n):
    import scipy.signal.windows

    name, *parameters = window if isinstance(window, tuple) else (window,)
    for periodic in (True, False):
        made = functional.get_window(window, n, fftbins=periodic)
        with np.errstate(all="ignore"):
            expected = getattr(scipy.signal.windows, name)(n, *parameters, sym=not periodic)
        assert made.dtype == oar.float64
        np.testing.assert_allclose(made.numpy(), expected, atol=1e-12)


def test_window_functions():
    for name in ("hann", "hamming", "blackman", "bartlett"):
        made = getattr(oar, f"{name}_window")(16, periodic=False)
        assert made.dtype == oar.float32
        np.testing.assert_allclose(made.numpy(), functional.get_window(name, 16, False).numpy(), atol=1e-7)
    np.testing.assert_allclose(oar.kaiser_window(9, beta=5.0, dtype="float64").numpy(), functional.get_window(("kaiser", 5.0), 9).numpy())
    np.testing.assert_allclose(oar.hamming_window(9, alpha=0.7, beta=0.2).numpy(), 0.7 - 0.2 * np.cos(2 * np.pi * np.arange(9) / 9), atol=1e-6)
    assert not oar.hann_window(4, requires_grad=True).stop_gradient
    with pytest.raises(RuntimeError, match=r"\[hann_window\] there is no GPU to pin memory for"):
        oar.hann_window(4, pin_memory=True)


@pytest.mark.parametrize("window, text", [("kaiser", "needs one or more parameters"), ("boxcars", "Unknown window"), (3, "not supported"),
                                          ((2, 3), "not supported"), (("exponential", 2.0), "center must be None")])  # fmt: skip
def test_windows_that_do_not_exist(window, text):
    with pytest.raises(ValueError, match=text):
        functional.get_window(window, 8, fftbins=False)
    with pytest.raises(ValueError, match="non-negative"):
        functional.get_window("hann", -1)


def test_mel_scale():
    hz = np.array([0.0, 30.0, 440.0, 999.0, 1000.0, 3000.0, 11025.0])
    for htk in (True, False):
        mel = functional.hz_to_mel(oar.to_tensor(hz), htk)
        np.testing.assert_allclose(mel.numpy(), [functional.hz_to_mel(float(f), htk) for f in hz], rtol=1e-12)
        np.testing.assert_allclose(functional.mel_to_hz(mel, htk).numpy(), hz, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose([functional.mel_to_hz(float(m), htk) for m in mel.numpy()], hz, rtol=1e-12, atol=1e-9)
    assert abs(functional.hz_to_mel(1000.0, htk=True) - 1000) < 0.02
    assert functional.hz_to_mel(6400.0) == pytest.approx(15 + 27)
    np.testing.assert_allclose(functional.fft_frequencies(16000, 9).numpy(), np.linspace(0, 8000, 5))


def triangles(sr, n_fft, n_mels, f_min, f_max):
    """Slaney's filter bank by its definition, band by band."""
    edges = functional.mel_frequencies(n_mels + 2, f_min, f_max, dtype="float64").numpy()
    frequencies = np.arange(n_fft // 2 + 1) * sr / n_fft
    return np.stack([np.interp(frequencies, edges[i : i + 3], [0, 2 / (edges[i + 2] - edges[i]), 0]) for i in range(n_mels)])


def test_filter_bank():
    made = functional.compute_fbank_matrix(16000, 512, 40, 50.0, dtype="float64")
    np.testing.assert_allclose(made.numpy(), triangles(16000, 512, 40, 50.0, 8000.0), atol=1e-12)
    normed = functional.compute_fbank_matrix(16000, 512, 8, norm=2.0, dtype="float64").numpy()
    np.testing.assert_allclose(np.linalg.norm(normed, axis=1), 1)


def test_decibels():
    powers = np.array([[1.0, 1e-12, 50.0], [0.2, 3.0, 1e-3]])
    expected = 10 * np.log10(np.maximum(powers, 1e-10) / 2)
    np.testing.assert_allclose(functional.power_to_db(oar.to_tensor(powers), 2.0, top_db=None).numpy(), expected)
    np.testing.assert_allclose(functional.power_to_db(oar.to_tensor(powers), 2.0, top_db=30.0).numpy(), np.maximum(expected, expected.max() - 30))
    for arguments in ({"amin": 0}, {"ref_value": -1.0}, {"top_db": -1}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            functional.power_to_db(oar.ones([2]), **arguments)


def test_cosine_transform():
    import scipy.fft

    x = np.random.default_rng(0).standard_normal(20)
    for norm in ("ortho", None):
        made = x @ functional.create_dct(7, 20, norm, "float64").numpy()
        np.testing.assert_allclose(made, scipy.fft.dct(x, norm=norm)[:7], atol=1e-12)


def test_features():
    import scipy.fft

    x = np.random.default_rng(0).standard_normal((2, 3000))
    window = functional.get_window("hann", 400).numpy()
    padded = np.pad(x, [(0, 0), (256, 256)], "reflect")
    whole = np.pad(window, 56)
    pieces = np.stack([padded[:, i : i + 512] * whole for i in range(0, 3001, 100)], 1)
    spectrum = np.abs(np.fft.rfft(pieces)).swapaxes(1, 2)
    signal = oar.to_tensor(x)
    arguments = {"n_fft": 512, "hop_length": 100, "win_length": 400, "dtype": "float64"}
    np.testing.assert_allclose(features.Spectrogram(**arguments)(signal).numpy(), spectrum, atol=1e-10)
    np.testing.assert_allclose(features.Spectrogram(**arguments, power=2.0)(signal).numpy(), spectrum**2, atol=1e-9)
    mel = triangles(16000, 512, 40, 50.0, 8000) @ spectrum**2
    arguments.update(sr=16000, n_mels=40)
    np.testing.assert_allclose(features.MelSpectrogram(**arguments)(signal).numpy(), mel, atol=1e-10)
    decibels = 10 * np.log10(np.maximum(mel, 1e-10))
    np.testing.assert_allclose(features.LogMelSpectrogram(**arguments)(signal).numpy(), decibels, atol=1e-9)
    expected = scipy.fft.dct(decibels, axis=1, norm="ortho")[:, :13]
    mfcc = features.MFCC(n_mfcc=13, **arguments)
    np.testing.assert_allclose(mfcc(signal).numpy(), expected, atol=1e-8)
    assert {name.rpartition(".")[2] for name, _ in mfcc.named_buffers()} == {"dct_matrix", "fbank_matrix", "fft_window"}
    with pytest.raises(AssertionError, match="n_mfcc cannot be larger"):
        features.MFCC(n_mfcc=65)
    with pytest.raises(AssertionError, match="must be > 0"):
        features.Spectrogram(power=0)


def test_features_have_gradients():
    x = oar.to_tensor(np.random.default_rng(0).standard_normal((1, 2000)).astype("float32"), stop_gradient=False)
    features.MFCC(sr=8000, n_fft=256, n_mels=20, n_mfcc=10)(x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and np.abs(x.grad.numpy()).max() > 0


def test_wav_files(tmp_path):
    path = str(tmp_path / "a.wav")
    samples = np.random.default_rng(0).integers(-(2**15), 2**15, (2, 50)).astype("int16")
    oar.audio.save(path, oar.to_tensor(samples), 8000)
    with wave.open(path) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes(), file.getsampwidth()) == (2, 8000, 50, 2)
        assert np.array_equal(np.frombuffer(file.readframes(50), "<i2").reshape(50, 2).T, samples)
    made, rate = oar.audio.load(path)
    assert rate == 8000 and made.dtype == oar.float32
    assert np.array_equal(made.numpy(), samples.astype("float32") / 2**15)
    assert np.array_equal(oar.audio.load(path, normalize=False, channels_first=False)[0].numpy(), samples.T)
    assert np.array_equal(oar.audio.load(path, 10, 5, normalize=False)[0].numpy(), samples[:, 10:15])
    assert oar.audio.load(path, 48, 5)[0].shape == [2, 2] and oar.audio.load(path, 60)[0].shape == [2, 0]
    with open(path, "rb") as file:
        about = oar.audio.info(file)
    assert (about.sample_rate, about.num_samples, about.num_channels, about.bits_per_sample, about.encoding) == (8000, 50, 2, 16, "PCM_S")
    oar.audio.save(path, oar.to_tensor([[0.5], [2.0], [-2.0]]), 8000, channels_first=False)
    assert oar.audio.load(path, normalize=False)[0].tolist() == [[2**14, 2**15 - 1, -(2**15)]]


def wav(code, bits, content, channels=1, extra=b"", extensible=False):
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, 8000, 0, 0, bits)
    if extensible:
        head += struct.pack("<HHIH", 22, bits, 0, code) + bytes(14)
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + extra + b"data" + struct.pack("<I", len(content)) + content
    return io.BytesIO(b"RIFF" + struct.pack("<I", len(body)) + body)


def test_other_kinds_of_samples():
    values = [0.5, -0.25, 0.0]
    for bits in (8, 16, 24, 32):
        whole = [int(v * 2 ** (bits - 1)) for v in values]
        content = b"".join((v + 128).to_bytes(1, "little") if bits == 8 else v.to_bytes(bits // 8, "little", signed=True) for v in whole)
        for extensible in (True, False):
            assert oar.audio.load(wav(1, bits, content, extensible=extensible))[0].tolist() == [values]
    for bits in (32, 64):
        file = wav(3, bits, np.array(values, f"<f{bits // 8}").tobytes(), extra=b"LIST" + struct.pack("<I", 3) + b"abc\0")
        assert oar.audio.load(file)[0].tolist() == [values]


def test_broken_files(tmp_path):
    path = tmp_path / "a.wav"
    for content, kind, text in [(b"", NotImplementedError, "only WAV files"), (b"OggS" + bytes(40), NotImplementedError, "only WAV files"),
                                (wav(1, 16, b"").getvalue()[:36], ValueError, "no samples"),
                                (wav(7, 8, b"ab").getvalue(), NotImplementedError, "format 7"),
                                (wav(1, 16, b"ab", channels=0).getvalue(), NotImplementedError, "0 channels"),
                                (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", ValueError, "no chunk 'fmt '"),
                                (b"RIFF\0\0\0\0WAVEfmt \2\0\0\0ab", ValueError, "too short")]:  # fmt: skip
        path.write_bytes(content)
        for function in (oar.audio.load, oar.audio.info):
            with pytest.raises(kind, match=text):
                function(str(path))
    cut = wav(1, 16, bytes(100)).getvalue()[:-11]  # 89 of 100 bytes
    path.write_bytes(cut)
    assert oar.audio.load(str(path))[0].shape == [1, 44]
    with pytest.raises(AssertionError, match="2D"):
        oar.audio.save(str(path), oar.ones([3]), 8000)
    with pytest.raises(ValueError, match="only 16 bits"):
        oar.audio.save(str(path), oar.ones([1, 3]), 8000, bits_per_sample=24)
    with pytest.raises(TypeError, match="int16"):
        oar.audio.save(str(path), oar.ones([1, 3], dtype="int64"), 8000)
    with pytest.raises(ValueError, match="num_frames"):
        oar.audio.load(str(path), num_frames=-2)
    with pytest.raises(NotImplementedError, match="soundfile"):
        oar.audio.backends.set_backend("soundfile")
