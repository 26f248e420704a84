"""One expert for each row, with a limit for each expert."""

from __future__ import annotations

import math
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication.group import Group
from oar.distributed.models.moe.utils import _number_count
from oar.incubate.distributed.models.moe.gate.naive_gate import NaiveGate
from oar.incubate.distributed.models.moe.utils import limit_by_capacity
from oar.nn import functional as F

__all__ = ["SwitchGate"]


class SwitchGate(NaiveGate):
    """Chooses one expert, which takes a limited number of rows. In training, scores are blurred a little. Its loss is least when all
    get as many.

    Args:
        d_model: the size of a row.
        num_expert: how many experts a process has.
        world_size: how many processes there are.
        topk: 1.
        switch_eps: by how much a score is blurred at most.
        capacity: how many rows an expert takes, as a multiple of the rows of a process: in training and otherwise.
        group: the processes.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe import SwitchGate
        >>> gate = SwitchGate(4, 3, 1)
        >>> scores, experts = gate(oar.ones([5, 4]))
        >>> scores.shape, gate.get_loss().shape
        ([5, 1], [])
    """

    def __init__(
        self, d_model: int, num_expert: int, world_size: int, topk: int = 1, switch_eps: float = 0.1,
        capacity: tuple[float, float] = (1.2, 2.4), group: Group | None = None,
    ) -> None:  # fmt: skip
        if topk != 1:
            raise AssertionError(f"[SwitchGate] topk is {topk}, but it chooses one expert. hint: pass topk=1, or use NaiveGate.")
        super().__init__(d_model, num_expert, world_size, topk)
        self.switch_eps, self.capacity, self.group = switch_eps, capacity, group

    def forward(self, inp: Tensor) -> Any:  # type: ignore[override]
        scores = self.gate(inp)
        if self.training:
            scores = scores + oar.rand(scores.shape, scores.dtype) * 2 * self.switch_eps + (1.0 - self.switch_eps)
        scores = F.softmax(scores, axis=-1)
        value, chosen = oar.topk(scores, 1, axis=-1)
        places = math.ceil(self.capacity[0 if self.training else 1] * inp.shape[0])
        own, _, chosen = limit_by_capacity(chosen, self.num_expert, self.world_size, places, self.group)
        kept = max(int(own.sum().item()), 1)
        share = _number_count(chosen, self.tot_expert).astype(scores.dtype) / kept
        self.set_loss(oar.sum(share * (oar.sum(scores, axis=0) / kept)) * self.tot_expert)
        return value, chosen
