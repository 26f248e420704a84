"""The states of an ``Optimizer`` by name: created when needed, saved and loaded."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework._misfits import Misfits, shape_of
from oar.framework.persistent import persistent
from oar.optimizer.lr import LRScheduler

# In the names of states that belong to a master weight. They may have been saved without one, in float32.
_MASTER = re.compile(r"_fp32_master_\d+")


class OptimizerState:
    """What ``Optimizer`` does with the states of its parameters."""

    # States that are one number per parameter, and that Paddle has once per element.
    _numbers: tuple[str, ...] = ()
    # What ``Optimizer`` itself has.
    _name: str | None
    _learning_rate: float | LRScheduler
    _accumulators: dict[str, dict[str, Tensor]]
    _accumulators_holder: dict[str, Any]
    _master_weights: dict[str, Tensor]
    _without_state: list[str]
    _flat: list[Tensor]
    _signature: list[Any] | None
    _state_names: tuple[str, ...]
    _initial_state: Callable[[str, Tensor], Tensor]
    _refresh_lr: Callable[[], None]
    _master_weight: Callable[[Tensor], Tensor]
    _has_master: Callable[[Tensor], bool]
    get_lr: Callable[[], float]

    def _state_name(self, name: str, param: Tensor) -> str:
        """A new name for the state ``name`` of a parameter: what it has in state dicts. With a master weight, it is that one's."""
        own = "" if self._name is None else f"{self._name}_"
        stem = self._master_weight(param).name if self._has_master(param) else param.name
        return unique_name.generate_for(param, f"{stem}_{own}{name}")

    def _state_tensor(self, name: str, param: Tensor) -> Tensor:
        """The state ``name`` of a parameter, created on first use."""
        made = self._accumulators[name].get(param.name)
        if made is None:
            full = self._state_name(name, param)
            made = persistent(lambda: self._initial_state(name, param), full)
            held = self._claim(full)
            if held is not None:
                _take_over(made, held)
            self._accumulators[name][param.name] = made
        return made

    def _get_accumulator(self, name: str, param: Tensor) -> Tensor:
        """The state ``name`` of a parameter, which must exist."""
        made = self._accumulators.get(name, {}).get(param.name)
        if made is None:
            there = ", ".join(stem for stem, tensors in self._accumulators.items() if param.name in tensors)
            raise ValueError(f"[{type(self).__name__}] the parameter {param.name!r} has no state {name!r} yet; it has: {there or 'none'}.")
        return made

    def _claim(self, name: str) -> Any:
        """The loaded value of a state that is created now. None if no state has been loaded, or not for it."""
        held = self._accumulators_holder
        if not held and not self._state_loaded:
            return None
        key = _matching(name, held) or _matching(_MASTER.sub("", name), held)
        if key is not None:
            return held.pop(key)
        if self._strangers:
            misfits = Misfits([name, *(other for other in self._expected() if other != name)], list(held), {})
            raise AssertionError(
                f"The state dict given to {type(self).__name__}.set_state_dict() does not have {name}: {misfits}. States go by the names of parameters: build the network as it was built when the "
                "state was saved, before other layers, or set the names with ParamAttr(name=...)."
            )
        self._without_state.append(name)
        return None

    def _warn_of_new_states(self) -> None:
        if self._without_state:
            warnings.warn(
                f"The state dict given to {type(self).__name__}.set_state_dict() does not have "
                f"{_few(self._without_state)}: these start afresh.", stacklevel=2,
            )  # fmt: skip
            self._without_state = []

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state by name, with the scheduler's under ``'LR_Scheduler'``."""
        state: dict[str, Any] = dict(self._accumulators_holder)
        shapes = {param.name: list(param.shape) for param in self._flat} if self._numbers else {}
        for stem, tensors in self._accumulators.items():
            state.update({tensor.name: _repeated(tensor, shapes.get(name, [1])) if stem in self._numbers else tensor
                          for name, tensor in tensors.items()})
        if self._master_weights:
            state["master_weights"] = self._master_weights
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state. Values for states that do not exist yet are kept until they do.

        States go by their names, which begin with those of the parameters. The number at the end may differ: a
        second optimizer of the same parameters can continue where the first one stopped. A state that is missing is an
        error, here or at the first step; one that fits no parameter is warned of.
        """
        self._check_state_dict(state_dict)
        state = dict(state_dict)
        schedule, masters = state.pop("LR_Scheduler", None), state.pop("master_weights", None) or {}
        self._load_schedule(schedule)
        self._warn_of_strangers(state, masters)
        for name, value in masters.items():
            if name in self._master_weights:
                self._master_weights[name].set_value(value)
            else:
                self._master_weights[name] = _as_master(name, value)
        for tensors in self._accumulators.values():
            for tensor in tensors.values():
                key = _matching(tensor.name, state)
                assert key is not None
                _take_over(tensor, state.pop(key))
        self._accumulators_holder = state
        self._state_loaded = bool(state)
        self._signature = None

    def _check_state_dict(self, state_dict: Any) -> None:
        """An error if a state dict cannot be loaded."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"set_state_dict() takes a dictionary, as state_dict() returns, not "
                            f"{type(state_dict).__name__}.")
        state = dict(state_dict)
        schedule, masters = state.pop("LR_Scheduler", None), state.pop("master_weights", None) or {}
        self._refuse_misfits(state, masters, schedule)

    def _existing(self) -> list[Tensor]:
        """The states that have been created."""
        return [tensor for tensors in self._accumulators.values() for tensor in tensors.values()]

    def _expected(self) -> list[str]:
        """Beginnings of the names of states that trained parameters will have and that have not been loaded."""
        own = "" if self._name is None else f"{self._name}_"
        stems = [f"{param.name}_{own}{name}" for param in self._flat if not param.stop_gradient for name in self._state_names]
        there = {key.rpartition("_")[0] for key in [*self._accumulators_holder, *(tensor.name for tensor in self._existing())]}
        return [stem for stem in stems if stem not in there]

    def _refuse_misfits(self, state: dict[str, Any], masters: dict[str, Any], schedule: Any) -> None:
        """An error that names all that is wrong, before anything is changed."""
        found = {tensor.name: _matching(tensor.name, state) for tensor in self._existing()}
        wanted = {key: list(tensor.shape) for tensor in self._existing() if (key := found[tensor.name]) is not None}
        wrong = {key: _other_shape(state[key], shape) for key, shape in wanted.items() if not _fits(state[key], shape)}
        for param in self._flat:
            shape = list(param.shape)
            new = {key: value for key, value in state.items() if key not in wanted and key.startswith(f"{param.name}_")}
            # A state may have several parts, each in the shape of its parameter.
            wrong.update({key: _other_shape(value, shape) for key, value in new.items()
                          if not _fits(value, shape) and shape_of(value)[1:] != shape})
            if param.name in masters and not _fits(masters[param.name], shape):
                wrong[f"master_weights.{param.name}"] = _other_shape(masters[param.name], shape)
        missing = [name for name, key in found.items() if key is None]
        if isinstance(self._learning_rate, LRScheduler) and schedule is None:
            if not missing and not wrong:
                raise KeyError("'LR_Scheduler' is not in the state dict of an optimizer with a scheduler.")
            missing.append("LR_Scheduler")
        if missing or wrong:
            unexpected = self._stranger_keys(state, masters)
            what = ", ".join(missing) + " not found" if missing else "states of other shapes"
            raise AssertionError(
                f"[set_state_dict] the state dict does not fit this {type(self).__name__}: {what}: "
                f"{Misfits(missing, unexpected, wrong)}. Nothing was loaded. States go by the names of parameters: build the network "
                "as it was built when the state was saved, before other layers, or set the names with ParamAttr(name=...)."
            )

    def _load_schedule(self, schedule: dict[str, Any] | None) -> None:
        scheduler = self._learning_rate
        if isinstance(scheduler, LRScheduler):
            assert schedule is not None
            scheduler.set_state_dict(schedule)
            self._refresh_lr()
        elif schedule is not None:
            warnings.warn(
                "The state dict has the state of an LRScheduler, but this optimizer's learning rate is a number: it "
                f"stays {self.get_lr()}.", stacklevel=3,
            )  # fmt: skip

    def _warn_of_strangers(self, state: dict[str, Any], masters: dict[str, Any]) -> None:
        """Warn of states that fit none of the parameters, which nothing will ever use."""
        names = [param.name for param in self._flat]
        if not names:
            return
        strangers = self._stranger_keys(state, masters)
        self._strangers = bool(strangers)
        if strangers:
            warnings.warn(
                f"{len(strangers)} states of the state dict belong to no parameter of this {type(self).__name__} and "
                f"are not used: {_few(strangers)}. Its parameters are {_few(names)}.", stacklevel=4,
            )  # fmt: skip

    def _stranger_keys(self, state: dict[str, Any], masters: dict[str, Any]) -> list[str]:
        known = {param.name for param in self._flat}
        starts = tuple(f"{name}_" for name in known)
        return [key for key in state if not key.startswith(starts)] + [key for key in masters if key not in known]

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def get_opti_var_name_list(self) -> list[str]:
        """Names of the states created so far."""
        return [tensor.name for tensor in OptimizerState._existing(self)]


