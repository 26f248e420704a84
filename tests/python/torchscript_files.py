"""Writes small archives of TorchScript for tests: source, a module as a pickle, tensors, in a zip archive."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np

STORAGES = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char",
            "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat"}


class Object:
    """An object of a class of the archive's code, such as ``__torch__.Net``."""

    def __init__(self, name: str, **attributes: Any) -> None:
        self.name, self.attributes = name, attributes


class Raw(bytes):
    """Instructions of a pickle as they are."""


class View:
    """A part of a storage."""

    def __init__(self, storage: np.ndarray[Any, Any], shape: Any, strides: Any, offset: int = 0) -> None:
        self.storage, self.shape, self.strides, self.offset = storage, shape, strides, offset


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def name(full: str) -> bytes:
    module, last = full.rsplit(".", 1)
    return f"c{module}\n{last}\n".encode()


class Pickle:
    """A pickle as PyTorch writes them, and the storages that it refers to."""

    def __init__(self) -> None:
        self.storages: list[np.ndarray[Any, Any]] = []

    def whole(self, value: Any) -> bytes:
        return b"\x80\x02" + self.of(value) + b"."

    def of(self, value: Any) -> bytes:
        if isinstance(value, Raw):
            return value
        if value is None or isinstance(value, bool):
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        if isinstance(value, int):
            return b"J" + struct.pack("<i", value) if -(1 << 31) <= value < 1 << 31 else b"\x8a\x08" + struct.pack("<q", value)
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if isinstance(value, str):
            return text(value)
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self.of, value)) + b"t"
        if isinstance(value, list):
            return b"](" + b"".join(map(self.of, value)) + b"e"
        if isinstance(value, dict):
            return b"}(" + b"".join(self.of(k) + self.of(v) for k, v in value.items()) + b"u"
        if isinstance(value, Object):
            return name(value.name) + b")\x81" + self.of(value.attributes) + b"b"
        return self.tensor(value)

    def tensor(self, value: Any) -> bytes:
        view = value
        if not isinstance(value, View):
            steps = [int(np.prod([max(s, 1) for s in value.shape[i + 1:]])) for i in range(value.ndim)]
            view = View(value, value.shape, steps)
        place = next((i for i, known in enumerate(self.storages) if known is view.storage), len(self.storages))
        if place == len(self.storages):
            self.storages.append(view.storage)
        storage = name(f"torch.{STORAGES[view.storage.dtype.name]}Storage")
        reference = b"(" + text("storage") + storage + text(str(place)) + text("cpu") + self.of(int(view.storage.size)) + b"tQ"
        rest = self.of(view.offset) + self.of(tuple(map(int, view.shape))) + self.of(tuple(map(int, view.strides))) + b"\x89" + name("collections.OrderedDict") + b")R"
        return name("torch._utils._rebuild_tensor_v2") + b"(" + reference + rest + b"tR"


def archive(code: str, attributes: dict[str, Any] | None = None, constants: tuple[Any, ...] = (), more: dict[str, str] | None = None,
            edit: Any = None, packed: int = zipfile.ZIP_STORED) -> bytes:
    """A module of the class ``Net`` in ``code``. ``edit`` changes the files by name before they are packed."""
    module, numbers = Pickle(), Pickle()
    files: dict[str, Any] = {"data.pkl": module.whole(Object("__torch__.Net", training=False, **(attributes or {}))), "code/__torch__.py": code}
    files |= {f"code/__torch__/{path}": source for path, source in (more or {}).items()}
    files["constants.pkl"] = numbers.whole(constants)
    files |= {f"data/{i}": storage.tobytes() for i, storage in enumerate(module.storages)}
    files |= {f"constants/{i}": storage.tobytes() for i, storage in enumerate(numbers.storages)}
    files["version"] = "3\n"
    if edit:
        edit(files)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as zip_file:
        for path, content in files.items():
            zip_file.writestr(f"net/{path}", content)
    return out.getvalue()


def forward(body: str, parameters: str = "x: Tensor", result: str = "Tensor", fields: str = "") -> str:
    """The code of a module ``Net`` with one method."""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    declared = "".join(f"  {line}\n" for line in fields.split("\n") if line)
    return ("class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + declared +
            f"  def forward(self: __torch__.Net,\n    {parameters}) -> {result}:\n" + lines)
