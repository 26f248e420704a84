"""Files that are mapped into memory."""

from __future__ import annotations

import mmap
import os
from typing import Any

from oar import _C
from oar._C import Tensor, ops
from oar._creation import from_dlpack
from oar._lazy import np

__all__ = ["MmapStorage"]


class MmapStorage:
    """The beginning of a file, mapped into memory: what is not used is not read.

    Args:
        filename: the name of the file.
        nbytes: how many bytes to map.

    Examples:
        >>> import oar
        >>> oar.arange(20, dtype='float32').numpy().tofile('numbers.bin')
        >>> storage = oar.MmapStorage('numbers.bin', 80)
        >>> storage.get_slice('float32', 0, 4).tolist()
        [0.0, 1.0, 2.0, 3.0]
        >>> storage.get_slice('float32', 8, 8 + 4).tolist()  # from byte 8 on
        [2.0, 3.0, 4.0, 5.0]
    """

    def __init__(self, filename: str, nbytes: int) -> None:
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes <= 0:
            raise ValueError(f"[MmapStorage] nbytes must be a positive number, not {nbytes!r}.")
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < nbytes:
                raise ValueError(f"[MmapStorage] the file {filename!r} has {size} bytes, less than the {nbytes} to map.")
            self._bytes = np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_COPY), "uint8")

    def get_slice(self, dtype: Any = "uint8", start: int = 0, stop: int = -1, step: int = 1) -> Tensor:
        """Elements from a place of the file on. Those of uint8 share the mapped memory; a change never reaches the file.

        Args:
            dtype: the dtype of the elements.
            start: the place of the first element, in bytes.
            stop: ``start`` plus the number of elements that the slice spans; -1 is for all to the end.
            step: 1, or the distance between the elements to take.

        Returns:
            a tensor with one axis.
        """
        wanted = _C.dtype(dtype)
        size = len(self._bytes)
        if not 0 <= start <= size:
            raise ValueError(f"[get_slice] start must be a place in the {size} bytes that are mapped, not {start}.")
        if step < 1:
            raise ValueError(f"[get_slice] step must be at least 1, not {step}.")
        there = (size - start) // wanted.itemsize
        count = there if stop == -1 else max(stop - start, 0)
        if count > there:
            raise ValueError(f"[get_slice] from byte {start} on there are {there} elements of {wanted.name}, not {count}.")
        part = self._bytes[start : start + count * wanted.itemsize]
        if count == 0:
            return ops.zeros([0], wanted)
        shared = from_dlpack(part)
        elements = shared if wanted == _C.uint8 else ops.bitcast(shared, wanted)
        return elements if step == 1 else ops.assign(elements[::step])
