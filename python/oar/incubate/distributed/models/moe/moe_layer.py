"""A layer with many experts, of which each row uses a few."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.distributed.communication.group import Group
from oar.distributed.fleet.layers.mpu import mp_ops
from oar.distributed.fleet.recompute import recompute
from oar.distributed.utils.moe_utils import global_gather, global_scatter
from oar.incubate.distributed.fleet import recompute_hybrid
from oar.incubate.distributed.models.moe.gate import BaseGate, GShardGate, NaiveGate, SwitchGate
from oar.incubate.distributed.models.moe.utils import count_by_gate
from oar.nn.layer.layers import Layer

__all__ = ["MoELayer"]


class MoELayer(Layer):
    """A layer with many experts, which several processes divide: each row goes to a few of them, wherever they are, and the results
    are added up with the weights that the gate gives. A row that no expert has a place for gives zeros.

    Parameters of experts that several processes divide get the attribute ``no_sync``: gradients of other processes are not added to
    theirs, for they have come through the rows. So the gradient of an expert is that of the sum of the losses of all processes,
    while ``DataParallel`` averages over them.

    Args:
        d_model: the size of a row.
        experts: the experts of this process, layers from rows to rows of the same size: a ``LayerList``.
        gate: a ``NaiveGate``, ``GShardGate`` or ``SwitchGate``, or a dict with ``'type'`` (``'gshard'``; ``'naive'``, ``'switch'``) and
            ``'top_k'`` (2), how many experts a row uses.
        moe_group: the processes that divide the experts; None means that each has all.
        mp_group: processes that have the same rows, and compute one loss: each does a part of the rows.
        recompute_interval: above 0, the experts run again for the derivative.
        recompute_ctx: the options of ``recompute_hybrid``; None takes ``recompute``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> from oar.incubate.distributed.models.moe import MoELayer
        >>> experts = nn.LayerList([nn.Linear(8, 8) for _ in range(4)])
        >>> layer = MoELayer(8, experts, {"type": "gshard", "top_k": 2})
        >>> layer(oar.ones([2, 3, 8])).shape, layer.gate.get_loss().shape
        ([2, 3, 8], [])
    """

    def __init__(
        self, d_model: int, experts: Any, gate: Any = None, moe_group: Group | None = None, mp_group: Group | None = None,
        recompute_interval: int = 0, recompute_ctx: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(gate, (dict, BaseGate, type(None))):
            raise AssertionError(f"[MoELayer] gate must be a dict or a gate, not {type(gate).__name__}.")
        if isinstance(gate, BaseGate) and not isinstance(gate, NaiveGate):
            raise TypeError(f"[MoELayer] gate is a {type(gate).__name__}. hint: derive it from NaiveGate.")
        if not len(experts):
            raise ValueError("[MoELayer] experts is empty. hint: pass a LayerList of at least one layer.")
        self.d_model, self.num_expert, self.experts = d_model, len(experts), experts
        self.group, self.mp_group = moe_group, mp_group
        self.world_size = 1 if moe_group is None else moe_group.nranks
        self.recompute_interval, self.recompute_ctx = recompute_interval, recompute_ctx
        self.gate = gate if isinstance(gate, NaiveGate) else self._gate_of(gate or {})
        self.top_k = self.gate.top_k
        if self.world_size > 1:
            for parameter in experts.parameters():
                parameter.no_sync = True
        if mp_group is not None and mp_group.nranks > 1:
            for parameter in self.gate.parameters():  # each process has seen a part of the rows
                parameter.register_hook(lambda grad: ops.all_reduce(grad, "sum", mp_group.id, mp_group.nranks, True))

    def _gate_of(self, settings: dict[str, Any]) -> NaiveGate:
        kind, top_k = settings.get("type", "gshard"), settings.get("top_k", 2)
        sizes = (self.d_model, self.num_expert, self.world_size, top_k)
        if kind == "naive" or kind is None:
            return NaiveGate(*sizes)
        if kind == "gshard":
            return GShardGate(*sizes, group=self.group)
        if kind == "switch":
            return SwitchGate(*sizes, group=self.group)
        raise AssertionError(f"[MoELayer] the type of the gate is {kind!r}. hint: 'naive', 'gshard' or 'switch'.")

    def _of_experts(self, x: Tensor, counts: list[int]) -> Tensor:
        """The results of the experts of this process, for rows that are in their order."""
        if x.shape[0] == 0:
            return _with_derivative(x)
        parts = oar.split(x, counts) if len(counts) > 1 else [x]
        return oar.concat([expert(part) for expert, part in zip(self.experts, parts) if part.shape[0]])

    def forward(self, inp: Tensor) -> Tensor:
        if inp.ndim != 3 or inp.shape[2] != self.d_model:
            raise ValueError(f"[MoELayer] inp has shape {list(inp.shape)}. hint: pass [batch, sequence, {self.d_model}].")
        rows = inp.reshape([-1, self.d_model])
        if self.mp_group is not None:
            rows = mp_ops.own_part(rows, 0, self.mp_group, "MoELayer")
        value, chosen = self.gate(rows)
        results = self._routed(rows, chosen).reshape([-1, self.top_k, self.d_model])
        out = oar.bmm(value.reshape([-1, 1, self.top_k]).astype(results.dtype), results).reshape([-1, self.d_model])
        if self.mp_group is not None:
            out = mp_ops.joined(out, 0, self.mp_group, shared=True)
        return out.reshape(inp.shape)

    def _routed(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """For each row and each of its experts the result; zeros where there is none."""
        places, local, everywhere = count_by_gate(chosen, self.num_expert, self.world_size, group=self.group)
        counts = everywhere.reshape([self.world_size, self.num_expert]).sum(axis=0).tolist()
        sorted_rows = oar.index_select(rows, places // self.top_k)
        arrived = sorted_rows if self.group is None else global_scatter(sorted_rows, local, everywhere, self.group)
        if self.recompute_interval <= 0 or arrived.shape[0] == 0:
            made = self._of_experts(arrived, counts)
        elif self.recompute_ctx is None:
            made = recompute(self._of_experts, arrived, counts)
        else:
            made = recompute_hybrid(self.recompute_ctx, self._of_experts, arrived, counts)
        back = made if self.group is None else global_gather(made, local, everywhere, self.group)
        blank = oar.zeros([chosen.numel().item(), self.d_model], back.dtype)
        return oar.index_put(blank, (places,), back) if places.shape[0] else blank + oar.sum(back)


def _with_derivative(x: Tensor) -> Tensor:
    """The tensor, so that the backward pass goes through it: other processes wait for its gradient, which has no rows."""
    if not x.stop_gradient or not oar.is_grad_enabled():
        return x
    leaf = x.detach()
    leaf.stop_gradient = False
    return leaf
