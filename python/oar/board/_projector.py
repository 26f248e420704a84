"""Embeddings in the files of TensorBoard's projector: ``projector_config.pbtxt`` names tables of vectors and of labels."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import Any

from oar._lazy import np

__all__ = ["CONFIG", "read_config", "read_embedding", "write_embedding"]

CONFIG = "projector_config.pbtxt"
_LARGEST_FILE = 1 << 29


def _replace(path: Path, content: str) -> None:
    """Writes a file that is whole or not there."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    fresh.write_text(content, encoding="utf-8")
    os.replace(fresh, path)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _cell(value: Any) -> str:
    return re.sub(r"[\t\r\n]+", " ", str(value))


def write_embedding(folder: Path, tag: str, vectors: Any, labels: list[list[str]], header: list[str]) -> None:
    """Adds an embedding to those of a folder, or replaces the one of the same tag.

    Args:
        folder: the folder of the run.
        tag: its name.
        vectors: an array of two axes.
        labels: the labels of each vector; may be empty.
        header: names of the labels, if there are several.
    """
    safe = re.sub(r"[^\w-]+", "_", tag)
    place = f"embeddings/{safe if safe == tag else f'{safe}_{zlib.crc32(tag.encode()):08x}'}"
    (folder / place).mkdir(parents=True, exist_ok=True)
    entry = {"tensor_name": tag, "tensor_path": f"{place}/tensors.tsv"}
    _replace(folder / place / "tensors.tsv", "".join("\t".join(f"{x:.8g}" for x in row) + "\n" for row in vectors.tolist()))
    if labels:
        rows = [header, *labels] if len(labels[0]) > 1 else labels
        _replace(folder / place / "metadata.tsv", "".join("\t".join(map(_cell, row)) + "\n" for row in rows))
        entry["metadata_path"] = f"{place}/metadata.tsv"
    entries = [e for e in (read_config(folder / CONFIG) if (folder / CONFIG).exists() else []) if e.get("tensor_name") != tag]
    blocks = ["embeddings {\n" + "".join(f"  {key}: {_quoted(value)}\n" for key, value in e.items()) + "}\n"
              for e in [*entries, entry]]
    _replace(folder / CONFIG, "".join(blocks))


def read_config(path: Path) -> list[dict[str, str]]:
    """The entries of a configuration. What it says about pictures is left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    token = re.compile(r'\s*(?:#[^\n]*\n|(?P<open>(?P<name>\w+)\s*:?\s*\{)|(?P<close>\})|(?P<key>\w+)\s*:\s*'
                       r'(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s}]+)))')
    entries: list[dict[str, str]] = []
    depth = at = 0
    while text[at:].strip():
        found = token.match(text, at)
        if found is None:
            raise ValueError(f"{text[at : at + 20].strip()!r} is not expected there")
        at = found.end()
        if found["open"]:
            depth += 1
            if depth == 1 and found["name"] == "embeddings":
                entries.append({})
        elif found["close"]:
            depth -= 1
        elif found["key"] and depth == 1 and entries and found["text"] is not None:
            entries[-1][found["key"]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found["text"])
    return [entry for entry in entries if entry.get("tensor_path")]


def _inside(root: Path, folder: Path, name: str) -> Path:
    """A file that a configuration names; it must be in the folder of the logs."""
    path = (folder / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ValueError(f"{name!r} is outside the folder of the logs")
    if path.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"{name!r} has more than {_LARGEST_FILE >> 20} MiB")
    return path


def read_embedding(root: Path, folder: Path, entry: dict[str, str]) -> tuple[Any, list[list[str]], list[str]]:
    """The vectors, their labels and the names of the labels.

    Args:
        root: the folder of all logs.
        folder: the folder of the configuration.
        entry: an entry of the configuration.
    """
    with _inside(root, folder, entry["tensor_path"]).open(encoding="utf-8") as file:
        rows = [line.split("\t") for line in file if line.strip()]
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"{entry['tensor_path']!r} has rows of different lengths, or none")
    vectors = np.asarray(rows, "float32")
    labels: list[list[str]] = []
    header: list[str] = []
    if entry.get("metadata_path"):
        with _inside(root, folder, entry["metadata_path"]).open(encoding="utf-8", errors="replace") as file:
            labels = [line.rstrip("\n").split("\t") for line in file]
        if labels and len(labels[0]) > 1 and len(labels) == len(vectors) + 1:
            header = labels.pop(0)
    return vectors, labels, header
