"""Two experts for each row, with a limit for each expert."""

from __future__ import annotations

import math
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication.group import Group
from oar.distributed.models.moe.utils import _number_count, _random_routing
from oar.incubate.distributed.models.moe.gate.naive_gate import NaiveGate
from oar.incubate.distributed.models.moe.utils import limit_by_capacity
from oar.nn import functional as F

__all__ = ["GShardGate"]


class GShardGate(NaiveGate):
    """Chooses two experts, of which each takes a limited number of rows. Its loss is least when all get as many.

    Args:
        d_model: the size of a row.
        num_expert: how many experts a process has.
        world_size: how many processes there are.
        topk: 2.
        capacity: how many rows an expert takes, as a multiple of the rows of a process: in training and otherwise.
        random_routing: whether the second expert is left out at random, the more often the lower its score.
        group: the processes.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe import GShardGate
        >>> gate = GShardGate(4, 3, 1)
        >>> scores, experts = gate(oar.ones([5, 4]))
        >>> scores.shape, gate.get_loss().shape
        ([5, 2], [])
    """

    def __init__(
        self, d_model: int, num_expert: int, world_size: int, topk: int = 2, capacity: tuple[float, float] = (1.2, 2.4),
        random_routing: bool = True, group: Group | None = None,
    ) -> None:  # fmt: skip
        if topk != 2:
            raise AssertionError(f"[GShardGate] topk is {topk}, but it chooses two experts. hint: pass topk=2, or use NaiveGate.")
        super().__init__(d_model, num_expert, world_size, topk)
        self.capacity, self.random_routing, self.group = capacity, random_routing, group

    def forward(self, x: Tensor) -> Any:  # type: ignore[override]
        value, chosen, scores = super().forward(x, return_all_scores=True)
        share = _number_count(chosen, self.tot_expert).astype(scores.dtype) / scores.shape[0]
        mean_score = oar.mean(F.softmax(scores, axis=1), axis=0)
        self.set_loss(oar.mean(share * mean_score) * self.num_expert**2)
        places = math.ceil(self.capacity[0 if self.training else 1] * x.shape[0])
        _, _, chosen = limit_by_capacity(chosen, self.num_expert, self.world_size, places, self.group)
        if self.random_routing:
            chosen = _random_routing(chosen, value, oar.rand([scores.shape[0]], "float32"))
        return value, chosen
