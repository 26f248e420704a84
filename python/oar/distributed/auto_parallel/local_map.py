"""Functions that work on the pieces of each process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oar._C import Tensor
from oar.distributed.auto_parallel.api import dtensor_from_local, dtensor_to_local, reshard
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.utils.layers_utils import flatten, pack_sequence_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oar.distributed.auto_parallel.process_mesh import ProcessMesh
    from oar.distributed.placement import Placement

__all__ = ["local_map"]


def local_map(
    func: Callable[..., Any], out_placements: Sequence[Sequence[Placement] | None],
    in_placements: Sequence[Sequence[Placement] | None] | None = None, process_mesh: ProcessMesh | None = None,
    reshard_inputs: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function of tensors that are laid out over processes, from a function of the pieces in one process.

    Args:
        func: gets the pieces as plain tensors, and returns pieces.
        out_placements: for each tensor that ``func`` returns, its placements; None leaves a tensor plain.
        in_placements: for each argument of ``func``, the placements it must have, or None for a plain one; by default any.
        process_mesh: the grid; by default that of the arguments.
        reshard_inputs: whether arguments with other placements are moved; else they are an error.

    Returns:
        a function. Gradients flow through it.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> mesh = dist.ProcessMesh([0], dim_names=["x"])
        >>> total = dist.local_map(lambda x: x.sum(), out_placements=[[dist.Partial()]], in_placements=[[dist.Shard(0)]])
        >>> total(dist.shard_tensor(oar.ones([4, 2]), mesh, [dist.Shard(0)])).item()
        8.0
    """

    def on_pieces(*args: Any, **kwargs: Any) -> Any:
        flat = flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(f"[local_map] in_placements has {len(in_placements)} entries, but there are {len(flat)} arguments.")
        wanted = in_placements if in_placements is not None else [None] * len(flat)
        mesh, pieces = process_mesh, []
        for number, (given, placements) in enumerate(zip(flat, wanted)):
            if isinstance(given, Tensor) and given.is_dist():
                mesh = mesh if mesh is not None else given.process_mesh
                pieces.append(_piece(number, given, mesh, placements, in_placements is not None, reshard_inputs))
            elif placements is not None:
                raise ValueError(f"[local_map] argument {number} has to have the placements {placements}, but is "
                                 f"{'a plain tensor' if isinstance(given, Tensor) else type(given).__name__}. hint: shard_tensor lays it out.")
            else:
                pieces.append(given)
        made = func(*pack_sequence_as(args, pieces), **kwargs)
        return _joined(made, out_placements, mesh)

    return on_pieces


def _piece(number: int, given: Tensor, mesh: ProcessMesh, placements: Any, checks: bool, moves: bool) -> Tensor:
    if checks and placements is None:
        raise ValueError(f"[local_map] argument {number} has to be plain, but has the placements {given.placements}.")
    if placements is None:
        return dtensor_to_local(given, mesh, given.placements)
    attr = DistAttr.of("local_map", mesh, placements, given.ndim)
    if (given.process_mesh, given.placements) != (attr.process_mesh, attr.placements):
        if not moves:
            raise ValueError(f"[local_map] argument {number} has the placements {given.placements}, not {attr.placements}. "
                             "hint: reshard_inputs=True moves it.")
        given = reshard(given, mesh, attr.placements)
    return dtensor_to_local(given, mesh, attr.placements)


def _joined(made: Any, out_placements: Any, mesh: ProcessMesh | None) -> Any:
    flat = flatten(made)
    if len(flat) != len(out_placements):
        raise AssertionError(f"[local_map] out_placements has {len(out_placements)} entries, but the function returned {len(flat)} values.")
    whole = []
    for value, placements in zip(flat, out_placements):
        if placements is not None and mesh is None:
            raise ValueError("[local_map] no argument is laid out over processes. hint: pass process_mesh.")
        whole.append(value if placements is None or mesh is None else dtensor_from_local(value, mesh, placements))
    return pack_sequence_as(made, whole)
