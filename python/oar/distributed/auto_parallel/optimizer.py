"""An optimizer whose state is laid out over a grid of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.auto_parallel import _sharded
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, get_mesh
from oar.distributed.placement import Placement, Replicate, Shard
from oar.optimizer import SGD, AdamW, Optimizer

__all__ = ["ShardingStage1", "ShardingStage2", "ShardingStage3", "shard_optimizer", "shard_scaler"]


class _Stage:
    """How the state of a parameter is laid out.

    Args:
        sharding_mesh_dim: the axis of the grid that cuts the state, by number or name.
        mesh: the grid; by default the one that ``set_mesh`` set.
    """

    def __init__(self, sharding_mesh_dim: int | str, mesh: ProcessMesh | None = None) -> None:
        self._sharding_mesh_dim, self._mesh = sharding_mesh_dim, mesh

    def _axis(self) -> int:
        mesh = get_mesh() or self._mesh
        if mesh is None:
            raise ValueError(f"[{type(self).__name__}] there is no mesh. hint: pass mesh, or call set_mesh() first.")
        return mesh._axis(self._sharding_mesh_dim)

    def _placements(self, param: Tensor) -> list[Placement]:
        """The parameter's, with its first axis that is whole cut along the axis of the grid."""
        placements: list[Placement] = list(param.placements)
        cut = {placement.get_dim() % param.ndim for placement in placements if isinstance(placement, Shard)}
        free = [dim for dim in range(param.ndim) if dim not in cut]
        if free:
            placements[self._axis()] = Shard(free[0])
        return placements

    def __call__(self, key: str, param: Tensor, tensor: Tensor) -> Tensor:
        """Lays out ``tensor``, the state ``key`` of a parameter; numbers that all elements share are replicated."""
        if param.is_dist():
            shares = "beta" in key or list(tensor.shape) != list(param.shape)
            placements = [Replicate()] * param.process_mesh.ndim if shares else self._placements(param)
            if _sharded.is_real():
                return _sharded.lay_out("shard_optimizer", tensor, param.process_mesh, placements)
            tensor.__dict__["_dist_attr"] = DistAttr.of("shard_optimizer", param.process_mesh, placements, tensor.ndim)
        return tensor


class _Whole(_Stage):
    """The state of a parameter is laid out as the parameter."""

    def _placements(self, param: Tensor) -> list[Placement]:
        return list(param.placements)


class ShardingStage1(_Stage):
    """For ``shard_optimizer``: an axis of the grid cuts the state of the optimizer.

    Args:
        sharding_mesh_dim: the axis of the grid, by number or name.
        mesh: the grid; by default the one that ``set_mesh`` set.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> mesh = dist.ProcessMesh([0], dim_names=["x"])
        >>> layer = dist.shard_layer(oar.nn.Linear(4, 4), mesh)
        >>> adamw = oar.optimizer.AdamW(parameters=layer.parameters())
        >>> optimizer = dist.shard_optimizer(adamw, dist.ShardingStage1("x", mesh))
        >>> layer(oar.ones([2, 4])).sum().backward()
        >>> optimizer.step()
        >>> adamw._get_accumulator("moment1", layer.weight).placements
        [Shard(dim=0)]
    """


class ShardingStage2(_Stage):
    """For ``shard_optimizer``: an axis of the grid cuts the state of the optimizer and, in a step, the gradients.

    Args:
        sharding_mesh_dim: the axis of the grid, by number or name.
        mesh: the grid; by default the one that ``set_mesh`` set.

    Examples:
        >>> import oar.distributed as dist
        >>> stage = dist.ShardingStage2("x", dist.ProcessMesh([0], dim_names=["x"]))
    """


