"""A grid of processes, with a name for each of its axes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from oar._lazy import np
from oar.distributed.environment import get_rank

if TYPE_CHECKING:
    from oar.distributed.communication.group import Group

__all__ = ["ProcessMesh", "create_mesh", "get_mesh", "set_mesh"]

_unique_ids: dict[tuple[Any, ...], int] = {}
_global: list[ProcessMesh | None] = [None]
_current: list[ProcessMesh] = []


class ProcessMesh:
    """A grid of processes, with a name for each of its axes.

    Over several processes, tensors on a grid are cut: see ``shard_tensor``. A process that is alone holds the whole value of each
    tensor, so its grids may name more processes than there are: tensors on them compute as if all took part.

    Args:
        mesh: the numbers of the processes: nested lists or an array.
        dim_names: the names of the axes; by default ``d0``, ``d1`` and so on.
        shape, process_ids: the grid's shape and its processes in order, instead of ``mesh``.

    Examples:
        >>> import oar
        >>> mesh = oar.distributed.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
        >>> mesh.shape, mesh.process_ids
        ([2, 3], [2, 4, 5, 0, 1, 3])
        >>> mesh.get_rank_by_dim_and_process_id("y", 5)
        2
    """

    def __init__(self, mesh: Any = None, dim_names: list[str] | None = None, shape: Any = None, process_ids: Any = None) -> None:
        if mesh is None:
            if shape is None or process_ids is None:
                raise AssertionError("[ProcessMesh] pass mesh, or both shape and process_ids.")
            mesh = np.array(process_ids).reshape(shape)
        if not isinstance(mesh, (list, np.ndarray)):
            raise ValueError(f"[ProcessMesh] The mesh must be an instance of list or np.ndarray, not {type(mesh).__name__}.")
        if dim_names is not None and not isinstance(dim_names, list):
            raise ValueError(f"[ProcessMesh] The dim_names must be an instance of list, not {type(dim_names).__name__}.")
        self._mesh = np.array(mesh)
        self._shape = list(self._mesh.shape)
        self._process_ids: list[int] = self._mesh.flatten().tolist()
        self._dim_names = copy.deepcopy(dim_names) if dim_names is not None else [f"d{i}" for i in range(len(self._shape))]
        self._check()
        self._unique_id = _unique_ids.setdefault((tuple(self._shape), tuple(self._process_ids)), len(_unique_ids) + 1)

    def _check(self) -> None:
        ids, names = self._process_ids, self._dim_names
        if not all(isinstance(number, int) and number >= 0 for number in ids) or len(set(ids)) != len(ids):
            raise AssertionError(f"[ProcessMesh] mesh must have integers from 0 on, each once, not {ids}.")
        if len(names) != len(self._shape) or len(set(names)) != len(names):
            raise AssertionError(f"[ProcessMesh] dim_names must have a different name for each of {len(self._shape)} axes, not {names}.")

    @property
    def mesh(self) -> np.ndarray:
        """The grid as an array."""
        return self._mesh

    @property
    def shape(self) -> list[int]:
        """How many processes there are along each axis."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def process_ids(self) -> list[int]:
        """The numbers of the processes, in order."""
        return self._process_ids

    @property
    def dim_names(self) -> list[str]:
        """The names of the axes."""
        return self._dim_names

    @property
    def size(self) -> int:
        """The number of processes."""
        return len(self._process_ids)

    @property
    def unique_id(self) -> int:
        """A number that grids with the same shape and processes share."""
        return self._unique_id

    def contains(self, process_id: int) -> bool:
        """Whether a process is part of the grid."""
        return process_id in self._process_ids

    def empty(self) -> bool:
        """Whether there is no process."""
        return not self._process_ids

    def _axis(self, dim: str | int) -> int:
        if isinstance(dim, str):
            if dim not in self._dim_names:
                raise AssertionError(f"[ProcessMesh] there is no axis {dim!r}; there are {self._dim_names}.")
            return self._dim_names.index(dim)
        if not isinstance(dim, int):
            raise ValueError(f"[ProcessMesh] dim must be a string or an integer, not {type(dim).__name__}.")
        return self._dim_names.index(self._dim_names[dim])

    def get_dim_size(self, dim: str | int | None) -> int:
        """How many processes there are along an axis; 1 for None."""
        return 1 if dim is None else self._shape[self._axis(dim)]

    def dim_size(self, dim: str | int) -> int:
        """How many processes there are along an axis."""
        return self._shape[self._axis(dim)]

    def get_rank_by_dim_and_process_id(self, dim: str | int | None, process_id: int) -> int:
        """Where a process is along an axis: -1 if it is not part of the grid, 0 if ``dim`` is None."""
        if process_id not in self._process_ids:
            return -1
        return 0 if dim is None else self._coordinates(process_id)[self._axis(dim)]

    def _coordinates(self, process_id: int) -> list[int]:
        return [int(number) for number in np.unravel_index(self._process_ids.index(process_id), self._shape)]

    def get_mesh_with_dim(self, dim_name: str, index: Any = None) -> ProcessMesh:
        """The grid with an axis moved to the front; with ``index``, that part of it without the axis."""
        axis = self._axis(dim_name)
        moved = np.moveaxis(self._mesh, axis, 0)
        others = [name for name in self._dim_names if name != dim_name]
        if index is None:
            return ProcessMesh(moved, [dim_name, *others])
        return ProcessMesh(moved[index], others) if others else ProcessMesh([moved[index]], [dim_name])

    def get_submesh_with_dim(self, dim_name: str) -> ProcessMesh | None:
        """The processes along an axis that runs through this process; None if it is not part of the grid."""
        if get_rank() not in self._process_ids:
            return None
        columns = np.moveaxis(self._mesh, self._axis(dim_name), 0).reshape(self.get_dim_size(dim_name), -1)
        column = int(np.argmax(columns == get_rank())) % columns.shape[-1]
        return ProcessMesh(columns[:, column], [dim_name])

    def get_group(self, dim_name: str | None = None) -> Group:
        """The group of processes along an axis that runs through this process.

        Args:
            dim_name: the axis; may be left out if there is only one.
        """
        from oar.distributed.communication.group import new_group
        from oar.distributed.environment import is_initialized

        if not is_initialized():
            raise AssertionError("[get_group] call init_parallel_env() first.")
        if dim_name is None and self.ndim > 1:
            raise ValueError(f"[get_group] pass dim_name: the grid has the axes {self._dim_names}.")
        along = self.get_submesh_with_dim(dim_name or self._dim_names[0])
        if along is None:
            raise ValueError(f"[get_group] this process, {get_rank()}, is not part of {self}.")
        return new_group(along.process_ids)

    def __getitem__(self, index: Any) -> ProcessMesh | None:
        if isinstance(index, str):
            return self.get_submesh_with_dim(index)
        parts = index if isinstance(index, tuple) else (index,)
        kept = [name for name, part in zip(self._dim_names, parts) if isinstance(part, slice)] + self._dim_names[len(parts):]
        part = self._mesh[index]
        return ProcessMesh(part, kept) if np.ndim(part) else ProcessMesh([int(part)])

    def __enter__(self) -> ProcessMesh:
        _current.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _current.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessMesh) and self._shape == other._shape and self._process_ids == other._process_ids

    def __hash__(self) -> int:
        return hash((tuple(self._shape), tuple(self._process_ids)))

    def __str__(self) -> str:
        return f"shape {self._shape}, process_ids {self._process_ids}, dim_names {self._dim_names}"

    def __deepcopy__(self, memo: dict[int, Any]) -> ProcessMesh:
        twin = ProcessMesh(self._mesh.copy(), list(self._dim_names))
        memo[id(self)] = twin
        return twin


