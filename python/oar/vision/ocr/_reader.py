"""Readers of text, and what they return."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np

from oar import _C
from oar._C import Tensor

Corners = tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]
Image = Union[str, "os.PathLike[str]", np.ndarray, Tensor, Any]


@dataclass(frozen=True)
class Line:
    """A line of text.

    Attributes:
        text: what it says.
        score: the mean probability of its characters.
        box: the corners (x, y) in pixels, clockwise from the top left.
        turned: whether it is upside down.

    Examples:
        >>> from oar.vision.ocr import Line
        >>> Line('Oar', 0.99, ((0, 0), (30, 0), (30, 9), (0, 9))).text
        'Oar'
    """

    text: str
    score: float
    box: Corners
    turned: bool = False


class Reader:
    """Reads text in images.

    Args:
        models: a folder with the networks of PP-OCR: ``det`` and ``rec``, and optionally ``cls``, are words of the names of the ONNX
            files. Without it, the models that ``fetch_models`` has fetched.
        language: which of them; the name of a set that was fetched, or a word in the name of the recognition network.
        box_score: boxes with a lower mean probability are dropped.
        text_score: lines with a lower score are dropped.

    Examples:
        >>> from oar.vision import ocr
        >>> ocr.fetch_models()  # doctest: +SKIP
        >>> reader = ocr.Reader()  # doctest: +SKIP
        >>> for line in reader('page.png'):  # doctest: +SKIP
        ...     print(line.text, line.score)
    """

    def __init__(self, models: str | os.PathLike[str] | None = None, language: str = "", *, box_score: float = 0.5,
                 text_score: float = 0.5) -> None:
        folder = Path(models) if models is not None else Path(_C.ocr_models_folder(language))
        if models is None and not folder.is_dir():
            raise FileNotFoundError(f"[ocr.Reader] no models are installed in {str(folder)!r}.\n"
                                    f"hint: oar.vision.ocr.fetch_models({language!r}) fetches them; or pass models=FOLDER.")
        self._native = _C.ocr_reader(str(folder), language, box_score, text_score)

    def __call__(self, image: Image) -> list[Line]:
        """Read an image.

        Args:
            image: the path of a JPEG or PNG file; or pixels [height, width] or [height, width, channels] of uint8 (gray, or red
                first), as an array, a tensor or an image of Pillow.

        Returns:
            its lines, from top to bottom and from left to right.
        """
        if isinstance(image, (str, os.PathLike)):
            pages = read_pages(image)
            return [line for page in pages for line in self._read(page)]
        return self._read(image)

    def _read(self, image: Any) -> list[Line]:
        return [Line(*found) for found in self._native.read(_pixels(image))]


def _pixels(image: Any) -> Any:
    pixels = image.numpy() if isinstance(image, Tensor) else np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.dtype != np.uint8 or pixels.ndim != 3:
        raise ValueError(f"[ocr] an image of {pixels.dtype} with shape {list(pixels.shape)} cannot be read.\n"
                         "hint: Pass pixels of uint8, [height, width] or [height, width, channels].")
    return np.ascontiguousarray(pixels)


def read_pages(path: str | os.PathLike[str]) -> list[np.ndarray]:
    """The pages of a file, as arrays of uint8 [height, width, 3].

    Args:
        path: a JPEG, PNG or PDF file. The last kind needs Poppler's command ``pdftoppm``.

    Returns:
        one array for an image, one per page for a PDF file.

    Examples:
        >>> from oar.vision import ocr
        >>> pages = ocr.read_pages('scan.pdf')  # doctest: +SKIP
    """
    return _C.ocr_pages(os.fspath(path))


def draw(image: Image, lines: list[Line], path: str | os.PathLike[str]) -> None:
    """Draws the boxes of lines on an image, and writes it as a PNG file.

    Args:
        image: what was read; a path, or pixels.
        lines: what was found.
        path: the file to write.

    Examples:
        >>> import numpy as np
        >>> from oar.vision import ocr
        >>> line = ocr.Line('', 1.0, ((2, 2), (17, 2), (17, 7), (2, 7)))
        >>> ocr.draw(np.full((10, 20), 255, 'uint8'), [line], '/tmp/boxes.png')  # doctest: +SKIP
    """
    pixels = read_pages(image)[0] if isinstance(image, (str, os.PathLike)) else _pixels(image)
    content = _C.ocr_drawn(pixels, [[value for corner in line.box for value in corner] for line in lines])
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
