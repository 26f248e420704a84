"""The states of an ``Optimizer`` by name: created when needed, saved and loaded."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework.persistent import persistent
from oar.optimizer.lr import LRScheduler

# In the names of states that belong to a master weight. They may have been saved without one, in float32.
_MASTER = re.compile(r"_fp32_master_\d+")


class OptimizerState:
    """What ``Optimizer`` does with the states of its parameters."""

    # What ``Optimizer`` itself has.
    _name: str | None
    _learning_rate: float | LRScheduler
    _accumulators: dict[str, dict[str, Tensor]]
    _accumulators_holder: dict[str, Any]
    _master_weights: dict[str, Tensor]
    _without_state: list[str]
    _flat: list[Tensor]
    _signature: list[Any] | None
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

    def _claim(self, name: str) -> Any:
        """The loaded value of a state that is created now. None if no state has been loaded, or not for it."""
        held = self._accumulators_holder
        if not held and not self._state_loaded:
            return None
        key = _matching(name, held) or _matching(_MASTER.sub("", name), held)
        if key is not None:
            return held.pop(key)
        if self._strangers:
            raise AssertionError(
                f"The state dict given to {type(self).__name__}.set_state_dict() does not have {name}; it still has "
                f"{_few(held)}. States go by the names of parameters: build the network as it was built when the "
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
        for tensors in self._accumulators.values():
            state.update({tensor.name: tensor for tensor in tensors.values()})
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
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"set_state_dict() takes a dictionary, as state_dict() returns, not "
                            f"{type(state_dict).__name__}.")
        state = dict(state_dict)
        self._load_schedule(state.pop("LR_Scheduler", None))
        masters = state.pop("master_weights", None) or {}
        self._warn_of_strangers(state, masters)
        for name, value in masters.items():
            if name in self._master_weights:
                self._master_weights[name].set_value(value)
            else:
                self._master_weights[name] = _as_master(name, value)
        for tensors in self._accumulators.values():
            for tensor in tensors.values():
                key = _matching(tensor.name, state)
                if key is None:
                    raise AssertionError(f"optimizer Tensor {tensor.name} not found in the state dict: {_few(state)}")
                _take_over(tensor, state.pop(key))
        self._accumulators_holder = state
        self._state_loaded = bool(state)
        self._signature = None

    def _load_schedule(self, schedule: dict[str, Any] | None) -> None:
        scheduler = self._learning_rate
        if isinstance(scheduler, LRScheduler):
            if schedule is None:
                raise KeyError("'LR_Scheduler' is not in the state dict of an optimizer with a scheduler.")
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
        known, starts = set(names), tuple(f"{name}_" for name in names)
        strangers = [key for key in state if not key.startswith(starts)]
        strangers += [key for key in masters if key not in known]
        self._strangers = bool(strangers)
        if strangers:
            warnings.warn(
                f"{len(strangers)} states of the state dict belong to no parameter of this {type(self).__name__} and "
                f"are not used: {_few(strangers)}. Its parameters are {_few(names)}.", stacklevel=4,
            )  # fmt: skip

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def get_opti_var_name_list(self) -> list[str]:
        """Names of the states created so far."""
        return [tensor.name for tensors in self._accumulators.values() for tensor in tensors.values()]


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
