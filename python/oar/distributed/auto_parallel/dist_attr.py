"""How one tensor is laid out over a grid of processes."""

from __future__ import annotations

from typing import Any

from oar.distributed.auto_parallel.process_mesh import ProcessMesh
from oar.distributed.placement import Partial, Placement, Replicate, Shard

__all__ = ["DistAttr"]


class DistAttr:
    """How a tensor is laid out over a grid of processes: for each axis of the tensor, the axis of the grid that cuts it.

    Args:
        mesh: the grid.
        sharding_specs: for each axis of the tensor, the name of an axis of the grid, or None.

    Examples:
        >>> import oar
        >>> mesh = oar.distributed.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
        >>> attr = oar.distributed.DistAttr(mesh, ["y", None])
        >>> attr.dims_mapping, attr.placements
        ([1, -1], [Replicate(), Shard(dim=0)])
    """

    def __init__(self, mesh: ProcessMesh, sharding_specs: list[str | None]) -> None:
        if not isinstance(mesh, ProcessMesh):
            raise ValueError(f"[DistAttr] The mesh must be an instance of paddle.distributed.ProcessMesh, not {type(mesh).__name__}.")
        if not isinstance(sharding_specs, list):
            raise ValueError(f"[DistAttr] The sharding_specs must be an instance of list, not {type(sharding_specs).__name__}.")
        for name in sharding_specs:
            if name is not None and not isinstance(name, str):
                raise AssertionError(f"[DistAttr] sharding_specs must have names of axes or None, not {name!r}.")
            if name is not None and name not in mesh.dim_names:
                raise ValueError(f"[DistAttr] the mesh has no axis {name!r}; it has {mesh.dim_names}.")
        self._sharding_specs = sharding_specs
        self.process_mesh = mesh
        self.placements = _placements(mesh, sharding_specs)

    @classmethod
    def of(cls, where: str, mesh: Any, placements: Any, rank: int) -> DistAttr:
        """The layout of a tensor of ``rank`` axes by one placement for each axis of the grid; those that are left out replicate.

        Args:
            where: who asks, for errors.
            mesh: the grid.
            placements: the placements.
            rank: the number of the tensor's axes.
        """
        if not isinstance(mesh, ProcessMesh):
            raise TypeError(f"[{where}] mesh must be a ProcessMesh, not {type(mesh).__name__}.")
        if not isinstance(placements, (list, tuple)) or not all(isinstance(placement, Placement) for placement in placements):
            raise TypeError(f"[{where}] placements must be a list of Shard, Replicate and Partial, not {placements!r}.")
        # Paddle fills up with Replicate, and drops what is more than the grid has axes.
        given = [*placements, *[Replicate()] * (mesh.ndim - len(placements))][: mesh.ndim]
        specs: list[str | None] = [None] * rank
        for name, placement in zip(mesh.dim_names, given):
            if isinstance(placement, Shard):
                if not -rank <= placement.get_dim() < rank:
                    raise ValueError(f"[{where}] {placement} cuts an axis that a tensor with {rank} axes does not have.")
                specs[placement.get_dim()] = name
        attr = cls(mesh, specs)
        attr.placements = given
        return attr

    @property
    def sharding_specs(self) -> list[str | None]:
        """For each axis of the tensor, the name of the axis of the grid that cuts it, or None."""
        return self._sharding_specs

    @property
    def dims_mapping(self) -> list[int]:
        """For each axis of the tensor, the number of the axis of the grid that cuts it, or -1."""
        names = self.process_mesh.dim_names
        return [-1 if name is None else names.index(name) for name in self._sharding_specs]

    @property
    def num_shard(self) -> int:
        """Into how many pieces the tensor is cut."""
        pieces = 1
        for size, placement in zip(self.process_mesh.shape, self.placements):
            pieces *= size if placement.is_shard() else 1
        return pieces

    def piece(self, process: int, shape: list[int]) -> list[slice] | None:
        """Which part of a tensor of this shape a process has; None if it is not part of the grid."""
        if not self.process_mesh.contains(process):
            return None
        where = self.process_mesh._coordinates(process)
        cuts = [slice(0, size) for size in shape]
        for axis, placement in self._in_order():
            dim, count, place = placement.get_dim(), self.process_mesh.shape[axis], where[axis]
            begin, end = cuts[dim].start, cuts[dim].stop
            step = -(-(end - begin) // count)
            cuts[dim] = slice(min(begin + place * step, end), min(begin + (place + 1) * step, end))
        return cuts

    def _in_order(self) -> list[tuple[int, Shard]]:
        cuts = [(axis, placement) for axis, placement in enumerate(self.placements) if isinstance(placement, Shard)]
        return sorted(cuts, key=lambda cut: cut[1].get_co_shard_order())

    def has_others_parts(self, process: int) -> bool:
        """Whether a process's part is 0 because another one has the value: of a sum that is not added up yet."""
        where = self.process_mesh._coordinates(process)
        return any(isinstance(placement, Partial) and place for placement, place in zip(self.placements, where))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DistAttr) and (self.process_mesh, self.placements) == (other.process_mesh, other.placements)

    def __hash__(self) -> int:
        return hash((self.process_mesh, tuple(self.placements)))

    def __repr__(self) -> str:
        return f"DistAttr(process_mesh: {self.process_mesh}, placements: {self.placements})"


def _placements(mesh: ProcessMesh, specs: list[str | None]) -> list[Placement]:
    placements: list[Placement] = []
    for name in mesh.dim_names:
        placements.append(Shard(specs.index(name)) if name in specs else Replicate())
    return placements
