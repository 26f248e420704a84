"""Reads `.oar` files with nothing but the standard library and NumPy. docs/file-format.md describes the format.

    python read_oar.py model.oar            # lists what the file holds
    python read_oar.py model.oar --verify   # compares the weights with their checksums, too

    model = read("model.oar")
    model.weights["linear.weight"]          # an array that is mapped, not read; bfloat16 and float8 as unsigned integers
"""

from __future__ import annotations

import argparse
import json
import math
import os
import struct

import numpy as np

MAGIC, MAJOR, PAGE = b"\x89OAR\r\n\x1a\n", 1, 4096
PREAMBLE = struct.Struct("<8sHHIQQI24xI")
DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
          "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16", "F8_E4M3": "u1", "F8_E5M2": "u1"}
PACKED = ("I4", "U4", "F4")  # two elements to a byte, the first in its low half


def _table() -> list[int]:
    values = list(range(256))
    for _ in range(8):
        values = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in values]
    return values


TABLE = _table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


def check(holds: bool, path: str, problem: str) -> None:
    if not holds:
        raise ValueError(f"{path}: {problem}")


class Container:
    """One file, of a model or of a shard."""

    def __init__(self, path: str, kind: str) -> None:
        check(os.path.getsize(path) >= PREAMBLE.size, path, "not an .oar file")
        self.path, self.bytes = path, np.memmap(path, mode="r")
        preamble = self.bytes[: PREAMBLE.size].tobytes()
        magic, major, minor, features, header_size, file_size, self.header_sum, own_sum = PREAMBLE.unpack(preamble)
        check(magic == MAGIC, path, "not an .oar file")
        check(major == MAJOR and features == 0, path, f"version {major}.{minor} cannot be read")
        check(crc32c(preamble[:-4]) == own_sum, path, "the preamble is damaged")
        check(file_size == self.bytes.size and header_size <= file_size - PREAMBLE.size, path, f"should have {file_size} bytes")
        header = self.bytes[PREAMBLE.size : PREAMBLE.size + header_size].tobytes()
        check(crc32c(header) == self.header_sum, path, "the header is damaged")
        self.header = json.loads(header)
        check(self.header["format"] == kind, path, f"not an {kind}")
        self.data = self.bytes[-(-(PREAMBLE.size + header_size) // PAGE) * PAGE :]

    def piece(self, entry: dict, name: str, verify: bool) -> np.ndarray:
        begin, end = entry["data_offsets"]
        check(0 <= begin <= end <= self.data.size, self.path, f"{name} is outside the file")
        piece = self.data[begin:end]
        check(not verify or crc32c(piece.tobytes()) == entry["crc32c"], self.path, f"{name} is damaged")
        return piece

    def weights(self, verify: bool) -> dict[str, np.ndarray]:
        return {name: self.array(entry, name, verify) for name, entry in self.header["tensors"].items()}

    def array(self, entry: dict, name: str, verify: bool) -> np.ndarray:
        piece, shape, packed = self.piece(entry, name, verify), entry["shape"], entry["dtype"] in PACKED
        flat = np.stack([piece & 15, piece >> 4], -1).ravel()[: math.prod(shape)] if packed else piece.view(DTYPES[entry["dtype"]])
        check(flat.size == math.prod(shape), self.path, f"{name} does not have the size of its place")
        return flat.reshape(shape)


class Model:
    def __init__(self, path: str, verify: bool) -> None:
        self._file = Container(path, "oar model")
        self.header = self._file.header
        self.weights = self._file.weights(verify)
        for shard in self.header.get("shards", []):
            check(os.path.basename(shard["file"]) == shard["file"] not in ("", ".", ".."), path, "a shard is in another folder")
            part = Container(os.path.join(os.path.dirname(path), shard["file"]), "oar shard")
            check(part.header_sum == shard["header_crc32c"], part.path, f"a shard of another model than {path}")
            self.weights |= part.weights(verify)

    def program(self, method: str, kind: str = "program") -> str:
        """A line of JSON and the text of a method's program; kind 'training' is the one to train further."""
        return self._file.piece(self.header["methods"][method][kind], method, verify=True).tobytes().decode()


def read(path: str, verify: bool = False) -> Model:
    return Model(path, verify)


def main() -> None:
    parser = argparse.ArgumentParser(description="Lists what an .oar file holds.")
    parser.add_argument("file")
    parser.add_argument("--verify", action="store_true", help="compare the weights with their checksums")
    arguments = parser.parse_args()
    model = read(arguments.file, arguments.verify)
    for key, value in model.header.get("metadata", {}).items():
        print(f"{key}: {value}")
    for name, method in model.header["methods"].items():
        print(f"{name}: {method.get('doc', '')}")
        for kind in ("inputs", "outputs"):
            for port in method[kind]:
                print(f"  {kind[:-1]} {port['name']}: {port['dtype']}[{', '.join(map(str, port['shape']))}] {port.get('doc', '')}")
    for name, array in model.weights.items():
        print(f"{name}: {array.dtype}{list(array.shape)}")


if __name__ == "__main__":
    main()
