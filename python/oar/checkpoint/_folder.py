"""One checkpoint: a folder of files with a list of them, which has their checksums.

The folder is written under a hidden name, each file is flushed to the disk, and the folder is moved to its place in one step. A process
that is killed leaves a hidden folder at most, which the next one removes: the writer holds a lock on it while it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.framework._pickle import place_of_damage
from oar.framework._replace import sync_directory
from oar.framework.io import tensor_to_array, writer_of

__all__ = ["LIST", "CheckpointError", "read_files", "read_list", "remove_folder", "remove_leftovers", "steps_in", "write_folder"]

LIST = "checkpoint.json"
_FORMAT = 1
_NAME = re.compile(r"step_(\d+)")
_HIDDEN = (".new-", ".old-")
_CHUNK = 1 << 20


class CheckpointError(RuntimeError):
    """A checkpoint that is missing, damaged, or of something else.

    Examples:
        >>> from oar.checkpoint import CheckpointError
        >>> issubclass(CheckpointError, RuntimeError)
        True
    """


# writing -----------------------------------------------------------------------------------------


class _Summed:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._count = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B") if not isinstance(data, bytes) else data
        self._sum.update(view)
        self._count += len(view)
        return self._file.write(view)

    def described(self) -> dict[str, Any]:
        return {"bytes": self._count, "sha256": self._sum.hexdigest()}


def write_folder(root: str, step: int, serial: int, states: dict[str, Any]) -> None:
    """Writes a checkpoint, or nothing.

    Args:
        root: the folder of all checkpoints.
        step: its number.
        serial: how many checkpoints were written before it.
        states: what each file holds, by its name.
    """
    hidden = tempfile.mkdtemp(prefix=f"{_HIDDEN[0]}{step}-", dir=root)
    lock = os.open(hidden, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = {name: _write_file(os.path.join(hidden, name), state) for name, state in states.items()}
        content = {"format": _FORMAT, "step": step, "serial": serial, "oar": oar.__version__, "files": files}
        _write_list(os.path.join(hidden, LIST), content)
        os.chmod(hidden, 0o777 & ~_umask())
        sync_directory(hidden)
        _put(hidden, _path(root, step))
        sync_directory(root)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def _write_file(path: str, state: Any) -> dict[str, Any]:
    with open(path, "wb") as file:
        summed = _Summed(file)
        writer_of(state)(summed)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    return {**summed.described(), "tensors": dict(_tensor_sums(state))}


def _write_list(path: str, content: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**content, "sha256": _sum_of(content)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _sum_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _tensor_sums(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The checksum of each tensor and array in nested containers, by its path."""
    if isinstance(value, (Tensor, np.ndarray)):
        array = tensor_to_array(value) if isinstance(value, Tensor) else value
        yield path, zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, item in items:
        yield from _tensor_sums(item, f"{path}.{key}" if path else str(key))


def _put(hidden: str, path: str) -> None:
    """Moves a folder to its place. If there is one already, it steps aside first, and a killed process can be finished later."""
    if not os.path.lexists(path):
        os.rename(hidden, path)
        return
    aside = tempfile.mkdtemp(prefix=f"{_HIDDEN[1]}{os.path.basename(path)}-", dir=os.path.dirname(path))
    os.rename(path, aside)
    try:
        os.rename(hidden, path)
    except BaseException:
        os.rename(aside, path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _path(root: str, step: int) -> str:
    return os.path.join(root, f"step_{step:08d}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# the folder of all checkpoints -------------------------------------------------------------------


def steps_in(root: str) -> dict[int, int]:
    """The serial number of each checkpoint by its step, in the order in which they were written.

    One whose list is damaged comes last: it is not passed over in silence.
    """
    found = {}
    for name in os.listdir(root):
        match = _NAME.fullmatch(name)
        if match:
            step = int(match[1])
            try:
                found[step] = int(read_list(root, step)["serial"])
            except CheckpointError:
                found[step] = 1 << 62
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def remove_folder(root: str, step: int) -> None:
    """Removes a checkpoint; one that is half removed has a hidden name."""
    aside = tempfile.mkdtemp(prefix=f"{_HIDDEN[1]}gone-", dir=root)
    os.rename(_path(root, step), aside)
    shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(root: str) -> None:
    """Removes what killed processes left. A checkpoint that was about to be replaced comes back."""
    for name in os.listdir(root):
        path = os.path.join(root, name)
        if not name.startswith(_HIDDEN) or not os.path.isdir(path):
            continue
        step = re.match(re.escape(_HIDDEN[1]) + r"(step_\d+)-", name)
        if step is not None and not os.path.lexists(os.path.join(root, step[1])) and os.path.isfile(os.path.join(path, LIST)):
            with contextlib.suppress(OSError):
                os.rename(path, os.path.join(root, step[1]))
            continue
        with contextlib.suppress(OSError), _locked(path):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """An OSError if the process that writes the folder is alive."""
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


# reading -----------------------------------------------------------------------------------------


def read_list(root: str, step: int) -> dict[str, Any]:
    """The list of a checkpoint's files."""
    path = os.path.join(_path(root, step), LIST)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        wanted = content.pop("sha256")
        if _sum_of(content) != wanted or content["format"] != _FORMAT:
            raise ValueError("its checksum or format is another one")
    except FileNotFoundError:
        raise CheckpointError(f"[CheckpointManager] there is no checkpoint {step} in '{root}': '{path}' does not exist.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"[CheckpointManager] '{path}' is damaged: {error}. Restore another step.") from error
    return content


def read_files(root: str, step: int, names: list[str]) -> dict[str, Any]:
    """What the files of a checkpoint hold, after all of them have been checked."""
    listed = read_list(root, step)["files"]
    missing = [name for name in names if name not in listed]
    if missing:
        raise CheckpointError(f"[CheckpointManager] checkpoint {step} in '{root}' has no {', '.join(missing)}; it has "
                              f"{', '.join(listed)}. Give the manager the objects that were saved, under the same names.")
    for name in names:
        _check_file(os.path.join(_path(root, step), name), listed[name])
    return {name: oar.load(os.path.join(_path(root, step), name)) for name in names}


def _check_file(path: str, wanted: dict[str, Any]) -> None:
    found, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise CheckpointError(f"[CheckpointManager] '{path}' of a checkpoint cannot be read: {error.strerror}. Restore another step.") from None
    if size != wanted["bytes"] or found.hexdigest() != wanted["sha256"]:
        problem = f"has {size} bytes instead of {wanted['bytes']}" if size != wanted["bytes"] else "has another checksum"
        where = _damaged_entry(path, wanted["tensors"])
        raise CheckpointError(f"[CheckpointManager] '{path}' is damaged: it {problem}"
                              + (f", in {where!r}" if where else "") + ". Restore another step.")


def _damaged_entry(path: str, sums: dict[str, int]) -> str:
    """The tensor that is not what was written, if that can be told."""
    try:
        found = dict(_tensor_sums(oar.load(path)))
    except Exception:
        with open(path, "rb") as file:
            return place_of_damage(file)
    return next((name for name, wanted in sums.items() if found.get(name) != wanted), "")