def _repeated(tensor: Tensor, shape: list[int]) -> Tensor:
    """A number as often as a state dict has it. It is the same memory, and follows the steps."""
    if not tensor.is_dense():
        return tensor  # a variable of a program
    shown = tensor.detach().expand(shape) if shape else tensor.detach().reshape([])
    shown.name = tensor.name
    return shown


def _fits(value: Any, shape: list[int]) -> bool:
    """Where a state is one number, it may come repeated for every element, and the other way round."""
    own = shape_of(value)
    return own == shape or math.prod(own) == 1 or math.prod(shape) == 1


def _other_shape(value: Any, shape: list[int]) -> str:
    return f"has shape {shape_of(value)}, expected {shape}"


def _as_master(name: str, value: Any) -> Tensor:
    """A loaded master weight, as one of its own."""
    master = (value.clone() if isinstance(value, Tensor) else oar.to_tensor(value)).detach()
    saved = getattr(value, "name", None) or ""
    master.name = saved if saved.startswith(f"{name}_fp32_master_") else f"{name}_fp32_master_0"
    return master


def _matching(name: str, state: dict[str, Any]) -> str | None:
    """The key of a state in a state dict: its name, or the only one that differs in the number at the end alone."""
    if name in state:
        return name
    stem = name.rpartition("_")[0]
    alike = [key for key in state if key.rpartition("_")[0] == stem and key.rpartition("_")[2].isdigit()]
    return alike[0] if len(alike) == 1 else None


def _few(names: Any) -> str:
    """The first of some names, for a message."""
    names = list(names)
    return (", ".join(names[:4]) or "nothing") + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _take_over(tensor: Tensor, value: Any) -> None:
    """Write a loaded state. Where this is one number, it may come repeated for every element."""
    if tensor.size == 1 and list(tensor.shape) != list(value.shape):
        value = np.ravel(value.numpy() if isinstance(value, Tensor) else value)[:1].reshape(tensor.shape)
    tensor.set_value(value)
