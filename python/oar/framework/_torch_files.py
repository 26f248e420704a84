"""Files of ``torch.save``: a zip archive with a pickle and one entry per storage, or, before version 1.6, pickles one after another.

The pickle names a function for each tensor, and a persistent id for each storage. Both are answered here with plain objects that
hold their checked arguments; no other name is admitted, and no code of PyTorch runs.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

from oar._lazy import np
from oar.framework import _pickle
from oar.framework._pickle import UnsafePickleError, function_of_pickles
from oar.framework._strange_files import name_of

__all__ = ["looks_like_torch", "read_torch"]

_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY = b"\x80\x02\x8a\x0a" + _MAGIC.to_bytes(10, "little") + b"."
_ZIP = b"PK\x03\x04"
# A view that repeats elements may be larger than its storage, but not without limit.
_MOST_REPEATED = 1 << 20

# The dtype of Oar, and how NumPy holds its elements.
_STORAGES = {
    "DoubleStorage": ("float64", "<f8"), "FloatStorage": ("float32", "<f4"), "HalfStorage": ("float16", "<f2"),
    "BFloat16Storage": ("bfloat16", "<u2"), "LongStorage": ("int64", "<i8"), "IntStorage": ("int32", "<i4"),
    "ShortStorage": ("int16", "<i2"), "CharStorage": ("int8", "|i1"), "ByteStorage": ("uint8", "|u1"), "BoolStorage": ("bool", "|b1"),
    "ComplexFloatStorage": ("complex64", "<c8"), "ComplexDoubleStorage": ("complex128", "<c16"),
    "Float8_e4m3fnStorage": ("float8_e4m3fn", "|u1"), "Float8_e5m2Storage": ("float8_e5m2", "|u1"),
}
_DTYPES = {
    "float64": "<f8", "double": "<f8", "float32": "<f4", "float": "<f4", "float16": "<f2", "half": "<f2", "bfloat16": "<u2",
    "int64": "<i8", "long": "<i8", "int32": "<i4", "int": "<i4", "int16": "<i2", "short": "<i2", "int8": "|i1", "uint8": "|u1",
    "bool": "|b1", "complex64": "<c8", "complex128": "<c16", "float8_e4m3fn": "|u1", "float8_e5m2": "|u1",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
}
_SAME_DTYPES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}


def looks_like_torch(start: bytes) -> bool:
    """Whether a file that begins like this is one of ``torch.save``."""
    return start.startswith((_ZIP, _LEGACY))


class _Named:
    """A class or a dtype of PyTorch that a file names."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickleError(f"The file changes torch.{self.name}, which is not admitted.")


class _Storage:
    """The memory of one or more tensors; its bytes may come later."""

    __slots__ = ("content", "count", "dtype", "format", "offset")
    content: bytes | memoryview | None

    def __init__(self, kind: Any, count: Any) -> None:
        if not isinstance(kind, _Named) or not _counts(count):
            raise UnsafePickleError("The file has a storage without its type or size.")
        untyped = kind.name == "UntypedStorage"
        if not untyped and kind.name not in _STORAGES:
            raise UnsafePickleError(f"The file has a storage of the type torch.{kind.name}, which Oar does not have.")
        self.dtype, self.format = ("", "|u1") if untyped else _STORAGES[kind.name]
        self.count, self.content, self.offset = count, None, 0

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickleError("The file changes a storage, which is not admitted.")

    @property
    def bytes(self) -> int:
        return self.count * np.dtype(self.format).itemsize


def _counts(*values: Any) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 62 for value in values)


