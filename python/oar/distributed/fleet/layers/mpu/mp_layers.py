"""Layers whose weights are cut into pieces for several processes. A single process has them whole."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group, check_alone
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RowParallelLinear", "VocabParallelEmbedding"]


def _group_of(function: str, mp_group: Group | None) -> Group:
    from oar.distributed.fleet._process import fleet

    group = fleet.get_hybrid_communicate_group().get_model_parallel_group() if mp_group is None else mp_group
    check_alone(function, group)
    return group


class VocabParallelEmbedding(Layer):
    """``nn.Embedding`` with its rows cut into pieces.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: their size.
        weight_attr: the attributes of the weight.
        mp_group: the processes.
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
        super().__init__()
        self.model_parallel_group = _group_of("VocabParallelEmbedding", mp_group)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.vocab_start_index, self.is_mp, self.world_size, self.rank = 0, False, 1, 0
        self.weight = self.create_parameter([num_embeddings, embedding_dim], attr=weight_attr)
        self.weight.is_distributed = False

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight)


class ColumnParallelLinear(Layer):
    """``nn.Linear`` with the columns of its weight cut into pieces.

    Args:
        in_features: the size of the input.
        out_features: the size of the result.
        weight_attr: the attributes of the weight.
        has_bias: whether there is a bias.
        gather_output: whether each process needs the whole result.
        fuse_matmul_bias: accepted for compatibility.
        mp_group: the processes.
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
        super().__init__()
        self.model_parallel_group = _group_of("ColumnParallelLinear", mp_group)
        self.in_features, self.out_features, self.gather_output = in_features, out_features, gather_output
        self.output_size_per_partition, self.is_mp, self.world_size = out_features, False, 1
        self.weight = self.create_parameter([in_features, out_features], attr=weight_attr)
        self.weight.is_distributed = False
        self.bias = None
        if has_bias:
            self.bias = self.create_parameter([out_features], is_bias=True)
            self.bias.is_distributed = False

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class RowParallelLinear(Layer):
    """``nn.Linear`` with the rows of its weight cut into pieces.

    Args:
        in_features: the size of the input.
        out_features: the size of the result.
        weight_attr: the attributes of the weight.
        has_bias: whether there is a bias.
        input_is_parallel: whether each process has a piece of the input only.
        fuse_matmul_bias: accepted for compatibility.
        mp_group: the processes.
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
        super().__init__()
        self.model_parallel_group = _group_of("RowParallelLinear", mp_group)
        self.in_features, self.out_features, self.input_is_parallel = in_features, out_features, input_is_parallel
        self.input_size_per_partition, self.is_mp, self.world_size, self.rank = in_features, False, 1, 0
        self.weight = self.create_parameter([in_features, out_features], attr=weight_attr)
        self.weight.is_distributed = False
        self.bias = self.create_parameter([out_features], is_bias=True) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class ParallelCrossEntropy(Layer):
    """The cross entropy of classes that are cut into pieces; one loss for each element, with a last axis of size 1.

    Args:
        mp_group: the processes.
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
        super().__init__()
        self.model_parallel_group = _group_of("ParallelCrossEntropy", mp_group)
        self.world_size, self.rank, self.ignore_index = 1, 0, ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        if len(label.shape) == len(input.shape) - 1:
            label = label.unsqueeze(-1)
        loss = F.softmax_with_cross_entropy(input, label, ignore_index=self.ignore_index)
        assert not isinstance(loss, tuple)  # only with return_softmax
        return loss
