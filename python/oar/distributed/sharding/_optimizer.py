"""An optimiser that has the state of its own pieces only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.checkpoint.sharded_weight import ShardedWeight, whole
from oar.distributed.communication import ReduceOp, all_gather_object, all_reduce, stream
from oar.distributed.communication.group import Group
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer
from oar.distributed.sharding._on_disk import OnDisk
from oar.distributed.sharding._pass import Gradients
from oar.distributed.sharding._unit import Unit
from oar.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, squared_norms
from oar.optimizer import Optimizer

__all__ = ["ShardedOptimizer"]


class _ClipByGlobalNorm(ClipGradByGlobalNorm):
    """By the norm of gradients of which each process has a part."""

    def __init__(self, clip: ClipGradByGlobalNorm, group: Group) -> None:
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._group = group

    def _squared_norm(self, params_grads: Sequence[tuple[Tensor, Any]]) -> Tensor | None:
        own = super()._squared_norm(params_grads)
        total = oar.zeros([], "float64") if own is None else own.astype("float64")
        all_reduce(total, ReduceOp.SUM, self._group)
        return total


class _ClipByNorm(ClipGradByNorm):
    """Each gradient by its norm, of which several processes may have a part."""

    def __init__(self, clip: ClipGradByNorm, names: list[str], group: Group) -> None:
        super().__init__(clip.clip_norm)
        self._names, self._group = {name: place for place, name in enumerate(names)}, group

    def _clip(self, params_grads: list[tuple[Tensor, Any]]) -> list[tuple[Tensor, Any]]:
        squares = oar.zeros([len(self._names)], "float64")
        for parameter, gradient in params_grads:
            squares[self._names[parameter.name]] = squared_norms([gradient]).astype("float64")
        all_reduce(squares, ReduceOp.SUM, self._group)
        scales = self.clip_norm / oar.clip(oar.sqrt(squares), min=self.clip_norm)
        return [(p, g * scales[self._names[p.name]].astype(g.dtype) if getattr(p, "need_clip", True) else g) for p, g in params_grads]


class ShardedOptimizer(WrappedOptimizer):
    """An optimiser that updates the pieces of parameters that this process owns.

    Args:
        optimizer: the optimiser, before its first step.
        units: the parameters in vectors.
        gradients: what reduces their gradients.
        group: the processes.
        folder: where its states lie; None means in memory.
    """

    def __init__(self, optimizer: Optimizer, units: list[Unit], gradients: Gradients, group: Group, folder: OnDisk | None) -> None:
        _check(optimizer)
        super().__init__(optimizer)
        self._units, self._gradients, self._group = units, gradients, group
        pieces = {id(piece.whole): piece.parameter for unit in units for piece in unit.pieces}
        trained = {id(p) for unit in units for p in unit.parameters}
        self._names = [p.name for p in optimizer._flat if id(p) in trained]
        for owned in optimizer._groups:
            names = [p.name for p in owned["params"]]
            owned["grad_clip"] = _everywhere(owned["grad_clip"], names, group)
        optimizer._train_instead(lambda p: pieces.get(id(p)) if id(p) in trained else p)
        if folder is not None:
            _keep_on_disk(optimizer, folder)
        # Whoever still has the inner optimiser takes the same steps.
        optimizer.step = self.step  # type: ignore[method-assign]
        optimizer.clear_grad = optimizer.clear_gradients = self.clear_grad  # type: ignore[method-assign]

    def step(self) -> None:
        """Updates the pieces of this process, and gets those of the others where parameters stay whole."""
        self._stepped(lambda: type(self._inner_opt).step(self._inner_opt))

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Updates the parameters with the gradients of ``loss.backward()``."""
        if parameters is not None or no_grad_set:
            raise ValueError("[minimize] an optimiser whose states are divided updates all parameters. hint: leave out parameters and "
                             "no_grad_set.")
        self.step()
        return [], []

    def _stepped(self, update: Callable[[], None]) -> None:
        self._gradients.agree_on_unused()
        update()
        for task in [unit.publish() for unit in self._units]:
            if task is not None:
                task.wait()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clears the gradients. With ``set_to_zero``, parameters that the next step does not use count as having zeros."""
        self._gradients.clear(forget_used=not set_to_zero)

    clear_gradients = clear_grad

    # states ------------------------------------------------------------------------------------

    def _states(self, of_all: bool) -> dict[str, dict[str, Tensor]]:
        """The states of each piece by the name of its parameter; with ``of_all`` also those that no step has created yet."""
        inner = self._inner_opt
        if of_all:
            inner._make_lasting(lambda: inner._make_buckets([attr["learning_rate"] for attr in inner._attrs]))
            inner._signature = None
        inner.state_dict()  # what is kept in another form is written
        found: dict[str, dict[str, Tensor]] = {}
        for stem, tensors in inner._accumulators.items():
            for name, tensor in tensors.items():
                found.setdefault(name, {})[stem] = tensor
        for which, stem in enumerate(("beta1_pow_acc", "beta2_pow_acc")):
            for name, powers in getattr(inner, "_powers", {}).items():
                found.setdefault(name, {})[stem] = powers[which]
        for name, master in inner._master_weights.items():
            found.setdefault(name, {})["master_weight"] = master
        return found

    def sharded_state_dict(self) -> dict[str, ShardedWeight]:
        """The states of this process as pieces, for ``oar.distributed.save_state_dict``. After ``load_state_dict`` has filled them, call
        ``load_sharded_state_dict``."""
        pieces = {piece.whole.name: piece for unit in self._units for piece in unit.pieces}
        result = {}
        for name, states in self._states(True).items():
            for stem, tensor in states.items():
                key = f"{name}.{stem}"
                is_cut = name in pieces and list(tensor.shape) == list(pieces[name].parameter.shape) and not self._is_number(stem)
                # Numbers are copied: those of several parameters may be one in memory.
                result[key] = pieces[name].described(key, tensor) if is_cut else whole(key, tensor.clone())
        return result

    def _is_number(self, stem: str) -> bool:
        """Whether a state is one number for each parameter."""
        return stem.endswith("pow_acc") or stem in self._inner_opt._numbers

    def load_sharded_state_dict(self, state: dict[str, ShardedWeight]) -> None:
        """Goes on from states that ``oar.distributed.load_state_dict`` has filled.

        Args:
            state: what ``sharded_state_dict`` returned.
        """
        given = {key: piece.local_tensor.clone() for key, piece in state.items()}
        local: dict[str, Any] = {}
        masters = {}
        for name, states in self._states(True).items():
            for stem, tensor in states.items():
                value = given[f"{name}.{stem}"]
                if stem == "master_weight":
                    masters[name] = value
                else:
                    local[tensor.name] = value
        if masters:
            local["master_weights"] = masters
        if isinstance(self._learning_rate, oar.optimizer.lr.LRScheduler):
            local["LR_Scheduler"] = self._learning_rate.state_dict()
        self._inner_opt.set_state_dict(local)

    def whole_state_dict(self) -> dict[str, Any] | None:
        """The states of all pieces, put together: as a single process has them. All processes call it; the first of the group gets
        it, the others None."""
        states = self._states(False)
        known = self._known_everywhere(states)
        result: dict[str, Any] = {}
        masters: dict[str, Tensor] = {}
        for unit in self._units:
            for stem, dtype in sorted({(stem, known[p.name][stem][1]) for p in unit.parameters for stem in known.get(p.name, {})}):
                views = unit.views(self._gathered(unit, stem, dtype, states))
                for parameter, view in zip(unit.parameters, views if self._group.rank == 0 else ()):
                    if stem in known.get(parameter.name, {}):
                        full, _, number = known[parameter.name][stem]
                        value = view.clone() if number is None else oar.to_tensor(number)
                        value.name = full
                        (masters if stem == "master_weight" else result)[parameter.name if stem == "master_weight" else full] = value
        if masters:
            result["master_weights"] = masters
        if isinstance(self._learning_rate, oar.optimizer.lr.LRScheduler):
            result["LR_Scheduler"] = self._learning_rate.state_dict()
        return result if self._group.rank == 0 else None

    def _known_everywhere(self, states: dict[str, dict[str, Tensor]]) -> dict[str, dict[str, tuple[str, str, Any]]]:
        """The name and dtype of each state of any process, and its content where that is a number."""
        own = {name: {stem: (t.name, t.dtype.name, t.numpy() if self._is_number(stem) else None) for stem, t in found.items()}
               for name, found in states.items()}
        described: list[dict[str, dict[str, tuple[str, str, Any]]]] = []
        all_gather_object(described, own, self._group)
        known: dict[str, dict[str, tuple[str, str, Any]]] = {}
        for one in described:
            for name, found in one.items():
                known.setdefault(name, {}).update(found)
        return known

    def _gathered(self, unit: Unit, stem: str, dtype: str, states: dict[str, dict[str, Tensor]]) -> Tensor:
        """One state of all parameters of a unit, as a whole vector."""
        vector = oar.zeros([unit.part], dtype)
        for name, part in unit.cut(vector).items():
            state = states.get(name, {}).get(stem)
            if state is not None and state.shape == part.shape:
                part.copy_(state)
        everything = oar.empty([unit.length], dtype)
        stream.all_gather(everything, vector, self._group)
        return everything

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads states: those of a single process, of which this one takes its pieces, or those of ``state_dict()``."""
        pieces = {piece.whole.name: piece for unit in self._units for piece in unit.pieces}
        local: dict[str, Any] = {}
        for key, value in state_dict.items():
            if key == "master_weights":
                local[key] = {name: _cut(pieces[name], master) for name, master in value.items() if name in pieces}
            elif key == "LR_Scheduler":
                local[key] = value
            else:
                owner = max((name for name in self._names if key.startswith(f"{name}_")), key=len, default=None)
                if owner is None or owner in pieces:
                    local[key] = value if owner is None else _cut(pieces[owner], value)
        self._inner_opt.set_state_dict(local)

    set_dict = load_state_dict = set_state_dict