class _View:
    """A tensor: part of a storage."""

    __slots__ = ("dtype", "format", "offset", "shape", "storage", "strides")

    def __init__(self, storage: Any, offset: Any, shape: Any, strides: Any, dtype: Any = None) -> None:
        fits = isinstance(storage, _Storage) and isinstance(shape, tuple) and isinstance(strides, tuple)
        if not fits or len(shape) != len(strides) or len(shape) > 32 or not _counts(offset, *shape, *strides):
            raise UnsafePickleError("The file has a tensor whose parts are not those of a tensor.")
        self.storage, self.offset, self.shape, self.strides = storage, offset, shape, strides
        self.dtype, self.format = storage.dtype, storage.format
        if dtype is not None:
            name = dtype.name if isinstance(dtype, _Named) else ""
            if name not in _DTYPES:
                raise UnsafePickleError("The file has a tensor of a dtype that Oar does not have.")
            self.dtype, self.format = _SAME_DTYPES.get(name, name), _DTYPES[name]
        elif not self.dtype:
            raise UnsafePickleError("The file has a tensor without its dtype.")
        room = storage.bytes // np.dtype(self.format).itemsize
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
        if 0 not in shape and (last >= room or math.prod(shape) > max(room, _MOST_REPEATED)):
            raise UnsafePickleError(f"The file has a tensor of shape {shape} that is larger than its storage of {room} elements.")

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickleError("The file changes a tensor, which is not admitted.")

    def key(self) -> tuple[Any, ...]:
        return id(self.storage), self.offset, self.shape, self.strides, self.dtype

    def array(self) -> np.ndarray:
        if 0 in self.shape:
            return np.zeros(self.shape, self.format)
        assert self.storage.content is not None
        flat = np.frombuffer(self.storage.content, dtype=self.format, offset=self.storage.offset)[self.offset:]
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, self.shape, steps, writeable=False)).reshape(self.shape)


def _parameter(data: Any, *others: Any) -> _View:
    if not isinstance(data, _View):
        raise UnsafePickleError("The file has a parameter without its tensor.")
    return data


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *others: Any) -> _View:
    return _View(storage, offset, shape, strides)


def _tensor_of_dtype(storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *others: Any) -> _View:
    return _View(storage, offset, shape, strides, dtype)


def _size(sizes: Any = ()) -> tuple[int, ...]:
    if not isinstance(sizes, (tuple, list)):
        raise UnsafePickleError("The file has a torch.Size of something else.")
    return tuple(sizes)


def _device(*names: Any) -> str:
    return ":".join(str(name) for name in names if isinstance(name, (str, int)))[:40]


class _TorchNames(_pickle.Extension):
    """The names of PyTorch that tensors need, and its persistent ids."""

    def __init__(self, storage: Callable[[Any, Any, Any, Any], _Storage]) -> None:
        self._storage = storage

    def find(self, module: str, name: str) -> Any:
        if (module, name) in _FUNCTIONS:
            return _FUNCTIONS[(module, name)]
        named = module in ("torch", "torch.cuda") and (name in _STORAGES or name in _DTYPES)
        if named or (module in ("torch", "torch.storage") and name in ("UntypedStorage", "_UntypedStorage")):
            return _Named(name.removeprefix("_"))
        if module.startswith(("torch.", "torchvision.", "__torch__")) or module in ("torch", "__main__"):
            raise UnsafePickleError(
                f"The file holds an object of {module}.{name}, not only tensors, and loading never runs code. "
                "Save the module's state_dict() in PyTorch, and load that."
            )
        return None

    def outside(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise UnsafePickleError("The file refers to something other than a storage outside of its pickle.")
        return self._storage(pid[1], pid[2], pid[4], pid[5] if len(pid) > 5 else None)


_FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor_v2"): function_of_pickles(_tensor),
    ("torch._utils", "_rebuild_tensor"): function_of_pickles(_tensor),
    ("torch._utils", "_rebuild_tensor_v3"): function_of_pickles(_tensor_of_dtype),
    ("torch._utils", "_rebuild_parameter"): function_of_pickles(_parameter),
    ("torch._utils", "_rebuild_parameter_with_state"): function_of_pickles(_parameter),
    ("torch", "Size"): function_of_pickles(_size),
    ("torch", "device"): function_of_pickles(_device),
}


class _Storages:
    """The storages of a file by their keys."""

    def __init__(self) -> None:
        self.all: dict[str, _Storage] = {}

    def __call__(self, kind: Any, key: Any, count: Any, view: Any) -> _Storage:
        if not isinstance(key, str):
            raise UnsafePickleError("The file has a storage without a name.")
        if view is not None:
            raise UnsafePickleError("The file has a storage that is part of another one, as very old versions wrote.")
        if key not in self.all:
            self.all[key] = _Storage(kind, count)
        elif self.all[key].count != count:
            raise UnsafePickleError(f"The file gives the storage {key[:40]!r} two sizes.")
        return self.all[key]


def _damaged(file: BinaryIO, what: str) -> UnsafePickleError:
    return UnsafePickleError(f"{name_of(file)} is a file of PyTorch that is damaged or cut off: {what}. Copy or download it again.")


