"""Between the grids and placements of Python and those of the library: tensors whose pieces are in several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oar import _C
from oar.distributed.communication.group import connect
from oar.distributed.environment import ParallelEnv, get_rank, get_world_size, job
from oar.distributed.placement import Partial, Placement, ReduceType, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distributed.auto_parallel.process_mesh import ProcessMesh

__all__ = ["from_pieces", "is_real", "lay_out", "layout_of", "own_piece", "whole"]

_WORDS = {ReduceType.kRedSum: "sum", ReduceType.kRedMax: "max", ReduceType.kRedMin: "min", ReduceType.kRedProd: "prod",
          ReduceType.kRedAvg: "mean", ReduceType.kRedAny: "max", ReduceType.kRedAll: "min"}  # fmt: skip
_TYPES = {"sum": ReduceType.kRedSum, "max": ReduceType.kRedMax, "min": ReduceType.kRedMin, "prod": ReduceType.kRedProd,
          "mean": ReduceType.kRedAvg}  # fmt: skip

_FIRST_LINE = 1 << 20  # the numbers of groups that new_group does not give
_lines: dict[tuple[int, ...], int] = {}
_numbers: dict[tuple[Any, ...], int] = {}
_meshes: dict[int, ProcessMesh] = {}
_connected_for: list[Any] = [None]


def is_real() -> bool:
    """Whether tensors are cut: there are several processes. One alone holds the whole value of each tensor."""
    return get_world_size() > 1


def _line(ranks: tuple[int, ...]) -> int:
    """The group of processes along an axis of a grid. Its members alone connect, so its name tells who they are."""
    if ranks == tuple(range(get_world_size())):
        return 0
    if len(ranks) > 1 and ranks not in _lines:
        number = _FIRST_LINE + len(_lines)
        connect(number, job.backend.lower(), list(ranks), "mesh:" + ",".join(map(str, ranks)), ParallelEnv().pg_timeout)
        _lines[ranks] = number
    return _lines.get(ranks, 0)


def _number(where: str, mesh: ProcessMesh) -> int:
    if not job.started:
        raise RuntimeError(f"[{where}] the {get_world_size()} processes are not connected. hint: call init_parallel_env() first.")
    if _connected_for[0] is not job.store:  # the processes have met anew
        _lines.clear()
        _numbers.clear()
        _connected_for[0] = job.store
    key = (tuple(mesh.shape), tuple(mesh.process_ids), tuple(mesh.dim_names))
    if key not in _numbers:
        beyond = [process for process in mesh.process_ids if process >= get_world_size()]
        if beyond:
            raise ValueError(f"[{where}] {mesh} has the processes {beyond}, but there are {get_world_size()}.")
        if not mesh.contains(get_rank()):
            raise NotImplementedError(f"[{where}] this process, {get_rank()}, is not part of the mesh {mesh}. "
                                      "hint: only the processes of a mesh make and use tensors on it.")
        place = mesh._coordinates(get_rank())
        groups = []
        for axis in range(mesh.ndim):
            line: list[Any] = [*place]
            line[axis] = slice(None)
            groups.append(_line(tuple(int(process) for process in mesh.mesh[tuple(line)])))
        name = "mesh_of_" + "_".join(map(str, mesh.process_ids))
        _numbers[key] = _C.mesh_make(name, [str(axis) for axis in mesh.dim_names], mesh.shape, place, groups)
        _meshes[_numbers[key]] = mesh
    return _numbers[key]


def _word(where: str, placement: Placement, rank: int) -> str:
    if isinstance(placement, Shard):
        if placement.get_split_factor() != 1 or placement.get_co_shard_order():
            raise NotImplementedError(f"[{where}] Shard with split_factor or co_shard_order is not supported over several processes.")
        return f"shard {placement.get_dim() % rank}"
    return f"partial {_WORDS[placement.reduce_type()]}" if isinstance(placement, Partial) else "replicate"


def _text(where: str, placements: Sequence[Placement], rank: int) -> str:
    return ", ".join(_word(where, placement, rank) for placement in placements)


def _placement(text: str) -> Placement:
    kind, _, of = text.partition(" ")
    return Shard(int(of)) if kind == "shard" else Partial(_TYPES[of]) if kind == "partial" else Replicate()


def lay_out(where: str, tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The tensor in these placements; gradients flow through it."""
    return _C.lay_out(tensor, _number(where, mesh), _text(where, placements, tensor.ndim))


def from_pieces(where: str, piece: Tensor, mesh: ProcessMesh, placements: Sequence[Placement], shape: list[int]) -> Tensor:
    """The tensor of a shape whose piece in this process is ``piece``; gradients flow through it."""
    return _C.from_pieces(piece, _number(where, mesh), _text(where, placements, len(shape)), shape)


def own_piece(tensor: Tensor) -> Tensor:
    """The piece of this process; gradients flow through it."""
    return _C.own_piece(tensor)


def whole(tensor: Tensor) -> Tensor:
    """All of a sharded tensor, as a plain one; gradients flow through it."""
    return _C.lay_out(tensor, 0, "")


def layout_of(tensor: Tensor) -> tuple[ProcessMesh, list[Placement], Tensor] | None:
    """The grid, the placements and the piece of a sharded tensor."""
    parts = _C.sharded_parts(tensor)
    if parts is None:
        return None
    number, text, piece = parts
    return _meshes[number], [_placement(item) for item in text.split(", ")], piece
