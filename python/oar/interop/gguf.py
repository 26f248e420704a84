"""Weights in GGUF files."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from oar import _C
from oar._C import Tensor

__all__ = ["GgufFile", "load_gguf"]


class GgufFile(Mapping[str, Tensor]):
    """The tensors of a GGUF file by name. A tensor is read when it is asked for; quantised ones become float32.

    Args:
        path: the file. It must not change while this object exists.

    Examples:
        >>> import oar
        >>> file = oar.interop.load_gguf('model.gguf')  # doctest: +SKIP
        >>> file.metadata['general.architecture'], len(file)  # doctest: +SKIP
        ('llama', 272)
        >>> file.types['token_embd.weight'], file['token_embd.weight'].shape  # doctest: +SKIP
        ('Q8_0', [49152, 576])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = Path(path)
        if not file.is_file():
            what = "is a folder" if file.is_dir() else "does not exist"
            raise FileNotFoundError(f"[interop.load_gguf] {str(file)!r} {what}.")
        if file.stat().st_size == 0:
            raise ValueError(f"[interop.load_gguf] {str(file)!r} is empty.")
        with file.open("rb") as opened:
            self._content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self.metadata: dict[str, Any]
        self.metadata, tensors = _C.gguf_header(self._content)
        self._tensors = {entry[0]: entry for entry in tensors}
        self.types: dict[str, str] = {entry[0]: entry[2] for entry in tensors}
        self.shapes: dict[str, list[int]] = {entry[0]: entry[3] for entry in tensors}

    def __getitem__(self, name: str) -> Tensor:
        return _C.gguf_tensor(self._content, *self._tensors[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"GgufFile({len(self)} tensors, architecture={self.metadata.get('general.architecture')!r})"


def load_gguf(path: str | os.PathLike[str]) -> GgufFile:
    """The tensors and the metadata of a GGUF file.

    F32, F16, BF16, F64 and integers keep their dtypes; Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K become float32.

    Args:
        path: the file.

    Returns:
        a ``GgufFile``, a mapping from names to tensors with ``metadata``, ``types`` and ``shapes``.

    Examples:
        >>> import oar
        >>> weights = dict(oar.interop.load_gguf('model.gguf'))  # doctest: +SKIP
    """
    return GgufFile(path)
