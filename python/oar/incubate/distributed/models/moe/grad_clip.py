"""Clipping where each process has experts of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_clip import added_over, squares_of
from oar.nn.clip import ClipGradByGlobalNorm

__all__ = ["ClipGradForMOEByGlobalNorm"]


class ClipGradForMOEByGlobalNorm(ClipGradByGlobalNorm):
    """``ClipGradByGlobalNorm`` whose norm counts the experts of all processes, and everything else once.

    Args:
        clip_norm: the bound.
        is_expert_param_func: whether a parameter belongs to an expert: a function of the parameter. None takes those that
            ``MoELayer`` has marked.
        moe_group: the processes that divide the experts; None means that each has all.
        group_name: a label for the group.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe import ClipGradForMOEByGlobalNorm
        >>> clip = ClipGradForMOEByGlobalNorm(1.0)
        >>> clip([(oar.nn.Linear(1, 2).bias, oar.to_tensor([3.0, 4.0]))])[0][1].numpy().round(2).tolist()
        [0.6000000238418579, 0.800000011920929]
    """

    def __init__(
        self, clip_norm: float, is_expert_param_func: Callable[[Tensor], bool] | None = None, moe_group: Group | None = None,
        group_name: str = "default_moe_group",
    ) -> None:  # fmt: skip
        super().__init__(clip_norm, group_name)
        self.is_expert_param_func = is_expert_param_func or (lambda parameter: getattr(parameter, "no_sync", False))
        self.moe_group = moe_group

    def _squared_norm(self, params_grads: Sequence[tuple[Tensor, Any]]) -> Tensor:
        of_experts = [grad for param, grad in params_grads if self.is_expert_param_func(param)]
        others = squares_of([grad for param, grad in params_grads if not self.is_expert_param_func(param)])
        own = squares_of(of_experts)
        return others + (own if self.moe_group is None else added_over(own, self.moe_group))
