"""The mel scale, filter banks on it, decibels, the cosine transform."""

from __future__ import annotations

import math

import oar
from oar._C import Tensor, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Number = TypeVar("Number", Tensor, float)

# Slaney's scale is linear up to 1000 Hz, at 200 / 3 Hz for a mel, and logarithmic from there, with 27 mels for a factor of 6.4.
_HZ_PER_MEL = 200.0 / 3
_LOG_FROM_HZ = 1000.0
_LOG_FROM_MEL = _LOG_FROM_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27.0


def hz_to_mel(freq: Number, htk: bool = False) -> Number:
    """Frequencies in mel.

    Args:
        freq: a number or a tensor of frequencies in Hz.
        htk: whether to use the formula of HTK, 2595 log10(1 + freq / 700), instead of Slaney's.

    Returns:
        a number or a tensor.

    Examples:
        >>> import oar
        >>> oar.audio.functional.hz_to_mel(600.0)
        9.0
    """
    if not isinstance(freq, Tensor):
        if htk:
            return 2595.0 * math.log10(1.0 + freq / 700.0)
        if freq >= _LOG_FROM_HZ:
            return _LOG_FROM_MEL + math.log(freq / _LOG_FROM_HZ) / _LOG_STEP
        return freq / _HZ_PER_MEL
    if htk:
        return 2595.0 * ops.log10(1.0 + freq / 700.0)
    high = ops.maximum(freq, ops.full_like(freq, _LOG_FROM_HZ))
    return ops.where(freq > _LOG_FROM_HZ, _LOG_FROM_MEL + ops.log(high / _LOG_FROM_HZ) / _LOG_STEP, freq / _HZ_PER_MEL)


def mel_to_hz(mel: Number, htk: bool = False) -> Number:
    """The inverse of :func:`hz_to_mel`.

    Args:
        mel: a number or a tensor of frequencies in mel.
        htk: whether to use the formula of HTK instead of Slaney's.

    Returns:
        a number or a tensor.

    Examples:
        >>> import oar
        >>> oar.audio.functional.mel_to_hz(9.0)
        600.0
    """
    if htk:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    if not isinstance(mel, Tensor):
        if mel >= _LOG_FROM_MEL:
            return _LOG_FROM_HZ * math.exp(_LOG_STEP * (mel - _LOG_FROM_MEL))
        return _HZ_PER_MEL * mel
    high = ops.maximum(mel, ops.full_like(mel, _LOG_FROM_MEL))
    return ops.where(mel > _LOG_FROM_MEL, _LOG_FROM_HZ * ops.exp(_LOG_STEP * (high - _LOG_FROM_MEL)), _HZ_PER_MEL * mel)


def mel_frequencies(n_mels: int = 64, f_min: float = 0.0, f_max: float = 11025.0, htk: bool = False,
                    dtype: str = "float32") -> Tensor:
    """Frequencies in Hz that are equally spaced in mel.

    Args:
        n_mels: how many.
        f_min: the first one in Hz.
        f_max: the last one in Hz.
        htk: whether to use the formula of HTK instead of Slaney's.
        dtype: the dtype of the result.

    Returns:
        a tensor [n_mels].

    Examples:
        >>> import oar
        >>> oar.audio.functional.mel_frequencies(4, 0.0, 600.0).tolist()
        [0.0, 200.0, 400.0, 600.0]
    """
    return mel_to_hz(oar.linspace(hz_to_mel(f_min, htk), hz_to_mel(f_max, htk), n_mels, dtype=dtype), htk)