class ShardingStage3(_Stage):
    """For ``shard_optimizer``: an axis of the grid cuts the state of the optimizer and the parameters.

    Args:
        sharding_mesh_dim: the axis of the grid, by number or name.
        mesh: the grid; by default the one that ``set_mesh`` set.

    Examples:
        >>> import oar.distributed as dist
        >>> stage = dist.ShardingStage3("x", dist.ProcessMesh([0], dim_names=["x"]))
    """

    def _shard_parameter(self, param: Tensor) -> None:
        if param.is_dist() and _sharded.is_real():
            with oar.no_grad():
                param._become(_sharded.lay_out("shard_optimizer", param.detach(), param.process_mesh, self._placements(param)))
        elif param.is_dist():
            param.__dict__["_dist_attr"] = DistAttr.of("shard_optimizer", param.process_mesh, self._placements(param), param.ndim)


class _ShardOptimizer:
    """The optimizer; states that a step creates are laid out by a function."""

    def __init__(self, optimizer: Optimizer, shard_fn: Callable[[str, Tensor, Tensor], Tensor], steps: int) -> None:
        self._inner_opt, self._shard_fn, self.gradient_accumulation_steps = optimizer, shard_fn, steps
        if _sharded.is_real():
            first = optimizer._initial_state
            optimizer._initial_state = lambda name, param: shard_fn(name, param, first(name, param))  # type: ignore[method-assign]

    def step(self) -> None:
        """A step of the optimizer."""
        self._inner_opt.step()
        self._lay_out()

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer, as its own ``minimize`` takes it."""
        made = self._inner_opt.minimize(*args, **kwargs)
        self._lay_out()
        return made

    def _lay_out(self) -> None:
        if _sharded.is_real():
            return  # states are made so
        params = {param.name: param for param in self._inner_opt._flat}
        for key, states in self._inner_opt._accumulators.items():
            for name, state in states.items():
                if not state.is_dist():
                    laid_out = self._shard_fn(key, params[name], state)
                    state.__dict__["_dist_attr"] = laid_out.dist_attr()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner_opt"], name)


def shard_optimizer(
    optimizer: Optimizer, shard_fn: Callable[[str, Tensor, Tensor], Tensor] | None = None, gradient_accumulation_steps: int = 1
) -> Any:
    """An optimizer whose state is laid out over the grid of its parameters.

    Args:
        optimizer: an ``AdamW`` or ``SGD``.
        shard_fn: how: ``ShardingStage1``, ``ShardingStage2`` or ``ShardingStage3``; by default as the parameters.
        gradient_accumulation_steps: over how many steps a program adds gradients.

    Returns:
        the optimizer, with everything that the given one has.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> layer = dist.shard_layer(oar.nn.Linear(2, 2), dist.ProcessMesh([0]))
        >>> optimizer = dist.shard_optimizer(oar.optimizer.SGD(0.1, parameters=layer.parameters()))
        >>> layer(oar.ones([1, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
    """
    if not isinstance(optimizer, (AdamW, SGD)):
        raise AssertionError(f"[shard_optimizer] optimizer must be an AdamW or SGD, not {type(optimizer).__name__}.")
    stage = shard_fn if shard_fn is not None else _Whole(0)
    if not isinstance(stage, _Stage):
        raise AssertionError(f"[shard_optimizer] shard_fn must be a ShardingStage1, 2 or 3, not {type(stage).__name__}.")
    if not isinstance(stage, _Whole):
        stage._axis()
    if isinstance(stage, ShardingStage3):
        for param in optimizer._flat:
            stage._shard_parameter(param)
    return _ShardOptimizer(optimizer, stage, gradient_accumulation_steps)


def shard_scaler(scaler: Any) -> Any:
    """A gradient scaler for parameters that are laid out over processes.

    Args:
        scaler: an ``oar.amp.GradScaler``.

    Returns:
        the scaler itself: whether a gradient is finite is asked of the whole, so all processes get one answer.

    Examples:
        >>> import oar
        >>> scaler = oar.distributed.shard_scaler(oar.amp.GradScaler(init_loss_scaling=2.0))
        >>> scaler.scale(oar.ones([1])).item()
        2.0
    """
    if not isinstance(scaler, oar.amp.GradScaler):
        raise TypeError(f"[shard_scaler] scaler must be a GradScaler, not {type(scaler).__name__}.")
    return scaler
