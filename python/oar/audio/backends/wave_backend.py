"""WAV files: integers of 8 to 32 bits and floats are read, integers of 16 bits are written."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

import oar
from oar._C import Tensor
from oar._lazy import np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

_INTEGERS, _FLOATS, _EXTENSIBLE = 1, 3, 0xFFFE


class AudioInfo:
    """What the header of a file says.

    Args:
        sample_rate: the samples in a second.
        num_samples: the samples of each channel.
        num_channels: how many channels.
        bits_per_sample: the bits of a sample.
        encoding: "PCM_S" for signed integers, "PCM_U" for unsigned ones (of 8 bits), "PCM_F" for floats.

    Examples:
        >>> import oar
        >>> oar.audio.backends.wave_backend.AudioInfo(16000, 8000, 1, 16, 'PCM_S').num_samples
        8000
    """

    def __init__(self, sample_rate: int, num_samples: int, num_channels: int, bits_per_sample: int, encoding: str) -> None:
        self.sample_rate = sample_rate
        self.num_samples = num_samples
        self.num_channels = num_channels
        self.bits_per_sample = bits_per_sample
        self.encoding = encoding


class _Wave:
    """The header of a file, and where its samples are."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        start = file.read(12)
        if len(start) < 12 or start[:4] != b"RIFF" or start[8:] != b"WAVE":
            raise NotImplementedError("only WAV files are supported, and this is none: it does not start with RIFF and WAVE.")
        self.format = 0
        while True:
            head = file.read(8)
            if len(head) < 8:
                raise ValueError("the WAV file has no samples: it ends before its chunk 'data'.")
            kind, size = head[:4], struct.unpack("<I", head[4:])[0]
            if kind == b"data":
                break
            body = file.read(size + size % 2)
            if kind == b"fmt ":
                self._read_format(body)
        if self.format == 0:
            raise ValueError("the WAV file has no chunk 'fmt ' before its samples.")
        at = file.tell()
        size = min(size, file.seek(0, os.SEEK_END) - at)  # a writer that was interrupted leaves a size that is too large
        file.seek(at)
        self.samples = size // (self.channels * self.bits // 8)

    def _read_format(self, body: bytes) -> None:
        if len(body) < 16:
            raise ValueError("the chunk 'fmt ' of the WAV file is too short.")
        self.format, self.channels, self.rate, _, _, self.bits = struct.unpack("<HHIIHH", body[:16])
        if self.format == _EXTENSIBLE and len(body) >= 26:
            self.format = struct.unpack("<H", body[24:26])[0]
        known = {_INTEGERS: (8, 16, 24, 32), _FLOATS: (32, 64)}.get(self.format, ())
        if self.bits not in known or self.channels == 0:
            raise NotImplementedError(
                f"the WAV file has format {self.format}, {self.bits} bits and {self.channels} channels. Integers of 8, 16, 24 or 32 "
                "bits and floats of 32 or 64 bits are supported.")

    @property
    def encoding(self) -> str:
        return "PCM_F" if self.format == _FLOATS else "PCM_U" if self.bits == 8 else "PCM_S"

    def read(self, offset: int, count: int) -> NDArray:
        """Samples [count, channels] as they are in the file."""
        width = self.channels * self.bits // 8
        self._file.seek(offset * width, os.SEEK_CUR)
        content = self._file.read(count * width)
        if self.format == _FLOATS:
            samples = np.frombuffer(content, f"<f{self.bits // 8}")
        elif self.bits == 24:
            raw = np.frombuffer(content, np.uint8).reshape(-1, 3)
            wide = np.zeros((len(raw), 4), np.uint8)
            wide[:, 1:] = raw
            samples = wide.reshape(-1).view("<i4") >> 8
        elif self.bits == 8:
            samples = np.frombuffer(content, np.uint8).astype("int16") - 128
        else:
            samples = np.frombuffer(content, f"<i{self.bits // 8}")
        return samples.reshape(-1, self.channels)


class _Opened:
    """A file by its path, closed at the end, or a file object of the caller."""

    def __init__(self, filepath) -> None:
        self._own = not hasattr(filepath, "read")
        self.file = open(filepath, "rb") if self._own else filepath

    def __enter__(self) -> BinaryIO:
        return self.file

    def __exit__(self, *_) -> None:
        if self._own:
            self.file.close()