def fft_frequencies(sr: int, n_fft: int, dtype: str = "float32") -> Tensor:
    """The frequencies in Hz of the coefficients of a transform.

    Args:
        sr: the samples in a second.
        n_fft: the length of the transform.
        dtype: the dtype of the result.

    Returns:
        a tensor [n_fft // 2 + 1].

    Examples:
        >>> import oar
        >>> oar.audio.functional.fft_frequencies(16000, 8).tolist()
        [0.0, 2000.0, 4000.0, 6000.0, 8000.0]
    """
    return oar.linspace(0, float(sr) / 2, n_fft // 2 + 1, dtype=dtype)


def compute_fbank_matrix(sr: int, n_fft: int, n_mels: int = 64, f_min: float = 0.0, f_max: float | None = None,
                         htk: bool = False, norm: str | float = "slaney", dtype: str = "float32") -> Tensor:
    """Weights that turn a spectrum into mel bands: triangles that overlap by half.

    Args:
        sr: the samples in a second.
        n_fft: the length of the transform.
        n_mels: how many bands.
        f_min: where the first band starts, in Hz.
        f_max: where the last band ends; None is sr / 2.
        htk: whether to use the formula of HTK instead of Slaney's.
        norm: "slaney" divides each band by its width; a number p divides it by its p-norm.
        dtype: the dtype of the result.

    Returns:
        a tensor [n_mels, n_fft // 2 + 1].

    Examples:
        >>> import oar
        >>> oar.audio.functional.compute_fbank_matrix(sr=16000, n_fft=512).shape
        [64, 257]
    """
    bands = mel_frequencies(n_mels + 2, f_min, float(sr) / 2 if f_max is None else f_max, htk, dtype)
    widths = ops.unsqueeze(bands[1:] - bands[:-1], [1])
    ramps = ops.unsqueeze(bands, [1]) - ops.unsqueeze(fft_frequencies(sr, n_fft, dtype), [0])
    rising, falling = -ramps[:-2] / widths[:-1], ramps[2:] / widths[1:]
    weights = ops.relu(ops.minimum(rising, falling))
    if norm == "slaney":
        return weights * ops.unsqueeze(2.0 / (bands[2:] - bands[:-2]), [1])
    if isinstance(norm, (int, float)):
        return oar.nn.functional.normalize(weights, p=norm, axis=-1)
    return weights


def power_to_db(spect: Tensor, ref_value: float = 1.0, amin: float = 1e-10, top_db: float | None = 80.0) -> Tensor:
    """10 log10(spect / ref_value): a spectrum of powers in decibels.

    Args:
        spect: the powers.
        ref_value: the power of 0 decibels.
        amin: smaller powers count as this one.
        top_db: how far below the largest result the others may be; None does not limit them.

    Returns:
        a tensor of the shape of spect.

    Examples:
        >>> import oar
        >>> oar.audio.functional.power_to_db(oar.to_tensor([1.0, 100.0, 0.0])).tolist()
        [0.0, 20.0, -60.0]
    """
    for argument, value in (("amin", amin), ("ref_value", ref_value)):
        if value <= 0:
            raise ValueError(f"[power_to_db] {argument} is {value}; it must be strictly positive.")
    if top_db is not None and top_db < 0:
        raise ValueError(f"[power_to_db] top_db is {top_db}; it must be non-negative.")
    decibels = 10.0 * ops.log10(ops.maximum(spect, ops.full_like(spect, amin))) - 10.0 * math.log10(max(ref_value, amin))
    return decibels if top_db is None else ops.maximum(decibels, ops.max(decibels) - top_db)


def create_dct(n_mfcc: int, n_mels: int, norm: str | None = "ortho", dtype: str = "float32") -> Tensor:
    """The matrix of a discrete cosine transform (type II).

    Args:
        n_mfcc: how many coefficients.
        n_mels: how many values are transformed.
        norm: "ortho" makes the columns orthonormal; None does not.
        dtype: the dtype of the result.

    Returns:
        a tensor [n_mels, n_mfcc].

    Examples:
        >>> import oar
        >>> oar.audio.functional.create_dct(2, 4)[:, 0].tolist()
        [0.5, 0.5, 0.5, 0.5]
    """
    if norm not in (None, "ortho"):
        raise AssertionError(f"[create_dct] norm is {norm!r}; it can be 'ortho' or None.")
    places = ops.unsqueeze(oar.arange(n_mels, dtype="float64") + 0.5, [1])
    waves = ops.cos(places * oar.arange(n_mfcc, dtype="float64") * (math.pi / n_mels))
    if norm is None:
        return ops.cast(waves * 2.0, dtype)
    factors = ops.where(oar.arange(n_mfcc) == 0, math.sqrt(1.0 / n_mels), math.sqrt(2.0 / n_mels))
    return ops.cast(waves * ops.cast(factors, "float64"), dtype)
