"""Layers that are laid out over a grid of processes by the names of their sublayers."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.distributed.auto_parallel import _sharded
from oar.distributed.auto_parallel.api import reshard
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.distributed.auto_parallel.optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, get_mesh, set_mesh
from oar.distributed.placement import Placement, Replicate, Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oar import nn

__all__ = [
    "ColWiseParallel",
    "PrepareLayerInput",
    "PrepareLayerOutput",
    "RowWiseParallel",
    "SequenceParallelBegin",
    "SequenceParallelDisable",
    "SequenceParallelEnable",
    "SequenceParallelEnd",
    "parallelize",
]

_STAGES = {1: ShardingStage1, 2: ShardingStage2, 3: ShardingStage3}


def _place(param: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> None:
    """Lays out a parameter, which stays the same object: an optimizer has it already."""
    if param.is_dist():
        return
    attr = DistAttr.of("parallelize", mesh, placements, param.ndim)
    if _sharded.is_real():
        with oar.no_grad():
            param._become(_sharded.lay_out("parallelize", param.detach(), mesh, attr.placements))
    else:
        param.__dict__["_dist_attr"] = attr


def _along_mp(mesh: ProcessMesh, placement: Placement, now: Sequence[Placement] | None = None) -> list[Placement]:
    placements: list[Placement] = list(now) if now is not None else [Replicate() for _ in range(mesh.ndim)]
    placements[mesh.dim_names.index("mp")] = placement
    return placements


def _first_changed(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(values, tuple):
        return (change(values[0]), *values[1:])
    return change(values)


def _split(values: Any, mesh: ProcessMesh, transposes: bool) -> Any:
    """Cuts the sequence over the axis mp: the axis that dp does not cut."""

    def change(x: Tensor) -> Tensor:
        if x.ndim != 3:
            raise ValueError(f"[parallelize] the sequence of a tensor with 3 axes can be cut, not of shape {x.shape}.")
        x = x.transpose([1, 0, 2]) if transposes else x
        batch = x.placements[mesh.dim_names.index("dp")] if x.is_dist() and "dp" in mesh.dim_names else Replicate()
        return reshard(x, mesh, _along_mp(mesh, Shard(1 if batch.is_shard(0) else 0), x.placements))

    return _first_changed(values, change)


def _joined(values: Any, mesh: ProcessMesh, transposes: bool) -> Any:
    def change(x: Tensor) -> Tensor:
        x = reshard(x, mesh, _along_mp(mesh, Replicate(), x.placements))
        return x.transpose([1, 0, 2]) if transposes else x

    return _first_changed(values, change)


class PlanBase:
    """What ``parallelize`` does with the layers of a name."""

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """Changes a layer.

        Args:
            layer: the layer.
            process_mesh: the grid.
            shard_param_list: the names of its parameters to cut; none means those that the plan knows.
        """
        raise NotImplementedError(f"{type(self).__name__} says nothing. hint: use ColWiseParallel or one of its like.")


class ColWiseParallel(PlanBase):
    """Cuts the weight of a ``Linear`` or ``Embedding`` along its second axis, and the bias, over the axis ``mp`` of the grid.

    Args:
        gather_output: whether the output is gathered.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> mesh = dist.ProcessMesh([[0]], dim_names=["dp", "mp"])
        >>> config = {"mp_config": {"parallelize_plan": {"0": dist.ColWiseParallel()}}}
        >>> net, _ = dist.parallelize(oar.nn.Sequential(oar.nn.Linear(2, 4)), mesh=mesh, config=config)
        >>> net[0].weight.placements, net[0].bias.placements
        ([Replicate(), Shard(dim=1)], [Replicate(), Shard(dim=0)])
        >>> dist.set_mesh(None)
    """

    def __init__(self, gather_output: bool = False) -> None:
        self.gather_output = gather_output

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        for name in shard_param_list or ("weight", "bias"):
            param = getattr(layer, name, None)
            if param is None:
                continue
            if param.ndim not in (1, 2):
                raise ValueError(f"[ColWiseParallel] {name} has shape {param.shape}, but must have one or two axes.")
            _place(param, process_mesh, _along_mp(process_mesh, Shard(param.ndim - 1)))
        if self.gather_output:
            layer.register_forward_post_hook(lambda _, inputs, outputs: _joined(outputs, process_mesh, False))


class RowWiseParallel(PlanBase):
    """Cuts the weight of a ``Linear`` or ``Embedding`` along its first axis over the axis ``mp`` of the grid.

    Args:
        is_input_parallel: whether the input is cut already; else it is cut along the sequence.

    Examples:
        >>> import oar.distributed as dist
        >>> dist.RowWiseParallel().is_input_parallel
        True
    """

    def __init__(self, is_input_parallel: bool = True) -> None:
        self.is_input_parallel = is_input_parallel

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        for name in [name for name in shard_param_list if name != "bias"] or ["weight"]:
            param = getattr(layer, name, None)
            if param is None:
                continue
            if param.ndim != 2:
                raise ValueError(f"[RowWiseParallel] {name} has shape {param.shape}, but must have two axes.")
            _place(param, process_mesh, _along_mp(process_mesh, Shard(0)))
        if not self.is_input_parallel:
            layer.register_forward_pre_hook(lambda _, inputs: _split(inputs, process_mesh, False))


class _Prepare(PlanBase):
    def __init__(self, fn: Callable[[ProcessMesh], Callable[..., Any]] | None = None) -> None:
        if not callable(fn):
            raise AssertionError(f"[{type(self).__name__}] fn must be a function of the grid that returns a hook, not {fn!r}.")
        self.fn = fn


class PrepareLayerInput(_Prepare):
    """Registers a hook for the inputs of a layer.

    Args:
        fn: gets the grid as ``process_mesh``, and returns a hook for ``register_forward_pre_hook``.

    Examples:
        >>> import oar.distributed as dist
        >>> plan = dist.PrepareLayerInput(lambda process_mesh: lambda layer, inputs: inputs)
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        layer.register_forward_pre_hook(self.fn(process_mesh=process_mesh))  # type: ignore[call-arg]


