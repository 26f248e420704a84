"""How a tensor is placed on the processes along one axis of their mesh."""

from __future__ import annotations

import enum

__all__ = ["Partial", "Placement", "ReduceType", "Replicate", "Shard"]


class ReduceType(enum.IntEnum):
    """How the parts of a tensor become the tensor.

    Examples:
        >>> import oar
        >>> oar.distributed.Partial(oar.distributed.ReduceType.kRedMax)
        Partial(reduce_type=MAX)
    """

    kRedSum = 0
    kRedMax = 1
    kRedMin = 2
    kRedProd = 3
    kRedAvg = 4
    kRedAny = 5
    kRedAll = 6


class Placement:
    """How a tensor is distributed over processes.

    Examples:
        >>> import oar
        >>> isinstance(oar.distributed.Shard(0), oar.distributed.Placement)
        True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut, along ``dim`` if that is given."""
        return False

    def is_replicated(self) -> bool:
        """Whether every process has the whole tensor."""
        return False

    def is_partial(self) -> bool:
        """Whether the tensor is what a reduction over the processes gives."""
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))


class Shard(Placement):
    """Each process has a piece along the axis ``dim``.

    Args:
        dim: the axis.
        split_factor: into how many interleaved pieces each process's piece is cut.
        co_shard_order: when that cut is done, if several axes of the mesh cut the same axis of the tensor.

    Examples:
        >>> import oar
        >>> placement = oar.distributed.Shard(1)
        >>> placement.get_dim(), placement.is_shard()
        (1, True)
    """

    def __init__(self, dim: int, split_factor: int = 1, co_shard_order: int = 0) -> None:
        self._dim = dim
        self._split_factor = split_factor
        self._co_shard_order = co_shard_order

    def get_dim(self) -> int:
        """The axis that is cut."""
        return self._dim

    def get_split_factor(self) -> int:
        """Into how many interleaved pieces each process's piece is cut."""
        return self._split_factor

    def set_split_factor(self, split_factor: int) -> None:
        """Sets into how many interleaved pieces each process's piece is cut."""
        self._split_factor = split_factor

    def get_co_shard_order(self) -> int:
        """When this cut is done, if several axes of the mesh cut the same axis of the tensor."""
        return self._co_shard_order

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self._dim

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"


class Replicate(Placement):
    """Each process has the whole tensor.

    Examples:
        >>> import oar
        >>> oar.distributed.Replicate().is_replicated()
        True
    """

    def is_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"


class Partial(Placement):
    """Each process has a part; the tensor is their reduction.

    Args:
        reduce_type: how the parts are combined.

    Examples:
        >>> import oar
        >>> oar.distributed.Partial().is_partial()
        True
    """

    def __init__(self, reduce_type: ReduceType = ReduceType.kRedSum) -> None:
        if not isinstance(reduce_type, ReduceType):
            raise TypeError(f"[Partial] reduce_type must be one of ReduceType, such as ReduceType.kRedSum, not {reduce_type!r}.")
        self._reduce_type = reduce_type

    def reduce_type(self) -> ReduceType:
        """How parts are joined."""
        return self._reduce_type

    def is_partial(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Partial(reduce_type={self._reduce_type.name.removeprefix('kRed').upper()})"
