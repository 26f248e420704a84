"""Paddle's looser forms of arguments that convolution and pooling share."""

from __future__ import annotations

from typing import Any

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def resolve_padding(padding: Any, dims: int, data_format: str) -> tuple[Any, str]:
    """(numbers, algorithm) of a padding given as a name, a number, a flat list, or pairs per axis."""
    if isinstance(padding, str):
        name = padding.upper()
        if name not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or numbers, not {padding!r}.")
        return 0, name
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [list(pair) for pair in padding]
        if len(pairs) == dims + 2:  # batch and channels are listed too; they cannot be padded
            channel = len(pairs) - 1 if data_format == FORMATS[dims][1] else 1
            if any(pairs[0]) or any(pairs[channel]):
                raise ValueError(f"batch and channels cannot be padded, but padding is {padding}.")
            pairs = [pair for axis, pair in enumerate(pairs) if axis not in (0, channel)]
        return [number for pair in pairs for number in pair], "EXPLICIT"
    return padding, "EXPLICIT"


def keep_none(output_size: Any) -> Any:
    """``output_size`` with -1, which keeps the size of an axis, in place of None."""
    if isinstance(output_size, (list, tuple)):
        return [-1 if size is None else size for size in output_size]
    return -1 if output_size is None else output_size