class PrepareLayerOutput(_Prepare):
    """Registers a hook for the outputs of a layer.

    Args:
        fn: gets the grid as ``process_mesh``, and returns a hook for ``register_forward_post_hook``.

    Examples:
        >>> import oar.distributed as dist
        >>> plan = dist.PrepareLayerOutput(lambda process_mesh: lambda layer, inputs, outputs: outputs)
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        layer.register_forward_post_hook(self.fn(process_mesh=process_mesh))  # type: ignore[call-arg]


class _Sequence(PlanBase):
    """Args:
        need_transpose: whether batch and sequence change places, so that the sequence is the first axis where it is cut.
    """  # fmt: skip

    def __init__(self, need_transpose: bool = True) -> None:
        self.need_transpose = need_transpose

    def _splits_output(self, layer: nn.Layer, mesh: ProcessMesh) -> None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: _split(outputs, mesh, self.need_transpose))

    def _joins_input(self, layer: nn.Layer, mesh: ProcessMesh) -> None:
        layer.register_forward_pre_hook(lambda _, inputs: _joined(inputs, mesh, self.need_transpose))


class SequenceParallelBegin(_Sequence):
    """Cuts the sequence of the output of a layer over the axis ``mp``: the last layer before the range that works on parts.

    Args:
        need_transpose: whether the output is [batch, sequence, width], and becomes [sequence, batch, width].

    Examples:
        >>> import oar.distributed as dist
        >>> dist.SequenceParallelBegin().need_transpose
        True
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        self._splits_output(layer, process_mesh)


class SequenceParallelEnd(_Sequence):
    """Gathers the sequence of the input of a layer: the first layer after the range that works on parts.

    Args:
        need_transpose: whether the input is [sequence, batch, width], and becomes [batch, sequence, width].

    Examples:
        >>> import oar.distributed as dist
        >>> dist.SequenceParallelEnd().need_transpose
        True
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        self._joins_input(layer, process_mesh)


class SequenceParallelEnable(PlanBase):
    """Lets one layer work on parts of the sequence. Its input and output are [batch, sequence, width].

    Examples:
        >>> import oar.distributed as dist
        >>> plan = dist.SequenceParallelEnable()
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        layer.register_forward_pre_hook(lambda _, inputs: _split(inputs, process_mesh, True))
        layer.register_forward_post_hook(lambda _, inputs, outputs: _joined(outputs, process_mesh, True))


