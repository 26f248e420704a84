"""``recompute_hybrid``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar._C import Tensor
from oar.distributed.fleet.recompute.recompute import run_block

__all__ = ["recompute_hybrid"]


def recompute_hybrid(ctx: dict[str, Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``recompute`` for a model whose layers are divided among the processes of a group.

    Args:
        ctx: the options: ``'mp_group'``, the group; ``'offload'`` (False), whether the inputs wait in the memory of the host;
            ``'partition'`` (False), whether each process keeps its part of them only. A group of one process keeps all.
        function: a layer or a function.
        args: its arguments.
        kwargs: its keyword arguments.

    Returns:
        what the function returns: a tensor, or a tuple.

    Examples:
        >>> import oar
        >>> from types import SimpleNamespace
        >>> from oar.incubate.distributed.fleet import recompute_hybrid
        >>> alone = SimpleNamespace(nranks=1, rank=0)
        >>> recompute_hybrid({'mp_group': alone}, oar.nn.Linear(3, 2), oar.ones([1, 3])).shape
        [1, 2]
    """
    group = ctx.get("mp_group")
    if group is None:
        raise AssertionError("[recompute_hybrid] ctx has no mp_group. Pass the group of processes that share the model: "
                             "{'mp_group': group}, or call recompute(), which needs none.")
    if getattr(group, "nranks", 1) > 1 and ctx.get("partition", False):
        raise NotImplementedError(f"[recompute_hybrid] partition=True divides inputs among the {group.nranks} processes of mp_group, "
                                  "which Oar cannot do yet. Pass partition=False: each process keeps them whole.")
    result = run_block(function, args, kwargs, offload=bool(ctx.get("offload", False)))
    if isinstance(result, Tensor):
        return result
    for tensor in result:
        if isinstance(tensor, Tensor) and not tensor.is_floating_point() and tensor.is_leaf:
            tensor.stop_gradient = True
    return tuple(result)
