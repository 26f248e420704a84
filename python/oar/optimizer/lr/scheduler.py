"""``LRScheduler``, the base class of learning-rate schedules."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from oar._C import Tensor
from oar.framework import host_actions

__all__ = ["LRScheduler"]


def _deferred(step: Any) -> Any:
    """A captured training step advances to the next rate after every run, not once while it is captured."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if host_actions.defer(lambda: step(self, *args, **kwargs), self):
            return None
        return step(self, *args, **kwargs)

    return wrapper


class LRScheduler:
    """A learning rate that changes during training.

    A subclass writes ``get_lr()``, the rate for ``self.last_epoch``. ``step()`` advances to the next epoch (or
    batch: the unit is whatever ``step`` is called after) and updates the optimizers that use the schedule.

    Args:
        learning_rate: the rate to start from.
        last_epoch: the epoch before the first; -1 to begin.
        verbose: print the rate at every step.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> class Halving(oar.optimizer.lr.LRScheduler):
        ...     def get_lr(self):
        ...         return self.base_lr * 0.5 ** self.last_epoch
        ...
        >>> schedule = Halving(1.0)
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.SGD(schedule, parameters=net.parameters())
        >>> schedule.step()
        >>> optimizer.get_lr()
        0.5
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(learning_rate, (float, int)):
            raise TypeError(f"The type of learning rate must be float, but received {type(learning_rate)}")
        if learning_rate < 0:
            raise ValueError(f"Invalid learning rate: {learning_rate}")
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._var_name = None
        self.step()

    def __call__(self) -> float:
        """The learning rate now."""
        return self.last_lr

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            setattr(cls, "step", _deferred(cls.__dict__["step"]))

    def get_lr(self) -> float:
        """The learning rate for ``self.last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr().")

    @_deferred
    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to ``epoch``."""
        if epoch is None:
            self.last_epoch += 1
            self.last_lr = self.get_lr()
        else:
            self.last_epoch = epoch
            closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
            self.last_lr = closed_form()
        self._announce()

    def _announce(self) -> None:
        """Pass the new rate on."""
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")
        for optimizer in self.__dict__.get("_listeners", ()):
            optimizer._refresh_lr()

    def _listen(self, optimizer: Any) -> None:
        """Let ``optimizer`` know when the rate changes, for as long as it lives."""
        self.__dict__.setdefault("_listeners", weakref.WeakSet()).add(optimizer)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_listeners"}

    def state_keys(self) -> None:
        """Set ``self.keys``, the attributes that make up the state."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary of numbers."""
        self.state_keys()
        state = {key: self.__dict__[key] for key in self.keys if key in self.__dict__}
        return {key: float(value) if isinstance(value, Tensor) else value for key, value in state.items()}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        self.state_keys()
        missing = [key for key in self.keys if key not in state_dict]
        if missing:
            raise RuntimeError(
                f"Please check whether state_dict is correct for optimizer. Can't find {missing} in state_dict"
            )
        for key in self.keys:
            self.__dict__[key] = state_dict[key]
        if len(state_dict) > len(self.keys):
            extra = sorted(set(state_dict) - set(self.keys))
            if extra != ["LinearWarmup_LR"]:
                warnings.warn(f"Values in state_dict that {type(self).__name__} does not use: {extra}.", stacklevel=2)
        for optimizer in self.__dict__.get("_listeners", ()):
            optimizer._refresh_lr()

    set_dict = set_state_dict