class SequenceParallelDisable(_Sequence):
    """Lets one layer within the range work on the whole sequence.

    Args:
        need_transpose: whether the layer takes and returns [batch, sequence, width].

    Examples:
        >>> import oar.distributed as dist
        >>> dist.SequenceParallelDisable(False).need_transpose
        False
    """

    def apply(self, layer: nn.Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        self._joins_input(layer, process_mesh)
        self._splits_output(layer, process_mesh)


def _apply_plans(model: nn.Layer, mesh: ProcessMesh, plans: dict[str, Any]) -> None:
    if "mp" not in mesh.dim_names:
        raise AssertionError(f"[parallelize] mp_config needs an axis 'mp'; the grid has {mesh.dim_names}.")
    unused = dict.fromkeys(plans)
    for name, layer in model.named_sublayers():
        for key, given in plans.items():
            pattern, _, last = key.rpartition(".")
            own = bool(pattern) and isinstance(getattr(layer, last, None), Tensor)
            if not re.fullmatch(pattern if own else key, name):
                continue
            unused.pop(key, None)
            for plan in given if isinstance(given, list) else [given]:
                if not isinstance(plan, PlanBase):
                    raise AssertionError(f"[parallelize] the plan for {key!r} must be ColWiseParallel or one of its like, not {plan!r}.")
                plan.apply(layer, mesh, [last] if own else [])
    if unused:
        warnings.warn(f"[parallelize] no layer has the names {list(unused)}", stacklevel=3)


def parallelize(
    model: nn.Layer, optimizer: Any = None, mesh: ProcessMesh | None = None, config: dict[str, Any] | None = None
) -> tuple[nn.Layer, Any]:
    """Lays out a model and its optimizer over a grid of processes.

    Args:
        model: the model, which is changed.
        optimizer: its optimizer, an ``AdamW`` or ``SGD``.
        mesh: the grid, with axes ``dp`` and ``mp``; by default the one that ``set_mesh`` set.
        config: ``{"dp_config": {"sharding_level": 0 to 3}, "mp_config": {"parallelize_plan": {name: plan}}}``. A name is that of a
            layer, or of a parameter such as ``"lm_head.weight"``, and may be a regular expression; a plan is ``ColWiseParallel``,
            ``RowWiseParallel``, one of the sequence, or a list of them. Parameters without a plan are replicated.

    Returns:
        the model and the optimizer.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> net = oar.nn.Sequential(oar.nn.Linear(2, 4), oar.nn.Linear(4, 2))
        >>> adamw = oar.optimizer.AdamW(parameters=net.parameters())
        >>> plan = {"0": dist.ColWiseParallel(), "1": dist.RowWiseParallel()}
        >>> mesh = dist.ProcessMesh([[0]], dim_names=["dp", "mp"])
        >>> net, adamw = dist.parallelize(net, adamw, mesh, {"mp_config": {"parallelize_plan": plan}})
        >>> net[1].weight.placements
        [Replicate(), Shard(dim=0)]
        >>> dist.set_mesh(None)
    """
    if config is None:
        warnings.warn("[parallelize] there is no config: nothing is done", stacklevel=2)
        return model, optimizer
    if mesh is not None:
        if not isinstance(mesh, ProcessMesh):
            raise AssertionError(f"[parallelize] mesh must be a ProcessMesh, not {type(mesh).__name__}.")
        set_mesh(mesh)
    grid = get_mesh()
    if grid is None:
        raise AssertionError("[parallelize] there is no grid. hint: pass mesh, or call set_mesh() first.")
    if config.get("pp_config") is not None:
        raise NotImplementedError("[parallelize] pp_config: Oar does not cut a model into stages yet. hint: use dp_config and mp_config.")
    _apply_plans(model, grid, (config.get("mp_config") or {}).get("parallelize_plan") or {})
    for tensor in [*model.parameters(), *(buffer for buffer in model.buffers() if buffer is not None)]:
        _place(tensor, grid, [Replicate()] * grid.ndim)
    level = int((config.get("dp_config") or {}).get("sharding_level") or 0)
    if level not in range(4):
        raise ValueError(f"[parallelize] sharding_level is {level}, but must be 0, 1, 2 or 3.")
    if optimizer is not None:
        optimizer = shard_optimizer(optimizer, _STAGES[level]("dp", grid) if level else None)
    return model, optimizer
