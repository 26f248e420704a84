"""Layers whose weights are cut into pieces for several processes. A single process has them whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group
from oar.distributed.fleet.layers.mpu import mp_ops
from oar.distributed.fleet.layers.mpu.random import get_rng_state_tracker
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RowParallelLinear", "VocabParallelEmbedding"]


class _CutLayer(Layer):
    """A layer that the processes along the axis of tensors divide."""

    def __init__(self, mp_group: Group | None) -> None:
        from oar.distributed.fleet._process import fleet

        super().__init__()
        group = fleet.get_hybrid_communicate_group().get_model_parallel_group() if mp_group is None else mp_group
        if group.rank < 0:
            raise ValueError(f"[{type(self).__name__}] this process is not in mp_group, whose processes are {group.ranks}.")
        self.model_parallel_group, self.world_size, self.rank = group, group.nranks, group.rank
        self.is_mp = group.nranks > 1

    def _piece(self, argument: str, size: int) -> int:
        if size % self.world_size:
            raise AssertionError(f"[{type(self).__name__}] {argument} is {size}, which {self.world_size} processes cannot divide evenly. "
                                 "hint: choose a multiple of mp_degree.")
        return size // self.world_size

    def _cut_parameter(self, shape: Sequence[int], axis: int, attr: Any = None, is_bias: bool = False) -> Any:
        """A piece of a parameter. The pieces begin with different random numbers."""
        if not self.is_mp or is_bias:
            made = self.create_parameter(shape, attr=attr, is_bias=is_bias)
        else:
            with get_rng_state_tracker().rng_state():
                made = self.create_parameter(shape, attr=attr)
        made.is_distributed = self.is_mp
        if self.is_mp:
            made.split_axis = axis  # type: ignore[attr-defined]
        return made


class VocabParallelEmbedding(_CutLayer):
    """``nn.Embedding`` with its rows cut into pieces.

    Args:
        num_embeddings: the number of rows of the whole.
        embedding_dim: their size.
        weight_attr: the attributes of the weight.
        mp_group: the processes; by default those along the axis of tensors.
        name: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> fleet.meta_parallel.VocabParallelEmbedding(10, 4)(oar.to_tensor([[1, 2]])).shape
        [1, 2, 4]
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, weight_attr: Any = None, mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(mp_group)
        rows = self._piece("num_embeddings", num_embeddings)
        self.num_embeddings = self.origin_num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.vocab_start_index = self.rank * rows
        self.weight = self._cut_parameter([rows, embedding_dim], 0, weight_attr)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return F.embedding(x, self.weight)
        own = mp_ops._c_lookup_table(self.weight, x, self.vocab_start_index, self.num_embeddings)
        return mp_ops._mp_allreduce(own, group=self.model_parallel_group)


class ColumnParallelLinear(_CutLayer):
    """``nn.Linear`` with the columns of its weight cut into pieces.

    Args:
        in_features: the size of the input.
        out_features: the size of the whole result.
        weight_attr: the attributes of the weight.
        has_bias: whether there is a bias. It begins with zeros.
        gather_output: whether each process needs the whole result.
        fuse_matmul_bias: accepted for compatibility: the sum is fused in any case.
        mp_group: the processes; by default those along the axis of tensors.
        name: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> fleet.meta_parallel.ColumnParallelLinear(3, 2, has_bias=True)(oar.ones([1, 3])).shape
        [1, 2]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool | None = None,
        gather_output: bool = True, fuse_matmul_bias: bool = False, mp_group: Group | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(mp_group)
        self.in_features, self.out_features, self.gather_output = in_features, out_features, gather_output
        self.output_size_per_partition = self._piece("out_features", out_features)
        self.weight = self._cut_parameter([in_features, self.output_size_per_partition], 1, weight_attr)
        self.bias = self._cut_parameter([self.output_size_per_partition], 0, is_bias=True) if has_bias else None

    def _entering(self, x: Tensor) -> Tensor:
        """The input as each process needs it."""
        return mp_ops._c_identity(x, self.model_parallel_group)

    def forward(self, x: Tensor) -> Tensor:
        out = F.linear(self._entering(x), self.weight, self.bias)
        return mp_ops._c_concat(out, self.model_parallel_group) if self.gather_output else out


class RowParallelLinear(_CutLayer):
    """``nn.Linear`` with the rows of its weight cut into pieces. The bias is whole, and added after the sum.

    Args:
        in_features: the size of the whole input.
        out_features: the size of the result.
        weight_attr: the attributes of the weight.
        has_bias: whether there is a bias. It begins with zeros.
        input_is_parallel: whether each process has a piece of the input only.
        fuse_matmul_bias: accepted for compatibility.
        mp_group: the processes; by default those along the axis of tensors.
        name: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> fleet.meta_parallel.RowParallelLinear(3, 2)(oar.ones([1, 3])).shape
        [1, 2]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool = True,
        input_is_parallel: bool = False, fuse_matmul_bias: bool = False, mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(mp_group)
        self.in_features, self.out_features, self.input_is_parallel = in_features, out_features, input_is_parallel
        self.input_size_per_partition = self._piece("in_features", in_features)
        self.weight = self._cut_parameter([self.input_size_per_partition, out_features], 0, weight_attr)
        self.bias = self.create_parameter([out_features], is_bias=True) if has_bias else None

    def _leaving(self, product: Tensor) -> Tensor:
        """The sum of what the processes have computed."""
        return mp_ops._mp_allreduce(product, group=self.model_parallel_group)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return F.linear(x, self.weight, self.bias)
        piece = x if self.input_is_parallel else mp_ops._c_split(x, self.model_parallel_group)
        total = self._leaving(F.linear(piece, self.weight))
        return total if self.bias is None else total + self.bias


class ParallelCrossEntropy(_CutLayer):
    """The cross entropy of classes that are cut into pieces; one loss for each element, with a last axis of size 1.

    Args:
        mp_group: the processes; by default those along the axis of tensors.
        name: accepted for compatibility.
        ignore_index: the label without a loss.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> fleet.meta_parallel.ParallelCrossEntropy()(oar.ones([2, 4]), oar.to_tensor([1, 3])).shape
        [2, 1]
    """

    def __init__(self, mp_group: Group | None = None, name: str | None = None, ignore_index: int = -100) -> None:
        super().__init__(mp_group)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return mp_ops._c_softmax_with_cross_entropy(input, label, self.model_parallel_group, ignore_index=self.ignore_index)
