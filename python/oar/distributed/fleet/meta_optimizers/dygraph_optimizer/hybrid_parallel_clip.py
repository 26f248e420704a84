"""Clipping by the norm of gradients of which each process has a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication import ReduceOp, all_reduce
from oar.nn.clip import ClipGradByGlobalNorm, squared_norms

__all__ = ["HybridParallelClipGrad", "added_over"]


def added_over(number: Tensor, group: Any) -> Tensor:
    """The sum of a number over the processes of a group."""
    if group.nranks > 1:
        all_reduce(number, ReduceOp.SUM, group)
    return number


def squares_of(gradients: Sequence[Tensor]) -> Tensor:
    """The sum of all squares, in float64 so that all processes send the same dtype; zero without gradients."""
    return squared_norms(gradients).astype("float64") if gradients else oar.zeros([], "float64")


class HybridParallelClipGrad(ClipGradByGlobalNorm):
    """``ClipGradByGlobalNorm`` over all processes: pieces of a parameter are added up over the axis of tensors, parameters that all
    have are counted once, and the stages of a pipeline and the owners of sharded states are added up.

    Args:
        clip: what a single process would use.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_clip import HybridParallelClipGrad
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> clip = HybridParallelClipGrad(oar.nn.ClipGradByGlobalNorm(1.0), groups)
        >>> clip([(oar.nn.Linear(1, 2).bias, oar.to_tensor([3.0, 4.0]))])[0][1].numpy().round(2).tolist()
        [0.6000000238418579, 0.800000011920929]
    """

    def __init__(self, clip: ClipGradByGlobalNorm, hcg: Any) -> None:
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._hcg = hcg

    def _squared_norm(self, params_grads: Sequence[tuple[Tensor, Any]]) -> Tensor:
        # A weight that stands in several stages is counted in the first of them.
        counted = [pair for pair in params_grads if getattr(pair[0], "is_firstly_shared", True)]
        cut = squares_of([grad for param, grad in counted if getattr(param, "is_distributed", False)])
        whole = squares_of([grad for param, grad in counted if not getattr(param, "is_distributed", False)])
        total = added_over(cut, self._hcg.get_model_parallel_group()) + whole
        total = added_over(total, self._hcg.get_pipe_parallel_group())
        return added_over(total, self._hcg.get_sharding_parallel_group())