def _from_zip(file: BinaryIO) -> Any:
    """Storages of a zip archive are not compressed: nothing in it can be larger than the archive."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise _damaged(file, str(error)) from error
    entries = {entry.filename: entry for entry in archive.infolist()}
    pickles = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
    root = pickles[0].split("/")[0] if len(pickles) == 1 else ""
    if not root:
        raise UnsafePickleError(f"{name_of(file)} is a zip archive, but none of torch.save: it has no data.pkl.")
    if f"{root}/constants.pkl" in entries:
        raise UnsafePickleError(f"{name_of(file)} holds a TorchScript module, which is code. Save its state_dict() in PyTorch, and load that.")
    whole = file.seek(0, os.SEEK_END)
    if sum(entry.file_size for entry in entries.values()) > whole or any(entry.compress_type for entry in entries.values()):
        raise _damaged(file, "its parts are compressed or larger than the file")

    def content(name: str) -> bytes:
        if name not in entries:
            raise _damaged(file, f"{name!r} is missing")
        try:
            return archive.read(entries[name])
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
            raise _damaged(file, str(error)) from error

    if f"{root}/byteorder" in entries and content(f"{root}/byteorder") != b"little":
        raise UnsafePickleError(f"{name_of(file)} was written on a machine with another byte order.")
    storages = _Storages()
    value = _pickle.restricted_load(io.BytesIO(content(f"{root}/data.pkl")), _TorchNames(storages))
    for key, storage in storages.all.items():
        storage.content = content(f"{root}/data/{key}")
        if len(storage.content) < storage.bytes:
            raise _damaged(file, f"the storage {key[:40]!r} has {len(storage.content)} bytes instead of {storage.bytes}")
    return value


def _from_pickles(file: BinaryIO) -> Any:
    """The number of the format, its version, facts of the machine, the object, the keys of its storages, and their contents."""
    storages = _Storages()
    if _pickle.restricted_load(file) != _MAGIC or _pickle.restricted_load(file) != 1001:
        raise UnsafePickleError(f"{name_of(file)} is a file of PyTorch of an unknown version.")
    facts = _pickle.restricted_load(file)
    if not isinstance(facts, dict) or facts.get("little_endian") is not True:
        raise UnsafePickleError(f"{name_of(file)} was written on a machine with another byte order.")
    value = _pickle.restricted_load(file, _TorchNames(storages))
    keys = _pickle.restricted_load(file)
    if not isinstance(keys, list) or set(keys) != set(storages.all):
        raise _damaged(file, "the list of storages does not fit the tensors")
    rest = memoryview(file.read())
    at = 0
    for key in keys:
        storage = storages.all[key]
        if at + 8 > len(rest) or struct.unpack_from("<q", rest, at)[0] != storage.count or at + 8 + storage.bytes > len(rest):
            raise _damaged(file, f"the storage {key[:40]!r} is not whole")
        storage.content, storage.offset = rest[at + 8:at + 8 + storage.bytes], 0
        at += 8 + storage.bytes
    return value


def read_torch(file: BinaryIO, tensor_of: Callable[[np.ndarray, str], Any], as_numpy: bool) -> Any:
    """The object of a file of ``torch.save``, with its tensors. Tensors that are the same part of a storage are one tensor."""
    begin = file.tell()
    start = file.read(4)
    file.seek(begin)
    value = _from_zip(file) if start == _ZIP else _from_pickles(file)
    made: dict[tuple[Any, ...], Any] = {}

    def tensor(view: _View) -> Any:
        key = view.key()
        if key not in made:
            made[key] = view.array() if as_numpy else tensor_of(view.array(), view.dtype)
        return made[key]

    return _with_tensors(value, tensor)


def _with_tensors(value: Any, tensor: Callable[[_View], Any]) -> Any:
    if isinstance(value, _View):
        return tensor(value)
    if isinstance(value, _Named):
        return value.name
    if isinstance(value, _Storage):
        raise UnsafePickleError("The file holds a storage alone, which is not admitted. Save tensors.")
    if isinstance(value, dict):
        kind = OrderedDict if isinstance(value, OrderedDict) else dict
        return kind((key, _with_tensors(item, tensor)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(item, tensor) for item in value)
    return value