def _cut(piece: Any, value: Any) -> Any:
    if list(value.shape) != list(piece.whole.shape) or value.size == 1:
        return value
    flat = value.reshape([-1])[piece.begin : piece.end]
    return flat.clone() if isinstance(flat, Tensor) else flat.copy()


def _check(optimizer: Any) -> None:
    name = type(optimizer).__name__
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"[group_sharded_parallel] optimizer must be an optimiser of oar.optimizer, not {name}.")
    if not optimizer._by_element:
        raise NotImplementedError(f"[group_sharded_parallel] {name} computes with whole parameters, and each process has a part of them. hint: "
                                  "use an optimiser that updates each element by itself, such as AdamW.")
    if optimizer._accumulators or optimizer._accumulators_holder or optimizer._master_weights:
        raise RuntimeError(f"[group_sharded_parallel] the {name} has states already. hint: divide it before its first step and before "
                           "set_state_dict().")


def _everywhere(clip: Any, names: list[str], group: Group) -> Any:
    if type(clip) is ClipGradByGlobalNorm:
        return _ClipByGlobalNorm(clip, group)
    if type(clip) is ClipGradByNorm:
        return _ClipByNorm(clip, names, group)
    if clip is None or type(clip) is ClipGradByValue:
        return clip
    raise NotImplementedError(f"[group_sharded_parallel] grad_clip is a {type(clip).__name__}, which sees only a part of the gradients of "
                              "each process. hint: use a clip of oar.nn.")


def _keep_on_disk(optimizer: Any, folder: OnDisk) -> None:
    first_state, first_master = optimizer._initial_state, optimizer._master_weight

    def initial_state(name: str, param: Tensor) -> Tensor:
        return folder.moved(first_state(name, param))

    def master_weight(param: Tensor) -> Tensor:
        if param.name not in optimizer._master_weights:
            made = first_master(param)
            made._become(folder.moved(made))
        return first_master(param)

    optimizer._initial_state, optimizer._master_weight = initial_state, master_weight