def current_mesh() -> ProcessMesh | None:
    """The grid of the innermost ``with mesh:``."""
    return _current[-1] if _current else None


def get_mesh() -> ProcessMesh | None:
    """The grid that ``set_mesh`` set; None before.

    Examples:
        >>> import oar
        >>> oar.distributed.set_mesh(oar.distributed.ProcessMesh([0], dim_names=["x"]))
        >>> oar.distributed.get_mesh().dim_names
        ['x']
        >>> oar.distributed.set_mesh(None)
    """
    return _global[0]


def set_mesh(mesh: ProcessMesh | None) -> None:
    """Sets the grid for all that does not name one.

    Args:
        mesh: the grid.

    Examples:
        >>> import oar
        >>> oar.distributed.set_mesh(oar.distributed.ProcessMesh([0]))
        >>> oar.distributed.get_mesh().shape
        [1]
        >>> oar.distributed.set_mesh(None)
    """
    _global[0] = mesh


def create_mesh(mesh_dims: list[tuple[str, int]]) -> ProcessMesh:
    """Sets the grid that has these axes, with processes counted from 0.

    Args:
        mesh_dims: names and sizes of the axes.

    Returns:
        the grid.

    Examples:
        >>> from oar.distributed.fleet import auto
        >>> auto.create_mesh([("dp", 2), ("mp", 2)]).process_ids
        [0, 1, 2, 3]
        >>> auto.set_mesh(None)
    """
    shape = [size for _, size in mesh_dims]
    mesh = ProcessMesh(np.arange(int(np.prod(shape))).reshape(shape), [name for name, _ in mesh_dims])
    set_mesh(mesh)
    return mesh