def info(filepath: str | os.PathLike | BinaryIO) -> AudioInfo:
    """What the header of a WAV file says.

    Args:
        filepath: a path or a file object.

    Returns:
        an AudioInfo.

    Examples:
        >>> import os, tempfile, oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'tone.wav')
        >>> oar.audio.save(path, oar.zeros([2, 800]), 8000)
        >>> oar.audio.info(path).num_channels
        2
    """
    with _Opened(filepath) as file:
        wave = _Wave(file)
        return AudioInfo(wave.rate, wave.samples, wave.channels, wave.bits, wave.encoding)


def load(filepath: str | os.PathLike | BinaryIO, frame_offset: int = 0, num_frames: int = -1, normalize: bool = True,
         channels_first: bool = True) -> tuple[Tensor, int]:
    """The samples of a WAV file.

    Args:
        filepath: a path or a file object.
        frame_offset: the first sample to read.
        num_frames: how many samples to read; -1 reads all.
        normalize: whether integers are divided so that they are between -1 and 1.
        channels_first: whether the result is [channels, samples]; else it is [samples, channels].

    Returns:
        a float32 tensor, and the samples in a second.

    Examples:
        >>> import os, tempfile, oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'tone.wav')
        >>> oar.audio.save(path, oar.to_tensor([[0.0, 0.5, -0.5]]), 8000)
        >>> oar.audio.load(path)[0].tolist()
        [[0.0, 0.5, -0.5]]
    """
    if frame_offset < 0 or num_frames < -1:
        raise ValueError(f"[load] frame_offset is {frame_offset} and num_frames {num_frames}; only num_frames may be -1, for all.")
    with _Opened(filepath) as file:
        wave = _Wave(file)
        offset = min(frame_offset, wave.samples)
        count = wave.samples - offset if num_frames == -1 else min(num_frames, wave.samples - offset)
        samples = wave.read(offset, count)
    made = samples.astype("float32")
    if normalize and wave.format == _INTEGERS:
        made = (samples / 2.0 ** (wave.bits - 1)).astype("float32")
    return oar.to_tensor(np.ascontiguousarray(made.T if channels_first else made)), wave.rate


def save(filepath: str | os.PathLike, src: Tensor, sample_rate: int, channels_first: bool = True, encoding: str | None = None,
         bits_per_sample: int | None = 16) -> None:
    """Writes a WAV file with integers of 16 bits.

    Args:
        filepath: the path.
        src: the samples: floats between -1 and 1 (those beyond are cut off), or integers of 16 bits.
        sample_rate: the samples in a second.
        channels_first: whether src is [channels, samples]; else it is [samples, channels].
        encoding: accepted for compatibility: None, "PCM_16" or "PCM_S".
        bits_per_sample: 16 or None.

    Examples:
        >>> import os, tempfile, oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'tone.wav')
        >>> oar.audio.save(path, oar.sin(oar.arange(8000) * 0.35).unsqueeze(0), 8000)
        >>> os.path.getsize(path)
        16044
    """
    if src.ndim != 2:
        raise AssertionError(f"[save] Expected a 2D tensor, but src has shape {list(src.shape)}.")
    if bits_per_sample not in (None, 16):
        raise ValueError(f"[save] Invalid bits_per_sample {bits_per_sample}: only 16 bits are supported.")
    if encoding not in (None, "PCM_16", "PCM_S"):
        raise ValueError(f"[save] encoding is {encoding!r}; only integers of 16 bits ('PCM_16') are written.")
    samples = src.numpy().T if channels_first else src.numpy()
    if samples.dtype.kind == "f":
        samples = np.clip(samples.astype("float64") * 2**15, -(2**15), 2**15 - 1)
    elif samples.dtype != np.int16:
        raise TypeError(f"[save] src has dtype {src.dtype.name}; it should be a float type, or int16.")
    content = np.ascontiguousarray(samples.astype("<i2")).tobytes()
    channels = samples.shape[1]
    head = struct.pack("<HHIIHH", _INTEGERS, channels, sample_rate, sample_rate * channels * 2, channels * 2, 16)
    with open(filepath, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + len(content)) + b"WAVEfmt " + struct.pack("<I", 16) + head)
        file.write(b"data" + struct.pack("<I", len(content)) + content)
