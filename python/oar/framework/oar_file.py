"""The ``.oar`` format: a model in one file, or in one file and its shards. ``docs/file-format.md`` describes it.

The writer is here. Files may be hostile, so they are read by ``formats/oar_file.cpp`` alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

import oar
from oar import _C
from oar._C import Tensor
from oar.framework import safetensors
from oar.framework._replace import replace_files
from oar.framework.io import tensor_to_array
from oar.framework.parameter import dtype_name

__all__ = ["OarContent", "is_oar_path", "load_oar", "save_oar"]

_MAGIC = b"\x89OAR\r\n\x1a\n"
_MAJOR, _MINOR = 1, 0
_PREAMBLE = struct.Struct("<8sHHIQQI24x")  # the checksum of these 60 bytes follows
_PAGE, _ALIGNED = 4096, 64
_LARGE = 65536  # bytes from which on a tensor begins with a page


def is_oar_path(path: Any) -> bool:
    """Whether a path names a file of this format: it ends in ``.oar``."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).endswith(".oar")


class OarContent:
    """What a file holds.

    Args:
        header: what is written as JSON: methods with their signatures, metadata, and more.
        programs: for each method its program and, if there is one, the program to train further, as bytes.
        tensors: everything that programs read, by name.
    """

    def __init__(self, header: dict[str, Any], programs: dict[str, tuple[bytes, bytes]], tensors: dict[str, Tensor]) -> None:
        self.header, self.programs, self.tensors = header, programs, tensors

    def method(self, name: str, path: str) -> tuple[bytes, bytes]:
        """The programs of a method."""
        if name not in self.programs:
            raise ValueError(f"{path} has no method {name!r}; it has {', '.join(self.programs) or 'none'}.")
        return self.programs[name]


def load_oar(path: Any, verify: bool = False) -> OarContent:
    """Reads a file. Tensors are mapped into memory: they are read when they are used, and writes never reach the file.

    Args:
        path: the file.
        verify: whether tensors are compared with their checksums, which reads all of them.
    """
    header, programs, tensors = _C.load_oar(os.fspath(path), verify)
    return OarContent(json.loads(header), programs, tensors)


# writing -----------------------------------------------------------------------------------------


class _Data:
    """The data of one file: pieces of bytes at aligned offsets. Tensors are converted when they are written, one at a time."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, Any]] = []
        self.end = 0

    def add(self, nbytes: int, content: Any) -> list[int]:
        step = _PAGE if nbytes >= _LARGE else _ALIGNED
        begin = -(-self.end // step) * step
        self.pieces.append((begin, content))
        self.end = begin + nbytes
        return [begin, self.end]

    def add_text(self, text: bytes) -> dict[str, Any]:
        return {"data_offsets": self.add(len(text), text), "crc32c": _C.crc32c(text)}

    def add_tensor(self, tensor: Tensor) -> dict[str, Any]:
        content = _bytes_of(tensor)
        place = self.add(len(content), tensor)
        return {"dtype": safetensors.name_in_files(dtype_name(tensor.dtype)), "shape": list(tensor.shape), "data_offsets": place,
                "crc32c": _C.crc32c(content)}


def _bytes_of(tensor: Tensor) -> Any:
    name = dtype_name(tensor.dtype)
    if safetensors.name_in_files(name) is None:
        raise ValueError(f"a tensor of dtype {name} cannot be written to an .oar file. Cast it first.")
    return safetensors.raw_bytes(tensor_to_array(tensor), name)


def _plain(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()


def _write(header: bytes, data: _Data, file: BinaryIO) -> None:
    data_at = -(-(_PREAMBLE.size + 4 + len(header)) // _PAGE) * _PAGE
    size = data_at + data.end if data.pieces else _PREAMBLE.size + 4 + len(header)
    preamble = _PREAMBLE.pack(_MAGIC, _MAJOR, _MINOR, 0, len(header), size, _C.crc32c(header))
    file.write(preamble + struct.pack("<I", _C.crc32c(preamble)) + header)
    at = _PREAMBLE.size + 4 + len(header)
    for begin, content in data.pieces:
        file.write(bytes(data_at + begin - at))
        content = _bytes_of(content) if isinstance(content, Tensor) else content
        file.write(content)
        at = data_at + begin + len(content)


def _groups(tensors: Mapping[str, Tensor], most: int | None) -> Iterator[dict[str, Tensor]]:
    """Tensors by name in groups of at most this many bytes, as far as single ones allow that."""
    group: dict[str, Tensor] = {}
    size = 0
    for name in sorted(tensors):
        nbytes = tensors[name].size * tensors[name].element_size()
        if group and most is not None and size + nbytes > most:
            yield group
            group, size = {}, 0
        group[name] = tensors[name]
        size += nbytes
    if group:
        yield group


def _shard_files(prefix: str, groups: list[dict[str, Tensor]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The header's list of shards, and what writes each. The checksum in a name keeps the files of the model that is replaced."""
    rows, writers = [], {}
    for i, group in enumerate(groups):
        data = _Data()
        header = _plain({"format": "oar shard", "tensors": {name: data.add_tensor(tensor) for name, tensor in group.items()}})
        checksum = _C.crc32c(header)
        file = f"{prefix}-{i + 1:05}-of-{len(groups):05}-{checksum:08x}.oar"
        rows.append({"file": os.path.basename(file), "header_crc32c": checksum})
        writers[file] = partial(_write, header, data)
    return rows, writers


def _remove_old_shards(prefix: str, kept: set[str]) -> None:
    ours = re.compile(re.escape(os.path.basename(prefix)) + r"-\d{5}-of-\d{5}-[0-9a-f]{8}\.oar")
    folder = os.path.dirname(prefix) or "."
    for name in os.listdir(folder):
        if ours.fullmatch(name) and name not in kept:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def save_oar(path: str, content: OarContent, shard_size: int | None = None) -> None:
    """Writes a file, whole or not at all. The same content gives the same bytes.

    Args:
        path: the file.
        content: what it is to hold.
        shard_size: the most bytes of tensors per file; where they have more, they are written to shards beside the file.
    """
    if shard_size is not None and (not isinstance(shard_size, int) or isinstance(shard_size, bool) or shard_size < 1):
        raise ValueError(f"shard_size should be a number of bytes, but received {shard_size!r}.")
    groups = list(_groups(content.tensors, shard_size))
    prefix = path[: -len(".oar")]
    shards, writers = _shard_files(prefix, groups) if len(groups) > 1 else ([], {})
    data = _Data()
    methods = {}
    for name in sorted(content.programs):
        program, training = content.programs[name]
        methods[name] = {**content.header["methods"][name], "program": data.add_text(program)}
        if training:
            methods[name]["training"] = data.add_text(training)
    held = {} if shards else content.tensors
    header = {**content.header, "format": "oar model", "producer": f"oar {oar.__version__}", "methods": methods, "shards": shards,
              "tensors": {name: data.add_tensor(held[name]) for name in sorted(held)}}
    # The model itself comes last: only it names the shards.
    replace_files({**writers, path: partial(_write, _plain(header), data)})
    _remove_old_shards(prefix, {row["file"] for row in shards})
