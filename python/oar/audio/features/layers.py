"""Spectrograms, on the mel scale, in decibels, and their cosine transform."""

from __future__ import annotations

from oar import nn, signal
from oar._C import Tensor, ops
from oar.audio.functional import compute_fbank_matrix, create_dct, get_window, power_to_db


class Spectrogram(nn.Layer):
    """The magnitudes of the short-time Fourier transform, to some power.

    Args:
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the name of the window, or a tuple with its parameters; see ``oar.audio.functional.get_window``.
        power: the exponent of the magnitudes: 1 for magnitudes, 2 for powers.
        center: whether the signal is padded, so that piece t has element t * hop_length in its middle.
        pad_mode: how: "reflect" or "constant".
        dtype: the dtype of the signals.

    Examples:
        >>> import oar
        >>> oar.audio.features.Spectrogram(n_fft=512)(oar.randn([2, 8000])).shape
        [2, 257, 16]
    """

    def __init__(self, n_fft: int = 512, hop_length: int | None = 512, win_length: int | None = None,
                 window: str | tuple = "hann", power: float = 1.0, center: bool = True, pad_mode: str = "reflect",
                 dtype: str = "float32") -> None:
        super().__init__()
        if power <= 0:
            raise AssertionError(f"Power of spectrogram must be > 0, but received {power}.")
        self.power = power
        self._n_fft, self._hop_length, self._win_length = n_fft, hop_length, win_length or n_fft
        self._center, self._pad_mode = center, pad_mode
        self.register_buffer("fft_window", get_window(window, self._win_length, fftbins=True, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Signals [n, length] as spectrograms [n, n_fft // 2 + 1, pieces]."""
        spectra = signal.stft(x, self._n_fft, self._hop_length, self._win_length, self.fft_window, self._center, self._pad_mode)
        return ops.pow(ops.abs(spectra), self.power)


class MelSpectrogram(nn.Layer):
    """Spectrograms on the mel scale.

    Args:
        sr: the samples in a second.
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the name of the window, or a tuple with its parameters; see ``oar.audio.functional.get_window``.
        power: the exponent of the magnitudes: 1 for magnitudes, 2 for powers.
        center: whether the signal is padded, so that piece t has element t * hop_length in its middle.
        pad_mode: how: "reflect" or "constant".
        n_mels: how many mel bands.
        f_min: where the first band starts, in Hz.
        f_max: where the last band ends; None is sr // 2.
        htk: whether to use the formula of HTK for mel instead of Slaney's.
        norm: "slaney" divides each band by its width; a number p divides it by its p-norm.
        dtype: the dtype of the signals.

    Examples:
        >>> import oar
        >>> oar.audio.features.MelSpectrogram(sr=16000, n_fft=512)(oar.randn([2, 8000])).shape
        [2, 64, 16]
    """

    def __init__(self, sr: int = 22050, n_fft: int = 2048, hop_length: int | None = 512, win_length: int | None = None,
                 window: str | tuple = "hann", power: float = 2.0, center: bool = True, pad_mode: str = "reflect",
                 n_mels: int = 64, f_min: float = 50.0, f_max: float | None = None, htk: bool = False,
                 norm: str | float = "slaney", dtype: str = "float32") -> None:
        super().__init__()
        self.n_mels, self.f_min, self.f_max, self.htk, self.norm = n_mels, f_min, f_max, htk, norm
        self._spectrogram = Spectrogram(
            n_fft=n_fft, hop_length=hop_length, win_length=win_length, window=window, power=power, center=center,
            pad_mode=pad_mode, dtype=dtype)
        bands = compute_fbank_matrix(sr, n_fft, n_mels, f_min, sr // 2 if f_max is None else f_max, htk, norm, dtype)
        self.register_buffer("fbank_matrix", bands)

    def forward(self, x: Tensor) -> Tensor:
        """Signals [n, length] as spectrograms [n, n_mels, pieces]."""
        return ops.matmul(self.fbank_matrix, self._spectrogram(x))


class LogMelSpectrogram(nn.Layer):
    """Spectrograms on the mel scale, in decibels.

    Args:
        sr: the samples in a second.
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the name of the window, or a tuple with its parameters; see ``oar.audio.functional.get_window``.
        power: the exponent of the magnitudes: 1 for magnitudes, 2 for powers.
        center: whether the signal is padded, so that piece t has element t * hop_length in its middle.
        pad_mode: how: "reflect" or "constant".
        n_mels: how many mel bands.
        f_min: where the first band starts, in Hz.
        f_max: where the last band ends; None is sr // 2.
        htk: whether to use the formula of HTK for mel instead of Slaney's.
        norm: "slaney" divides each band by its width; a number p divides it by its p-norm.
        ref_value: the power of 0 decibels.
        amin: smaller powers count as this one.
        top_db: how far below the largest result the others may be; None does not limit them.
        dtype: the dtype of the signals.

    Examples:
        >>> import oar
        >>> oar.audio.features.LogMelSpectrogram(sr=16000)(oar.randn([2, 8000])).shape
        [2, 64, 63]
    """

    def __init__(self, sr: int = 22050, n_fft: int = 512, hop_length: int | None = None, win_length: int | None = None,
                 window: str | tuple = "hann", power: float = 2.0, center: bool = True, pad_mode: str = "reflect",
                 n_mels: int = 64, f_min: float = 50.0, f_max: float | None = None, htk: bool = False,
                 norm: str | float = "slaney", ref_value: float = 1.0, amin: float = 1e-10,
                 top_db: float | None = None, dtype: str = "float32") -> None:
        super().__init__()
        self.ref_value, self.amin, self.top_db = ref_value, amin, top_db
        self._melspectrogram = MelSpectrogram(
            sr=sr, n_fft=n_fft, hop_length=hop_length, win_length=win_length, window=window, power=power,
            center=center, pad_mode=pad_mode, n_mels=n_mels, f_min=f_min, f_max=f_max, htk=htk, norm=norm,
            dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Signals [n, length] as spectrograms [n, n_mels, pieces]."""
        return power_to_db(self._melspectrogram(x), self.ref_value, self.amin, self.top_db)


class MFCC(nn.Layer):
    """Mel-frequency cepstral coefficients: the cosine transform of spectrograms on the mel scale, in decibels.

    Args:
        sr: the samples in a second.
        n_mfcc: how many coefficients to keep.
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the name of the window, or a tuple with its parameters; see ``oar.audio.functional.get_window``.
        power: the exponent of the magnitudes: 1 for magnitudes, 2 for powers.
        center: whether the signal is padded, so that piece t has element t * hop_length in its middle.
        pad_mode: how: "reflect" or "constant".
        n_mels: how many mel bands.
        f_min: where the first band starts, in Hz.
        f_max: where the last band ends; None is sr // 2.
        htk: whether to use the formula of HTK for mel instead of Slaney's.
        norm: "slaney" divides each band by its width; a number p divides it by its p-norm.
        ref_value: the power of 0 decibels.
        amin: smaller powers count as this one.
        top_db: how far below the largest result the others may be; None does not limit them.
        dtype: the dtype of the signals.

    Examples:
        >>> import oar
        >>> oar.audio.features.MFCC(sr=16000)(oar.randn([2, 8000])).shape
        [2, 40, 63]
    """

    def __init__(self, sr: int = 22050, n_mfcc: int = 40, n_fft: int = 512, hop_length: int | None = None,
                 win_length: int | None = None, window: str | tuple = "hann", power: float = 2.0, center: bool = True,
                 pad_mode: str = "reflect", n_mels: int = 64, f_min: float = 50.0, f_max: float | None = None,
                 htk: bool = False, norm: str | float = "slaney", ref_value: float = 1.0, amin: float = 1e-10,
                 top_db: float | None = None, dtype: str = "float32") -> None:
        super().__init__()
        if n_mfcc > n_mels:
            raise AssertionError(f"n_mfcc cannot be larger than n_mels: {n_mfcc} vs {n_mels}")
        self._log_melspectrogram = LogMelSpectrogram(
            sr=sr, n_fft=n_fft, hop_length=hop_length, win_length=win_length, window=window, power=power,
            center=center, pad_mode=pad_mode, n_mels=n_mels, f_min=f_min, f_max=f_max, htk=htk, norm=norm,
            ref_value=ref_value, amin=amin, top_db=top_db, dtype=dtype)
        self.register_buffer("dct_matrix", create_dct(n_mfcc, n_mels, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Signals [n, length] as coefficients [n, n_mfcc, pieces]."""
        return ops.matmul(self.dct_matrix, self._log_melspectrogram(x), transpose_x=True)
