"""Images in files."""

from __future__ import annotations

import io

import numpy as np

from oar._C import Tensor
from oar._creation import to_tensor

__all__ = ["decode_jpeg", "read_file"]

_MODES = {"gray": "L", "rgb": "RGB"}


def read_file(filename: str, name: str | None = None) -> Tensor:
    """The bytes of a file.

    Args:
        filename: the path of the file.

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
    with open(filename, "rb") as file:
        return to_tensor(np.frombuffer(file.read(), dtype=np.uint8).copy())


def decode_jpeg(x: Tensor, mode: str = "unchanged", name: str | None = None) -> Tensor:
    """The image in the bytes of a JPEG file. Needs Pillow.

    Args:
        x: the bytes, a tensor of uint8 with one axis.
        mode: 'unchanged' keeps the channels of the file; 'gray' returns one, 'rgb' three.

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
    if mode != "unchanged" and mode not in _MODES:
        raise ValueError(f"[decode_jpeg] mode is {mode!r}; it can be 'unchanged', 'gray' or 'rgb'.")
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("[decode_jpeg] needs Pillow to read JPEG files.\nhint: pip install pillow") from None
    image = Image.open(io.BytesIO(x.numpy().tobytes()), formats=["JPEG"])
    pixels = np.asarray(image if mode == "unchanged" else image.convert(_MODES[mode]))
    return to_tensor(np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)))
