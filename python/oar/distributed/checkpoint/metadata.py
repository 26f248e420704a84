"""The list of a checkpoint: which tensors it has, and which file has which piece. It is written last, so it makes the checkpoint
complete."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from typing import Any

from oar._C import dtype as dtype_of
from oar.framework._replace import replace_files

__all__ = ["ShardedCheckpointError", "data_file", "list_file", "numbers_in", "read_list", "write_list"]

_FORMAT = 1
_LIST = re.compile(r"(\d{1,18})\.metadata")
_DATA = re.compile(r"\d{1,18}_(\d{1,18})\.distcp")


class ShardedCheckpointError(RuntimeError):
    """A checkpoint that is missing, damaged, or of something else.

    Examples:
        >>> from oar.distributed.checkpoint import ShardedCheckpointError
        >>> issubclass(ShardedCheckpointError, RuntimeError)
        True
    """


def list_file(number: int) -> str:
    return f"{number}.metadata"


def data_file(rank: int, number: int) -> str:
    return f"{rank}_{number}.distcp"


def numbers_in(path: str) -> tuple[list[int], dict[int, list[str]]]:
    """The numbers of the complete checkpoints of a folder, oldest first, and the files with data by number."""
    complete: list[int] = []
    files: dict[int, list[str]] = {}
    for name in os.listdir(path) if os.path.isdir(path) else ():
        if match := _LIST.fullmatch(name):
            complete.append(int(match[1]))
        elif match := _DATA.fullmatch(name):
            files.setdefault(int(match[1]), []).append(name)
    return sorted(complete), files


def _sum_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_list(path: str, number: int, content: dict[str, Any]) -> None:
    """Makes the checkpoint ``number`` complete."""
    content = {"format": _FORMAT, "number": number, **content}
    text = json.dumps({**content, "sha256": _sum_of(content)}).encode()
    replace_files({os.path.join(path, list_file(number)): lambda file: file.write(text)})


def _check_content(content: dict[str, Any]) -> None:
    """A ValueError, KeyError or TypeError if the list is not one that ``write_list`` writes."""
    if not isinstance(content["number"], int) or not isinstance(content["values"], dict):
        raise ValueError("it has no number or no values")
    for name, tensor in content["tensors"].items():
        whole = tensor["shape"]
        for piece in tensor["pieces"]:
            offset, shape, run = piece["offset"], piece["shape"], piece["run"]
            sizes = [*whole, *offset, *shape, piece["crc32"], *(run or ())]
            if any(not isinstance(size, int) or size < 0 for size in sizes) or not isinstance(piece["name"], str):
                raise ValueError(f"a piece of {name} has other entries than numbers")
            fits = len(offset) == len(shape) == len(whole) and all(o + s <= w for o, s, w in zip(offset, shape, whole))
            if not fits or (run is not None and (len(run) != 2 or not run[0] <= run[1] <= math.prod(shape))):
                raise ValueError(f"a piece of {name} is not within the tensor")
        dtype_of(tensor["dtype"])


def read_list(function: str, path: str, number: int | None) -> dict[str, Any]:
    """The list of a checkpoint of a folder: the newest complete one if ``number`` is None."""
    complete, _ = numbers_in(path)
    if not complete or (number is not None and number not in complete):
        there = f"; there are {', '.join(map(str, complete))}" if complete else ""
        raise ShardedCheckpointError(f"[{function}] '{path}' has no complete checkpoint{'' if number is None else f' {number}'}{there}.")
    file = os.path.join(path, list_file(complete[-1] if number is None else number))
    try:
        with open(file, encoding="utf-8") as opened:
            content = json.load(opened)
        wanted = content.pop("sha256")
        if _sum_of(content) != wanted or content["format"] != _FORMAT:
            raise ValueError("its checksum or format is another one")
        _check_content(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ShardedCheckpointError(f"[{function}] '{file}' is damaged: {error}. hint: pass unique_id to load an earlier checkpoint "
                                     "of the folder.") from error
    return content
