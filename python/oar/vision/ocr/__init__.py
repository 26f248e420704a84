"""Text in images: detection, direction and recognition by PP-OCR's networks, in C++."""

from oar.vision.ocr._fetch import fetch_models
from oar.vision.ocr._reader import Line, Reader, draw, read_pages

__all__ = ["Line", "Reader", "draw", "fetch_models", "read_pages"]
