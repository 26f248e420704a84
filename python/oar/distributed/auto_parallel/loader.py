"""Batches that are laid out over a grid of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oar._C import Tensor
from oar.distributed.auto_parallel.api import dtensor_from_local, shard_tensor
from oar.distributed.auto_parallel.process_mesh import ProcessMesh
from oar.distributed.placement import Placement, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ShardDataloader", "shard_dataloader"]


class ShardDataloader:
    """What ``shard_dataloader`` returns: the batches of a loader, laid out.

    Args:
        dataloader, meshes, input_keys, shard_dims, is_dataset_splitted: see ``shard_dataloader``.
    """

    def __init__(self, dataloader: Any, meshes: Any, input_keys: Any, shard_dims: Any, is_dataset_splitted: bool) -> None:
        self._dataloader, self._input_keys, self._splitted = dataloader, input_keys, is_dataset_splitted
        self._meshes = list(meshes) if isinstance(meshes, (list, tuple)) else [meshes]
        for mesh in self._meshes:
            for one in mesh if isinstance(mesh, (list, tuple)) else [mesh]:
                if not isinstance(one, ProcessMesh):
                    raise ValueError(f"[shard_dataloader] meshes must be a ProcessMesh or a list of them, not {type(one).__name__}.")
        self._dims = list(shard_dims) if isinstance(shard_dims, (list, tuple)) else [shard_dims] * len(self._meshes)
        if len(self._dims) != len(self._meshes):
            raise ValueError(f"[shard_dataloader] shard_dims has {len(self._dims)} entries, but there are {len(self._meshes)} meshes.")
        if len(self._meshes) > 1 and input_keys is not None and len(input_keys) != len(self._meshes):
            raise ValueError(f"[shard_dataloader] input_keys has {len(input_keys)} entries, but there are {len(self._meshes)} meshes.")

    def __len__(self) -> int:
        return len(self._dataloader)

    def _place(self, number: int) -> tuple[Any, Any]:
        if len(self._meshes) == 1:
            return self._meshes[0], self._dims[0]
        if number >= len(self._meshes):
            raise ValueError(f"[shard_dataloader] a batch has more than {len(self._meshes)} entries, one for each mesh.")
        return self._meshes[number], self._dims[number]

    def _laid_out(self, value: Any, mesh: Any, dim: Any) -> Any:
        if isinstance(value, (list, tuple)):
            meshes = mesh if isinstance(mesh, (list, tuple)) else [mesh] * len(value)
            dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
            return [self._laid_out(*one) for one in zip(value, meshes, dims, strict=True)]
        if not isinstance(value, Tensor):
            return value
        placements: list[Placement] = [Replicate()] * mesh.ndim
        if dim is not None:
            placements[mesh._axis(dim)] = Shard(0)
        return dtensor_from_local(value, mesh, placements) if self._splitted and dim is not None else shard_tensor(value, mesh, placements)

    def _batch(self, batch: Any) -> Any:
        if not isinstance(batch, dict):
            entries = list(batch) if isinstance(batch, (list, tuple)) else [batch]
            return [self._laid_out(value, *self._place(number)) for number, value in enumerate(entries)]
        keys = list(self._input_keys) if self._input_keys is not None else list(batch)
        return {key: self._laid_out(batch[key], *self._place(number)) for number, key in enumerate(keys)}

    def __iter__(self) -> Iterator[Any]:
        for batch in self._dataloader:
            yield self._batch(batch)

    def __call__(self) -> Iterator[Any]:
        return iter(self)


def shard_dataloader(
    dataloader: Any, meshes: ProcessMesh | Sequence[Any], input_keys: Sequence[str] | None = None, shard_dims: Any = None,
    is_dataset_splitted: bool = False,
) -> ShardDataloader:  # fmt: skip
    """A loader whose batches are laid out over a grid of processes.

    Args:
        dataloader: the loader. All processes read the same batches.
        meshes: the grid, or one for each entry of a batch.
        input_keys: the keys of the entries to use, if batches are dictionaries; by default all, in their order.
        shard_dims: the axis of the grid, by name or number, that cuts the first axis of what is loaded; None replicates. A list has
            one for each entry of ``meshes``.
        is_dataset_splitted: whether each process loads its own piece of a batch already.

    Returns:
        a loader.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> data = oar.io.TensorDataset([oar.arange(4.0).reshape([4, 1])])
        >>> loader = dist.shard_dataloader(oar.io.DataLoader(data, batch_size=2), dist.ProcessMesh([0], ["x"]), shard_dims="x")
        >>> [x.placements for x, in loader]
        [[Shard(dim=0)], [Shard(dim=0)]]
    """
    return ShardDataloader(dataloader, meshes, input_keys, shard_dims, is_dataset_splitted)
