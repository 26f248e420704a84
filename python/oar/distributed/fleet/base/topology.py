"""The grid of processes: one axis for each way to divide the work."""

from __future__ import annotations

import collections
import itertools
import math
from typing import Any

from oar.distributed.environment import get_rank, get_world_size
from oar.distributed.communication.group import Group, new_group

__all__ = ["CommunicateTopology", "HybridCommunicateGroup", "ParallelMode"]


_AXES = ("data", "pipe", "sharding", "sep", "model")
_HYBRID_PARALLEL_GROUP: HybridCommunicateGroup | None = None  # what fleet.init made, by the name that Paddle's scripts use


class ParallelMode:
    """Ways to divide the work of training.

    Examples:
        >>> import oar
        >>> oar.distributed.ParallelMode.DATA_PARALLEL
        0
    """

    DATA_PARALLEL = 0
    TENSOR_PARALLEL = 1
    PIPELINE_PARALLEL = 2
    SHARDING_PARALLEL = 3
    SEGMENT_PARALLEL = 4


class CommunicateTopology:
    """A grid of processes.

    Args:
        hybrid_group_names: the names of the axes.
        dims: their sizes.

    Examples:
        >>> from oar.distributed import fleet
        >>> grid = fleet.CommunicateTopology(["data", "model"], [2, 3])
        >>> grid.world_size(), grid.get_rank(data=1, model=0), grid.get_comm_list("model")
        (6, 3, [[0, 1, 2], [3, 4, 5]])
    """

    def __init__(
        self, hybrid_group_names: list[str] = ["data", "pipe", "sharding", "sep", "model"],  # noqa: B006
        dims: list[int] = [1, 1, 1, 1, 1],  # noqa: B006
    ) -> None:  # fmt: skip
        self._parallel_names = list(hybrid_group_names)
        self._dims = list(dims)
        make: Any = collections.namedtuple
        self.coordinate: Any = make("Coordinate", self._parallel_names)
        places = [self.coordinate(*place) for place in itertools.product(*map(range, self._dims))]
        self._coord2rank = {place: rank for rank, place in enumerate(places)}
        self._rank2coord = dict(enumerate(places))

    def _axis(self, axis_name: str) -> int:
        if axis_name not in self._parallel_names:
            raise ValueError(f"[CommunicateTopology] axis_name is '{axis_name}', but the axes are {self._parallel_names}.")
        return self._parallel_names.index(axis_name)

    def get_hybrid_group_names(self) -> list[str]:
        """The names of the axes."""
        return self._parallel_names

    def get_dim(self, axis_name: str) -> int:
        """The size of an axis."""
        return self._dims[self._axis(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        """How many processes the grid has."""
        return math.prod(self._dims)

    def get_rank(self, **args: int) -> int:
        """The number of the process at a place, given by one number for each axis."""
        if sorted(args) != sorted(self._parallel_names) or self.coordinate(**args) not in self._coord2rank:
            raise ValueError(f"[get_rank] {args} is no place in a grid with the axes {self._parallel_names} of sizes {self._dims}.")
        return self._coord2rank[self.coordinate(**args)]

    def get_coord(self, rank: int) -> Any:
        """The place of a process."""
        if rank not in self._rank2coord:
            raise ValueError(f"[get_coord] rank is {rank}, but the grid has {self.world_size()} processes.")
        return self._rank2coord[rank]

    def get_axis_list(self, axis_name: str, index: int) -> list[int]:
        """The processes with the number ``index`` along an axis."""
        axis = self._axis(axis_name)
        return [rank for place, rank in self._coord2rank.items() if place[axis] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The lines of the grid along an axis."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis: list[str]) -> list[list[int]]:
        """The planes of the grid along several axes."""
        along = [self._axis(name) for name in fused_axis]
        planes: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
        for place, rank in self._coord2rank.items():
            others = tuple(number for axis, number in enumerate(place) if axis not in along)
            planes.setdefault(others, []).append((tuple(place[axis] for axis in along), rank))
        return [[rank for _, rank in sorted(plane)] for plane in planes.values()]

    def get_rank_from_stage(self, global_rank: int, **kwargs: int) -> int:
        """The process at the place of ``global_rank`` with other numbers along some axes."""
        return self.get_rank(**self.get_coord(global_rank)._replace(**kwargs)._asdict())


class HybridCommunicateGroup:
    """The groups that this process belongs to, one for each axis of the grid and some for several axes. All processes make it
    together. Axes of size 1 cost nothing, and axes that need the same group share it.

    Args:
        topology: the grid. Axes that it does not have count as axes of size 1.

    Examples:
        >>> from oar.distributed import fleet
        >>> groups = fleet.HybridCommunicateGroup(fleet.CommunicateTopology())
        >>> groups.get_data_parallel_world_size(), groups.get_model_parallel_rank()
        (1, 0)
    """

    def __init__(self, topology: CommunicateTopology) -> None:
        self._topo = topology
        self.nranks = get_world_size()
        self.global_rank = get_rank()
        if topology.world_size() != self.nranks:
            sizes = dict(zip(topology.get_hybrid_group_names(), topology._dims))
            raise ValueError(f"[HybridCommunicateGroup] the grid {sizes} needs {topology.world_size()} processes, but there "
                             f"{_are(self.nranks)}. hint: start as many processes as the product of the degrees.")
        names = topology.get_hybrid_group_names()
        self._made: dict[frozenset[str], Group] = {}
        self._groups = {name: self._group_along({name}) for name in (*names, *(set(_AXES) - set(names)))}
        self._check_group = self._group_along(set(names) - {"data"})
        self._sharding_check_group = self._group_along(set(names) - {"sharding"})
        self._dp_sep_group = self._group_along({"data", "sep"})
        self._pp_mp_group = self._group_along({"pipe", "model"})
        self.stage_id = self._place("pipe")
        self.is_first_stage = self.stage_id == 0
        self.is_last_stage = self.stage_id == self._size("pipe") - 1
        self._p2p_groups = self._make_p2p_groups() if self._size("pipe") > 1 else None
        global _HYBRID_PARALLEL_GROUP
        _HYBRID_PARALLEL_GROUP = self

    def _group_along(self, names: set[str]) -> Group:
        """The group of this process along axes. Sets of axes that differ by axes of size 1 have one group."""
        long = frozenset(name for name in names if self._size(name) > 1)
        if long not in self._made:
            planes = self._topo.get_fused_ranks([name for name in self._topo.get_hybrid_group_names() if name in long])
            self._made[long] = self._mine(planes)
        return self._made[long]

    def _mine(self, planes: list[list[int]]) -> Group:
        """Makes all groups, as every process must, and returns that of this process."""
        (mine,) = [group for group in map(new_group, planes) if self.global_rank in group.ranks]
        return mine

    def _make_p2p_groups(self) -> tuple[Group, Group, Group, Group]:
        """For each stage two pairs with the next one, so that messages of the two directions cannot be mixed up; the last stage is
        followed by the first."""
        stages = self._size("pipe")
        own: dict[tuple[str, int], Group] = {}
        for line in self._topo.get_comm_list("pipe"):
            for direction in ("forward", "backward"):
                for stage in range(stages):
                    group = new_group([line[stage], line[(stage + 1) % stages]])
                    if self.global_rank in line:
                        own[direction, stage] = group
        before = (self.stage_id - 1) % stages
        self.next_rank = self.get_rank_from_stage((self.stage_id + 1) % stages)
        self.prev_rank = self.get_rank_from_stage(before)
        return own["forward", self.stage_id], own["backward", before], own["backward", self.stage_id], own["forward", before]

    def _place(self, name: str) -> int:
        return getattr(self._topo.get_coord(self.global_rank), name, 0)

    def _size(self, name: str) -> int:
        return self._topo.get_dim(name) if name in self._topo.get_hybrid_group_names() else 1

    def get_parallel_mode(self) -> int | None:
        """How the work is divided: one of ``ParallelMode``; None with one process."""
        for name, mode in (("pipe", ParallelMode.PIPELINE_PARALLEL), ("model", ParallelMode.TENSOR_PARALLEL),
                           ("sep", ParallelMode.SEGMENT_PARALLEL), ("sharding", ParallelMode.SHARDING_PARALLEL),
                           ("data", ParallelMode.DATA_PARALLEL)):  # fmt: skip
            if self._size(name) > 1:
                return mode
        return None

    def topology(self) -> CommunicateTopology:
        """The grid."""
        return self._topo

    def get_global_rank(self) -> int:
        """The number of this process."""
        return self.global_rank

    def get_data_parallel_rank(self) -> int:
        """The number of this process along the axis of data."""
        return self._place("data")

    def get_data_parallel_world_size(self) -> int:
        """The size of the axis of data."""
        return self._size("data")

    def get_data_parallel_group(self) -> Group:
        """The processes along the axis of data."""
        return self._groups["data"]

    def get_data_parallel_group_src_rank(self) -> int:
        """The first process along the axis of data."""
        return self._groups["data"].ranks[0]

    def get_model_parallel_rank(self) -> int:
        """The number of this process along the axis of tensors."""
        return self._place("model")

    def get_model_parallel_world_size(self) -> int:
        """The size of the axis of tensors."""
        return self._size("model")

    def get_model_parallel_group(self) -> Group:
        """The processes along the axis of tensors."""
        return self._groups["model"]

    def get_model_parallel_group_src_rank(self) -> int:
        """The first process along the axis of tensors."""
        return self._groups["model"].ranks[0]

    def get_stage_id(self) -> int:
        """The number of this process along the pipeline."""
        return self.stage_id

    def get_pipe_parallel_rank(self) -> int:
        """The number of this process along the pipeline."""
        return self.stage_id

    def get_pipe_parallel_world_size(self) -> int:
        """The length of the pipeline."""
        return self._size("pipe")

    def get_pipe_parallel_group(self) -> Group:
        """The processes along the pipeline."""
        return self._groups["pipe"]

    def get_sep_parallel_rank(self) -> int:
        """The number of this process along the axis of sequences."""
        return self._place("sep")

    def get_sep_parallel_world_size(self) -> int:
        """The size of the axis of sequences."""
        return self._size("sep")

    def get_sep_parallel_group(self) -> Group:
        """The processes along the axis of sequences."""
        return self._groups["sep"]

    def get_sep_parallel_group_src_rank(self) -> int:
        """The first process along the axis of sequences."""
        return self._groups["sep"].ranks[0]

    def get_sharding_parallel_rank(self) -> int:
        """The number of this process along the axis of states."""
        return self._place("sharding")

    def get_sharding_parallel_world_size(self) -> int:
        """The size of the axis of states."""
        return self._size("sharding")

    def get_sharding_parallel_group(self) -> Group:
        """The processes along the axis of states."""
        return self._groups["sharding"]

    def get_sharding_parallel_group_src_rank(self) -> int:
        """The first process along the axis of states."""
        return self._groups["sharding"].ranks[0]

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        """The processes that look for NaN together: those with the same place along the axis of data, or of states if ``sharding``."""
        return self._sharding_check_group if sharding else self._check_group

    def get_rank_from_stage(self, stage_id: int, **kwargs: int) -> int:
        """The process at the place of this one in another stage of the pipeline."""
        return self._topo.get_rank_from_stage(self.global_rank, pipe=stage_id, **kwargs)

    def get_p2p_groups(self) -> tuple[Group, Group, Group, Group]:
        """The pairs of neighbours in the pipeline: to send to the next stage, to send to the one before, to receive from the next,
        and to receive from the one before."""
        if self._p2p_groups is None:
            raise RuntimeError("[get_p2p_groups] the pipeline has one stage, which has no neighbours. hint: set pp_degree to 2 or more.")
        return self._p2p_groups

    def get_dp_sep_parallel_group(self) -> Group:
        """The processes along the axes of data and of sequences: they have the same parameters."""
        return self._dp_sep_group

    def get_pp_mp_parallel_group(self) -> Group:
        """The processes along the pipeline and the axis of tensors: together they have the network once."""
        return self._pp_mp_group

    def create_fuse_group(self, fused_strategy_list: list[str]) -> Any:
        """Makes groups along several axes; all processes call it.

        Args:
            fused_strategy_list: the names of the axes.

        Returns:
            the numbers of the processes and the group. With more than one axis each is in a list, as in Paddle.
        """
        if not fused_strategy_list:
            raise ValueError("[create_fuse_group] fused_strategy_list is empty. hint: name axes, such as ['data', 'sep'].")
        group = self._mine(self._topo.get_fused_ranks(list(fused_strategy_list)))
        return ([group.ranks], [group]) if len(fused_strategy_list) > 1 else (group.ranks, group)


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
