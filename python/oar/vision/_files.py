"""Images in files."""

from __future__ import annotations

import io
import os

import numpy as np

from oar._C import ArgumentValueError, Tensor, image_decode, image_info
from oar._creation import to_tensor

__all__ = ["decode_jpeg", "decoded", "read_file"]

_MODES = {"unchanged": None, "gray": "L", "rgb": "RGB"}


def read_file(filename: str | os.PathLike[str], name: str | None = None) -> Tensor:
    """The bytes of a file.

    Args:
        filename: the path of the file.
        name: accepted for compatibility.

    Returns:
        a tensor of uint8 with one axis.

    Examples:
        >>> import oar, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'three')
        >>> with open(path, 'wb') as file:
        ...     _ = file.write(b'abc')
        >>> oar.vision.ops.read_file(path).tolist()
        [97, 98, 99]
    """
    return to_tensor(np.fromfile(filename, dtype=np.uint8))


def decode_jpeg(x: Tensor, mode: str = "unchanged", name: str | None = None) -> Tensor:
    """The image in the bytes of a JPEG file.

    Args:
        x: the bytes, a tensor of uint8 with one axis.
        mode: 'unchanged' keeps the channels of the file; 'gray' returns one, 'rgb' three.
        name: accepted for compatibility.

    Returns:
        a tensor of uint8, [channels, height, width].

    Examples:
        >>> import oar
        >>> oar.vision.ops.decode_jpeg(oar.zeros([4], 'float32'))
        Traceback (most recent call last):
        ...
        TypeError: [decode_jpeg] x has dtype float32; it must be uint8: the bytes of a JPEG file.
    """
    if x.dtype.name != "uint8":
        raise TypeError(f"[decode_jpeg] x has dtype {x.dtype.name}; it must be uint8: the bytes of a JPEG file.")
    if mode not in _MODES:
        raise ValueError(f"[decode_jpeg] mode is {mode!r}; it can be 'unchanged', 'gray' or 'rgb'.")
    file = x.numpy().tobytes()
    if not file.startswith(b"\xff\xd8\xff"):
        raise ArgumentValueError(f"[decode_jpeg] the {len(file)} bytes of x are no JPEG file. Read one with "
                                 f"oar.vision.ops.read_file.")
    pixels = decoded("decode_jpeg", file, mode)
    return to_tensor(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def decoded(function: str, file: bytes, mode: str, name: str = "the image") -> np.ndarray:
    """The pixels [height, width, channels] of the bytes of an image file. Pillow decodes what native code does not."""
    try:
        info = image_info(file)
        if info is not None and info[4]:
            return image_decode(file, mode, None)
    except NotImplementedError:  # the libraries are not installed
        pass
    except ValueError as error:
        raise OSError(f"[{function}] {name} cannot be read: {error} Replace or remove the file.") from None
    return _decoded_by_pillow(function, file, mode, name)


def _decoded_by_pillow(function: str, file: bytes, mode: str, name: str) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"[{function}] needs Pillow to read {name}.\nhint: pip install pillow") from None
    try:
        with Image.open(io.BytesIO(file)) as image:
            pixels = np.asarray(image if mode == "unchanged" else image.convert(_MODES[mode]))
    except OSError as error:
        raise OSError(f"[{function}] {name} cannot be read: {error}. Replace or remove the file.") from None
    return pixels[:, :, None] if pixels.ndim == 2 else pixels
