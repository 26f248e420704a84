"""``group_sharded_parallel``: ZeRO, stages 1 to 3."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.distributed._reducer import buckets_of
from oar.distributed.checkpoint.sharded_weight import ShardedWeight, whole
from oar.distributed.communication.group import Group, _get_global_group
from oar.distributed.environment import get_world_size, job
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_gradscaler import looking_everywhere
from oar.distributed.parallel import sync_params_buffers
from oar.distributed.sharding._gathered import Gathering
from oar.distributed.sharding._on_disk import OnDisk
from oar.distributed.sharding._optimizer import ShardedOptimizer
from oar.distributed.sharding._pass import Gradients
from oar.distributed.sharding._unit import Unit
from oar.framework.parameter import Parameter
from oar.nn.layer.layers import Layer

__all__ = ["GroupSharded", "group_sharded_parallel", "save_group_sharded_model"]

_STAGES = {"os": 1, "os_g": 2, "p_g_os": 3}


class GroupSharded(Layer):
    """A network whose copies in several processes are trained together, with divided states: see ``group_sharded_parallel``.

    Args:
        layer: the network.
        stage: 1 divides the states of the optimiser, 2 the gradients too, 3 the parameters too.
        group: the processes.
        buffer_max_size: the size of buckets of gradients, in bytes.
        copies: processes with copies of the pieces.
        exclude: layers whose parameters stay whole, in stage 3.
        folder: where pieces lie; None means in memory.

    Examples:
        >>> import oar
        >>> from oar.distributed.sharding.group_sharded import GroupSharded
        >>> net = GroupSharded(oar.nn.Linear(2, 3), 3, oar.distributed.new_group([0]))
        >>> net(oar.ones([1, 2])).shape, list(net.sharded_state_dict())
        ([1, 3], ['weight', 'bias'])
    """

    def __init__(
        self, layer: Layer, stage: int, group: Group, buffer_max_size: float = 2**23, copies: Group | None = None,
        exclude: list[Any] | None = None, folder: OnDisk | None = None,
    ) -> None:  # fmt: skip
        super().__init__(layer.full_name() + "_group_sharded")
        self._layers, self.stage, self.group = layer, stage, group
        if group.nranks > 1:
            sync_params_buffers(layer, group, group.ranks[0])
        if copies is not None and copies.nranks > 1:
            sync_params_buffers(layer, copies, copies.ranks[0])
        parameters = _distinct(layer.parameters())
        self._kept = {id(p) for p in _excluded(layer, exclude)} if stage == 3 else set()
        trained = [p for p in parameters if not p.stop_gradient and (stage < 3 or id(p) in self._kept)]
        units: list[Unit] = []
        with oar.no_grad():
            for numbers in buckets_of(trained, buffer_max_size, buffer_max_size):
                units.append(Unit([trained[n] for n in numbers], group, True, stage == 1, copies))
            self._by_layer = self._units_by_layer(copies, folder) if stage == 3 else []
        self.units = units + [unit for unit in reversed(self._by_layer) if not unit.parameters[0].stop_gradient]
        self.gradients = Gradients(self.units, group)
        self._gathering: Gathering | None = None
        if self._by_layer:
            self._gathering = Gathering(layer, self._by_layer)
            self.gradients.done_with = self._gathering.done_with

    def _units_by_layer(self, copies: Group | None, folder: OnDisk | None) -> list[Unit]:
        """A unit for the parameters of each layer, for each dtype, those that are trained and those that are not."""
        units: list[Unit] = []
        seen = set(self._kept)
        for layer in self._layers.sublayers(include_self=True):
            kinds: dict[tuple[str, bool], list[Parameter]] = {}
            for parameter in layer._parameters.values():
                if parameter is not None and id(parameter) not in seen and parameter.numel().item():
                    seen.add(id(parameter))
                    kinds.setdefault((str(parameter.dtype), parameter.stop_gradient), []).append(parameter)
            units.extend(Unit(own, self.group, False, False, copies, None if folder is None else folder.moved) for own in kinds.values())
        return units

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._gathering is None:
            return self._layers(*inputs, **kwargs)
        if _C.is_capturing() or _C.static_active():
            raise NotImplementedError("[group_sharded_parallel] a network with divided parameters cannot be captured. hint: use the level 'os_g', "
                                      "and capture the forward pass.")
        try:
            with self._gathering.saving():
                return self._layers(*inputs, **kwargs)
        finally:
            self._gathering.forget()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of the block stay whole in this process. A later backward pass outside reduces them, with its own."""
        with self.gradients.paused():
            yield

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clears the gradients."""
        self.gradients.clear(forget_used=not set_to_zero)

    # states ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """All parameters are whole in the block; changes are lost afterwards. All processes enter it."""
        for unit in self._by_layer:
            unit.gather()
        try:
            yield
        finally:
            for unit in self._by_layer:
                unit.release()

    def get_all_parameters(self, convert2cpu: bool = False) -> list[Tensor]:
        """Makes all parameters whole, until the next forward pass. All processes call it.

        Args:
            convert2cpu: accepted for compatibility.
        """
        for unit in self._by_layer:
            unit.gather()
        return list(self._layers.parameters())

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The states of the wrapped network, under its own names. In stage 3 they must be whole: see ``whole_parameters``."""
        if any(unit.whole is None for unit in self._by_layer):
            raise RuntimeError("[state_dict] the parameters are divided over the processes. hint: enter whole_parameters() in all processes, "
                               "or call save_group_sharded_model, or save sharded_state_dict() by oar.distributed.save_state_dict.")
        return self._layers.state_dict(*args, **kwargs)

    def sharded_state_dict(self, prefix: str = "") -> dict[str, ShardedWeight]:
        """The states of this process as pieces, for ``oar.distributed.save_state_dict`` and ``load_state_dict``.

        Args:
            prefix: what the names begin with.
        """
        pieces = {id(piece.whole): (unit, piece) for unit in self._by_layer for piece in unit.pieces}
        cut = {id(p) for unit in self._by_layer for p in unit.parameters}
        result = {}
        for name, tensor in self._layers.state_dict().items():
            key = f"{prefix}{name}"
            if id(tensor) in pieces:
                result[key] = pieces[id(tensor)][1].described(key, pieces[id(tensor)][1].parameter.detach())
            elif id(tensor) not in cut:
                result[key] = whole(key, tensor)
        return result

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Sets the states of the wrapped network from whole tensors; each process takes its pieces."""
        if not self._by_layer:
            return self._layers.set_state_dict(state_dict, use_structured_name)
        for unit in self._by_layer:
            unit.gather()
        misfits = self._layers.set_state_dict(state_dict, use_structured_name)
        with oar.no_grad():
            for unit in self._by_layer:
                assert unit.whole is not None
                unit.own.copy_(unit.own_part(unit.whole))
                unit.release()
        return misfits

    set_dict = load_dict = set_state_dict


def _distinct(parameters: list[Any]) -> list[Any]:
    return list({id(p): p for p in parameters}.values())


def _excluded(layer: Layer, exclude: list[Any] | None) -> list[Any]:
    found = []
    for part in layer.sublayers(include_self=True):
        if exclude and (type(part).__name__ in exclude or id(part) in exclude):
            found.extend(part.parameters())
    return found


def group_sharded_parallel(
    model: Layer, optimizer: Any, level: str, scaler: Any = None, group: Group | None = None, offload: bool | str = False,
    sync_buffers: bool = False, buffer_max_size: int = 2**23, segment_size: int = 2**20, sync_comm: bool = False,
    dp_group: Group | None = None, exclude_layer: list[Any] | None = None,
) -> tuple[Layer, Any, Any]:  # fmt: skip
    """Divides what training needs besides activations over the processes that train copies of a network (ZeRO). The numbers are those
    of ``DataParallel``.

    Args:
        model: the network.
        optimizer: its optimiser, before the first step. It must update each element by itself, as AdamW does and Lamb does not.
        level: what is divided: ``'os'`` the states of the optimiser, ``'os_g'`` the gradients too, ``'p_g_os'`` the parameters too.
        scaler: a ``GradScaler``, which then looks for infinities in all processes.
        group: the processes; None means all.
        offload: True keeps states in the memory of the host, where those of the CPU are anyway; the path of a folder keeps the states of
            the optimiser, and with ``'p_g_os'`` the pieces of parameters, in files there.
        sync_buffers: whether each forward pass begins with the buffers of the first process: False. They are made equal once.
        buffer_max_size: how many bytes of gradients are sent together.
        segment_size: accepted for compatibility: parameters are gathered layer by layer, small ones together.
        sync_comm: accepted for compatibility.
        dp_group: processes that have copies of the pieces of this one; gradients are averaged over them too.
        exclude_layer: with ``'p_g_os'``, layers whose parameters stay whole: names of classes, or ``id(layer)``.

    Returns:
        the network, the optimiser and the scaler to use from now on.

    Examples:
        >>> import oar
        >>> from oar.distributed.sharding import group_sharded_parallel
        >>> net = oar.nn.Linear(4, 2)
        >>> optimizer = oar.optimizer.AdamW(0.1, parameters=net.parameters())
        >>> net, optimizer, _ = group_sharded_parallel(net, optimizer, "p_g_os")
        >>> net(oar.ones([3, 4])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
    """
    if level not in _STAGES:
        raise ValueError(f"[group_sharded_parallel] level is {level!r}, but it must be 'os', 'os_g' or 'p_g_os'.")
    if not isinstance(model, Layer):
        raise TypeError(f"[group_sharded_parallel] model must be a layer, not {type(model).__name__}.")
    if sync_buffers:
        raise NotImplementedError("[group_sharded_parallel] sync_buffers=True is not available: buffers are made equal once. hint: pass False, "
                                  "and broadcast buffers in the script.")
    if get_world_size() > 1 and not job.started:
        raise RuntimeError("[group_sharded_parallel] the processes are not connected. hint: call init_parallel_env() first.")
    among = _get_global_group() if group is None else group
    if among.rank < 0:
        raise ValueError(f"[group_sharded_parallel] this process is not in the group, which has {among.ranks}.")
    if among.nranks == 1 and dp_group is not None and dp_group.nranks > 1:
        raise ValueError("[group_sharded_parallel] the group has one process, so nothing is divided. hint: use DataParallel over dp_group.")
    from oar.distributed.sharding._optimizer import _check

    _check(optimizer)
    folder = OnDisk(offload) if isinstance(offload, (str, os.PathLike)) else None
    net = GroupSharded(model, _STAGES[level], among, buffer_max_size, dp_group, exclude_layer, folder)
    sharded = ShardedOptimizer(optimizer, net.units, net.gradients, among, folder)
    return net, sharded, scaler if scaler is None else looking_everywhere(scaler, among)


def save_group_sharded_model(model: Layer, output: str, optimizer: Any = None) -> None:
    """Saves a network and its optimiser of ``group_sharded_parallel`` as a single process has them: ``model.pdmodel`` and
    ``model.pdopt``, which ``oar.load`` reads. All processes call it; the first writes.

    Args:
        model: the network that ``group_sharded_parallel`` returned.
        output: the folder.
        optimizer: the optimiser that it returned; None saves the network alone.

    Examples:
        >>> import tempfile
        >>> import oar
        >>> from oar.distributed.sharding import group_sharded_parallel, save_group_sharded_model
        >>> net = oar.nn.Linear(4, 2)
        >>> net, optimizer, _ = group_sharded_parallel(net, oar.optimizer.SGD(0.1, parameters=net.parameters()), "os_g")
        >>> folder = tempfile.mkdtemp()
        >>> save_group_sharded_model(net, folder, optimizer)
        >>> sorted(oar.load(folder + "/model.pdmodel"))
        ['bias', 'weight']
    """
    if not isinstance(model, GroupSharded):
        raise TypeError(f"[save_group_sharded_model] model must be what group_sharded_parallel returned, not {type(model).__name__}.")
    if optimizer is not None and not isinstance(optimizer, ShardedOptimizer):
        raise TypeError("[save_group_sharded_model] optimizer must be what group_sharded_parallel returned, not "
                        f"{type(optimizer).__name__}.")
    if os.path.isfile(output):
        raise ValueError(f"[save_group_sharded_model] output is '{output}', which is a file. hint: pass a folder.")
    states = None if optimizer is None else optimizer.whole_state_dict()
    with model.whole_parameters():
        if model.group.rank == 0:
            oar.save(model.state_dict(), os.path.join(output, "model.pdmodel"))
            if states is not None:
                oar.save(states, os.path.join(output, "model.pdopt"))
    oar.distributed.barrier(model.group)
