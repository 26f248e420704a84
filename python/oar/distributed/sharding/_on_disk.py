"""Tensors in files that are mapped into memory: the system keeps in memory what is in use."""

from __future__ import annotations

import mmap
import os
import tempfile

from oar import _C
from oar._C import Tensor
from oar._creation import from_dlpack
from oar._lazy import np

__all__ = ["OnDisk"]


class OnDisk:
    """A folder of tensors. Each file has no name any more: it is gone when its tensor is.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder

    def moved(self, tensor: Tensor) -> Tensor:
        """A tensor with the same content in a file. bfloat16, which NumPy does not have, stays in memory."""
        count = tensor.numel().item() * tensor.element_size()
        if count == 0 or tensor.dtype == _C.bfloat16:
            return tensor
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.posix_fallocate(file.fileno(), 0, count)  # a full disk is an error here, not later
            mapped = mmap.mmap(file.fileno(), count)
        own = from_dlpack(np.frombuffer(mapped, tensor.dtype.name).reshape(tensor.shape))
        own.copy_(tensor)
        return own
