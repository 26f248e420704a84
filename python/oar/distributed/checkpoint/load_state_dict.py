"""Loading: each process reads the parts of pieces that it needs, whatever processes wrote them."""

from __future__ import annotations

import math
import os
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.distributed.checkpoint._flat import flattened, from_json
from oar.distributed.checkpoint._boxes import copy_common
from oar.distributed.checkpoint.metadata import ShardedCheckpointError, read_list
from oar.distributed.checkpoint.save_state_dict import checksum
from oar.distributed.checkpoint.sharded_weight import Place, ShardedWeight, overlap, parts_of, size_of
from oar.distributed.communication import all_gather_object
from oar.distributed.communication.group import Group, _get_global_group
from oar.framework import safetensors
from oar.framework.io import array_to_tensor, tensor_to_array
from oar.framework.parameter import dtype_name

__all__ = ["load_merged_state_dict", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any], path: str, process_group: Group | None = None, coordinator_rank: int = 0, offload: bool = False,
    *, unique_id: int | None = None,
) -> None:  # fmt: skip
    """Fills a state dict from a checkpoint of ``save_state_dict``: its tensors are written in place, other values replaced. All
    processes of the group call it. They may be more or fewer than those that saved, and divide the tensors in other ways.

    Args:
        state_dict: tensors, ``ShardedWeight`` pieces, values, and nested dicts of them, under the names that were saved. A checkpoint
            may have more.
        path: the folder.
        process_group: the processes; None means all.
        coordinator_rank: accepted for compatibility: each process reads for itself.
        offload: accepted for compatibility: files are mapped into memory, and only what is needed is read.
        unique_id: the number of the checkpoint; None takes the newest complete one.

    Examples:
        >>> import tempfile
        >>> import oar
        >>> from oar.distributed import ShardedWeight
        >>> folder = tempfile.mkdtemp()
        >>> oar.distributed.save_state_dict({"weight": oar.arange(6.0).reshape([3, 2]), "step": 7}, folder)
        >>> state = {"weight": ShardedWeight("weight", oar.zeros([2, 2]), (2, 2), (3, 2), (1, 0)), "step": 0}
        >>> oar.distributed.load_state_dict(state, folder)
        >>> state["weight"].local_tensor.tolist(), state["step"]
        ([[2.0, 3.0], [4.0, 5.0]], 7)
    """
    function = "load_state_dict"
    group = _get_global_group() if process_group is None else process_group
    if group.rank < 0:
        return
    reader = _Reader(function, path, unique_id)
    if group.nranks > 1:
        numbers: list[int] = []
        all_gather_object(numbers, reader.content["number"], group)
        if len(set(numbers)) > 1:
            raise ShardedCheckpointError(f"[{function}] the processes found different checkpoints in '{path}': {numbers}. hint: all need to "
                                         "see the same folder, and nobody may save meanwhile; or pass unique_id.")
    pieces, values = flattened(function, state_dict)
    missing = [name for name in pieces if name not in reader.tensors] + [name for name in values if name not in reader.values]
    if missing:
        there = [*reader.tensors, *reader.values]
        raise ShardedCheckpointError(f"[{function}] the checkpoint in '{path}' has no {_few(missing)}; it has {_few(there)}. Nothing was "
                                     "loaded.")
    for name, piece in pieces.items():
        reader.check(name, piece)
    for name, piece in pieces.items():
        with oar.no_grad():
            piece.local_tensor.copy_(reader.read(name, piece.place()))
    for name, (_, put) in values.items():
        put(from_json(reader.values[name]))


def load_merged_state_dict(
    path: str, prefix: str | None = None, unique_id: int | None = None, offload: bool = False, aoa_config: Any = None,
    safetensors: bool = False,
) -> dict[str, Tensor]:  # fmt: skip
    """The whole tensors of a checkpoint of ``save_state_dict``, in one process.

    Args:
        path: the folder.
        prefix: only tensors whose names begin so; None means all.
        unique_id: the number of the checkpoint; None takes the newest complete one.
        offload: accepted for compatibility.
        aoa_config: rules that rename and combine tensors: not available, so None.
        safetensors: accepted for compatibility.

    Returns:
        a dict of tensors. ``oar.save`` writes it as one file: ``.pdparams`` or ``.safetensors``.

    Examples:
        >>> import tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> oar.distributed.save_state_dict({"model": oar.nn.Linear(2, 3).state_dict()}, folder)
        >>> merged = oar.distributed.load_merged_state_dict(folder, prefix="model.")
        >>> sorted(merged)
        ['model.bias', 'model.weight']
        >>> oar.save(merged, folder + '/model.safetensors')
    """
    if aoa_config is not None:
        raise NotImplementedError("[load_merged_state_dict] aoa_config is not available yet. hint: rename and combine the tensors of the "
                                  "dict that is returned.")
    reader = _Reader("load_merged_state_dict", path, unique_id)
    return {name: reader.read(name, ((0,) * len(tensor["shape"]), tuple(tensor["shape"]), None))
            for name, tensor in reader.tensors.items() if prefix is None or name.startswith(prefix)}


