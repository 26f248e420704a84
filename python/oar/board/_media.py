"""What users pass to ``LogWriter``, as pictures, sound, histograms and curves."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

from oar import Tensor
from oar._lazy import np
from oar.board._items import Blob, Curve, Histogram

__all__ = ["array_of", "curve_of", "grid", "histogram_of", "picture_of", "png", "sound_of"]


def array_of(value: Any, what: str) -> Any:
    """A tensor, an array or nested lists as an array of numbers."""
    if isinstance(value, Tensor):
        value = value.detach()
        if value.dtype.name in ("bfloat16", "float16"):
            value = value.astype("float32")
        return value.numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        if hasattr(value, "numpy"):  # a tensor of another library
            return array_of(value.numpy(), what)
        raise TypeError(f"[LogWriter] {what} holds {array.dtype}, not numbers. Pass a tensor, an array or a list of numbers.")
    return array


def histogram_of(values: Any, buckets: int) -> Histogram:
    """Counts of finite values between evenly spaced edges."""
    array = array_of(values, "values").reshape(-1)
    if array.dtype.kind == "f":
        array = array[np.isfinite(array)]
    if not isinstance(buckets, (int, np.integer)) or buckets < 1:
        raise ValueError(f"[LogWriter.add_histogram] buckets is {buckets!r}. Pass a positive integer.")
    if array.size == 0:
        raise ValueError("[LogWriter.add_histogram] there are no finite values. Pass at least one.")
    counts, edges = np.histogram(array.astype("float64"), bins=int(buckets))
    return Histogram(tuple(edges.tolist()), tuple(counts.astype("float64").tolist()))


# ---- images --------------------------------------------------------------------------------------------


def _as_bytes(array: Any) -> Any:
    """Values from 0 to 1 are scaled to 0 to 255, as in VisualDL; others are cut off there."""
    if array.dtype.kind == "f":
        array = np.nan_to_num(array.astype("float32"), nan=0.0)
    if array.size and array.min() >= 0 and array.max() <= 1:
        return np.rint(array.astype("float32") * 255).astype("uint8")
    return array.clip(0, 255).astype("uint8")


def _as_hwc(array: Any, dataformats: str) -> Any:
    form = dataformats.upper()
    if sorted(form) not in (["H", "W"], sorted("HWC"), sorted("NHWC")) or array.ndim != len(form):
        raise ValueError(f"[LogWriter.add_image] an image of shape {list(array.shape)} does not fit dataformats={dataformats!r}. "
                         "Pass 'HWC', 'CHW', 'HW' or 'NCHW', one letter for each axis.")
    if len(form) == 4:
        return grid(array.transpose([form.index(letter) for letter in "NHWC"]), -1, 1.0)
    if len(form) == 2:
        return array.transpose([form.index(letter) for letter in "HW"])[:, :, None]
    return array.transpose([form.index(letter) for letter in "HWC"])


def grid(images: Any, rows: int, scale: float) -> Any:
    """Images [N, H, W, C] as one, row by row.

    Args:
        images: the images.
        rows: how many rows; -1 for a square, if possible.
        scale: the size of each, as a factor.
    """
    count, height, width, channels = images.shape
    if count == 0:
        raise ValueError("[LogWriter] there are no images. Pass at least one.")
    rows = math.ceil(math.sqrt(count)) if rows < 1 else min(rows, count)
    columns = math.ceil(count / rows)
    if scale != 1.0:
        tall, wide = max(1, round(height * scale)), max(1, round(width * scale))
        images = images[:, (np.arange(tall) * height // tall)][:, :, (np.arange(wide) * width // wide)]
        height, width = tall, wide
    whole = np.zeros((rows * columns, height, width, channels), images.dtype)
    whole[:count] = images
    return whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, columns * width, channels)


def png(pixels: Any) -> bytes:
    """A PNG file of pixels [H, W, C] of uint8, with one to four channels."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    # Each row as its difference to the row above, which compresses better.
    lines = np.empty((height, width * channels + 1), "uint8")
    lines[:, 0] = 2
    lines[:, 1:] = rows
    lines[1:, 1:] -= rows[:-1]
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b""))


def picture_of(image: Any, dataformats: str) -> tuple[Blob, int]:
    """A PNG file and the number of its channels."""
    array = _as_bytes(array_of(image, "the image"))
    pixels = np.ascontiguousarray(_as_hwc(array, dataformats))
    if pixels.shape[2] not in (1, 2, 3, 4) or 0 in pixels.shape:
        raise ValueError(f"[LogWriter.add_image] an image has height {pixels.shape[0]}, width {pixels.shape[1]} and {pixels.shape[2]} "
                         "channels. Pass one to four channels, and say with dataformats which axis is which.")
    return Blob(png(pixels), pixels.shape[1], pixels.shape[0]), pixels.shape[2]


# ---- sound and curves ----------------------------------------------------------------------------------


def sound_of(audio: Any, sample_rate: int) -> tuple[Blob, int]:
    """A WAV file of 16 bits and one channel, and the number of its samples. Values beyond -1 to 1 are cut off there."""
    array = array_of(audio, "audio_array").astype("float64").squeeze()
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"[LogWriter.add_audio] audio_array has the shape {list(array.shape)}. Pass the samples of one channel.")
    samples = (np.nan_to_num(array).clip(-1, 1) * 32767).astype("<i2").tobytes()
    rate = int(sample_rate)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16,
                       b"data", len(samples))
    return Blob(head + samples, rate=float(rate)), array.size


def curve_of(form: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> Curve:
    """Counts of right and wrong answers for thresholds from 0 to 1, and what follows from them.

    Args:
        form: ``'pr'`` or ``'roc'``.
        labels: whether each element is positive.
        predictions: the probability of each to be positive.
        num_thresholds: how many thresholds.
        weights: how much each counts; None for 1.
    """
    name = f"[LogWriter.add_{form}_curve]"
    truth = array_of(labels, "labels").reshape(-1).astype(bool)
    scores = array_of(predictions, "predictions").reshape(-1).astype("float64")
    if truth.shape != scores.shape or truth.size == 0:
        raise ValueError(f"{name} there are {truth.size} labels and {scores.size} predictions. Pass one prediction for each label.")
    if not (scores.min() >= 0 and scores.max() <= 1):
        raise ValueError(f"{name} predictions range from {scores.min():g} to {scores.max():g}. Pass probabilities, from 0 to 1.")
    if num_thresholds < 2:
        raise ValueError(f"{name} num_thresholds is {num_thresholds}. Pass at least 2.")
    amount = np.broadcast_to(1.0 if weights is None else array_of(weights, "weights").astype("float64"), scores.shape)
    place = np.floor(scores * (num_thresholds - 1)).astype("int64")

    def at_least(chosen: Any) -> Any:
        return np.bincount(place[chosen], amount[chosen], num_thresholds)[::-1].cumsum()[::-1]

    tp, fp = at_least(truth), at_least(~truth)
    fn, tn = tp[0] - tp, fp[0] - fp

    def ratio(part: Any, other: Any) -> tuple[float, ...]:
        total = part + other
        return tuple(np.divide(part, total, out=np.zeros_like(total), where=total > 0).tolist())

    rates = (ratio(tp, fp), ratio(tp, fn)) if form == "pr" else (ratio(tp, fn), ratio(fp, tn))
    return Curve(form, tuple(tuple(counts.tolist()) for counts in (tp, fp, tn, fn)), *rates)
