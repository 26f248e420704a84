"""The experts with the highest scores."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.incubate.distributed.models.moe.gate.base_gate import BaseGate
from oar.nn.layer.common import Linear

__all__ = ["NaiveGate"]


class NaiveGate(BaseGate):
    """Chooses the experts with the highest scores, which are linear in the row.

    Args:
        d_model: the size of a row.
        num_expert: how many experts a process has.
        world_size: how many processes there are.
        topk: how many experts a row uses.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe import NaiveGate
        >>> scores, experts = NaiveGate(4, 3, 1)(oar.ones([5, 4]))
        >>> scores.shape, experts.shape
        ([5, 2], [5, 2])
    """

    def __init__(self, d_model: int, num_expert: int, world_size: int, topk: int = 2) -> None:
        super().__init__(num_expert, world_size)
        if not 1 <= topk <= self.tot_expert:
            raise ValueError(f"[{type(self).__name__}] topk is {topk}, but there are {self.tot_expert} experts.")
        self.gate = Linear(d_model, self.tot_expert)
        for parameter in self.gate.parameters():
            parameter.name = "gate_" + parameter.name
        self.top_k = topk

    def forward(self, inp: Tensor, return_all_scores: bool = False) -> Any:
        scores = self.gate(inp)
        value, chosen = oar.topk(scores, self.top_k, axis=-1)
        return (value, chosen, scores) if return_all_scores else (value, chosen)