class _Reader:
    """The pieces of a checkpoint. Each file is mapped once, each piece checked once."""

    def __init__(self, function: str, path: str, number: int | None) -> None:
        self._function, self._path = function, path
        self.content = read_list(function, path, number)
        self.tensors: dict[str, Any] = self.content["tensors"]
        self.values: dict[str, Any] = self.content["values"]
        self._files: dict[str, dict[str, tuple[np.ndarray, str]]] = {}
        self._checked: set[tuple[str, str]] = set()

    def check(self, name: str, piece: ShardedWeight) -> None:
        """An error if the checkpoint has another tensor under the name."""
        dtype, saved = dtype_name(piece.local_tensor.dtype), self.tensors[name]
        if saved["dtype"] != dtype or saved["shape"] != list(piece.global_shape):
            raise ShardedCheckpointError(f"[{self._function}] {name} is {saved['dtype']}{saved['shape']} in the checkpoint in '{self._path}', "
                                         f"and {dtype}{list(piece.global_shape)} here. Nothing was loaded.")

    def read(self, name: str, place: Place) -> Tensor:
        """Elements of a tensor."""
        saved = self.tensors[name]
        sizes = list(place[1]) if place[2] is None else [size_of(place)]
        wanted: np.ndarray | None = None
        count = 0
        for piece in saved["pieces"]:
            source = (piece["offset"], piece["shape"], piece["run"])
            if wanted is None:
                wanted = np.zeros(sizes, self._array(name, piece).dtype)
            if not overlap(place, source):
                continue
            count += copy_common(parts_of(place, wanted), parts_of(source, self._array(name, piece)))
        if wanted is None:
            wanted = tensor_to_array(oar.zeros(sizes, saved["dtype"]))
        if count < math.prod(sizes):
            raise ShardedCheckpointError(f"[{self._function}] the checkpoint in '{self._path}' has {count} of {math.prod(sizes)} elements of "
                                         f"{name}.")
        return array_to_tensor(wanted, saved["dtype"])

    def _array(self, name: str, piece: dict[str, Any]) -> np.ndarray:
        file, key = os.path.join(self._path, os.path.basename(piece["file"])), piece["name"]
        if file not in self._files:
            try:
                self._files[file] = safetensors.load_arrays(file)[0]
            except OSError as error:
                raise self._damaged(name, file, f"cannot be read: {error.strerror}") from None
            except safetensors.SafetensorsError as error:
                raise self._damaged(name, file, f"is damaged: {error}") from None
        if key not in self._files[file]:
            raise self._damaged(name, file, f"has no {key}")
        array, _ = self._files[file][key]
        sizes = piece["shape"] if piece["run"] is None else [size_of((piece["offset"], piece["shape"], piece["run"]))]
        if list(array.shape) != sizes:
            raise self._damaged(name, file, f"has {key} with the shape {list(array.shape)} instead of {sizes}")
        if (file, key) not in self._checked:
            if checksum(np.ascontiguousarray(array)) != piece["crc32"]:
                raise self._damaged(name, file, f"is damaged: {key} has another checksum")
            self._checked.add((file, key))
        return array

    def _damaged(self, name: str, file: str, what: str) -> ShardedCheckpointError:
        return ShardedCheckpointError(f"[{self._function}] '{file}', which has a piece of {name}, {what}. hint: pass unique_id to load an "
                                      "earlier checkpoint of the folder.")


def _few(names: list[str]) -> str:
    return (", ".join(names[:5]) or "nothing") + (f" and {len(names) - 5} more" if len(names) > 5 else "")
