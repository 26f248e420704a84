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
            ``'partition'`` (False), whether each process keeps its part of them only: those that all have, with a number of elements
            that the number of processes divides. The parts are joined before each run.
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
        function, args = _of_parts(function, args, group)
    result = run_block(function, args, kwargs, offload=bool(ctx.get("offload", False)))
    if isinstance(result, Tensor):
        return result
    for tensor in result:
        if isinstance(tensor, Tensor) and not tensor.is_floating_point() and tensor.is_leaf:
            tensor.stop_gradient = True
    return tuple(result)


def _of_parts(function: Callable[..., Any], args: tuple[Any, ...], group: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of parts of the arguments, and the parts of this process."""
    from oar.distributed.fleet.layers.mpu.mp_ops import joined, own_part

    shapes = {i: x.shape for i, x in enumerate(args) if isinstance(x, Tensor) and x.numel().item() % group.nranks == 0}
    parts = tuple(own_part(x.reshape([-1]), 0, group) if i in shapes else x for i, x in enumerate(args))

    def of_parts(*given: Any, **kwargs: Any) -> Any:
        whole = [joined(x, 0, group, shared=True).reshape(shapes[i]) if i in shapes else x for i, x in enumerate(given)]
        return function(*whole, **kwargs)

    return of_parts, parts
