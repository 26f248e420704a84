"""Callbacks that act when a result no longer improves."""

from __future__ import annotations

import math
import numbers
import operator
import os
import warnings
from typing import Any

from oar.distributed.environment import ParallelEnv
from oar.hapi._callback import Callback

__all__ = ["EarlyStopping", "ReduceLROnPlateau"]


def _mode_of(name: str, mode: str) -> str:
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"[{name}] mode can be 'auto', 'min' or 'max', not {mode!r}; 'auto' is used.", stacklevel=3)
        return "auto"
    return mode


def _less_is_better(monitor: str, mode: str) -> bool:
    return mode == "min" or (mode == "auto" and "acc" not in monitor)


def _watched(callback: Any, logs: dict | None) -> Any:
    """The number that a callback watches; None, after a warning, if there is none."""
    name = type(callback).__name__
    if not logs or callback.monitor not in logs:
        known = [key for key in logs or {} if key not in ("step", "batch_size")]
        warnings.warn(f"[{name}] there is no {callback.monitor!r} among the results: monitor should be loss or metric name, "
                      f"here one of {known}.", stacklevel=3)
        return None
    value = logs[callback.monitor]
    if isinstance(value, (list, tuple)):
        value = value[0]
    return value if isinstance(value, numbers.Number) else None


class EarlyStopping(Callback):
    """Ends ``fit`` when a result of the evaluations no longer improves.

    Args:
        monitor: the name of the result: ``'loss'`` or that of a metric.
        mode: ``'min'`` or ``'max'``, which is better; ``'auto'`` takes ``'max'`` if the name contains ``acc``.
        patience: how many evaluations without improvement end the training.
        verbose: whether to print that it ended.
        min_delta: a smaller change does not count as an improvement.
        baseline: a value that must be surpassed first.
        save_best_model: save the best model as ``best_model`` in the ``save_dir`` of ``fit``.

    Examples:
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.SGD(0.0, parameters=net.parameters()), oar.nn.MSELoss())
        >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
        >>> model.fit(data, data, epochs=9, verbose=0, callbacks=oar.callbacks.EarlyStopping(patience=2))
        Epoch 3: Early stopping.
    """

    def __init__(self, monitor: str = "loss", mode: str = "auto", patience: int = 0, verbose: int = 1,
                 min_delta: float = 0, baseline: float | None = None, save_best_model: bool = True) -> None:
        super().__init__()
        less = _less_is_better(monitor, _mode_of("EarlyStopping", mode))
        self.monitor = monitor
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.min_delta = -abs(min_delta) if less else abs(min_delta)
        self.monitor_op = operator.lt if less else operator.gt
        self.wait_epoch = 0
        self.stopped_epoch = 0
        self.best_weights = None
        self.best_value = math.inf if less else -math.inf
        self.save_best_model = save_best_model
        self.save_dir: str | None = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.wait_epoch = 0
        if self.baseline is not None:
            self.best_value = self.baseline
        else:
            self.best_value = math.inf if self.monitor_op is operator.lt else -math.inf

    def on_eval_end(self, logs: dict | None = None) -> None:
        current = _watched(self, logs)
        if current is None:
            return
        assert self.model is not None
        path = os.path.join(self.save_dir, "best_model") if self.save_best_model and self.save_dir is not None else None
        if self.monitor_op(current - self.min_delta, self.best_value):
            self.best_value = current
            self.wait_epoch = 0
            if path is not None:
                self.model.save(path)
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")
                if path is not None:
                    print(f"Best checkpoint has been saved at {os.path.abspath(path)}")
        self.stopped_epoch += 1


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate when a result of the evaluations no longer improves.

    Args:
        monitor: the name of the result: ``'loss'`` or that of a metric.
        factor: what the learning rate is multiplied with, below 1.
        patience: how many evaluations without improvement lower it.
        verbose: whether to print that it was lowered.
        mode: ``'min'`` or ``'max'``, which is better; ``'auto'`` takes ``'max'`` if the name contains ``acc``.
        min_delta: a smaller change does not count as an improvement.
        cooldown: how many evaluations after a change do not count.
        min_lr: the least learning rate.

    Examples:
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.SGD(1e-9, parameters=net.parameters()), oar.nn.MSELoss())
        >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
        >>> lower = oar.callbacks.ReduceLROnPlateau(factor=0.5, patience=2, verbose=0)
        >>> model.fit(data, data, epochs=3, verbose=0, callbacks=[lower])
        >>> model._optimizer.get_lr()
        5e-10
    """

    def __init__(self, monitor: str = "loss", factor: float = 0.1, patience: int = 10, verbose: int = 1,
                 mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError(f"[ReduceLROnPlateau] factor should be below 1.0, not {factor}.")
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.mode = _mode_of("ReduceLROnPlateau", mode)
        self.min_delta = min_delta
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.epoch = 0
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if _less_is_better(self.monitor, self.mode) else -math.inf
        self.cooldown_counter = 0
        self.wait = 0

    def monitor_op(self, current: float, best: float) -> bool:
        """Whether a result is better than the best one."""
        if _less_is_better(self.monitor, self.mode):
            return current < best - self.min_delta
        return current > best + self.min_delta

    def in_cooldown(self) -> bool:
        """Whether evaluations do not count because the learning rate was just lowered."""
        return self.cooldown_counter > 0

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._reset()

    def on_eval_end(self, logs: dict | None = None) -> None:
        current = _watched(self, logs)
        if current is None or not self._has_plain_rate():
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.monitor_op(current, self.best):
            self.best = current
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce()
        self.epoch += 1

    def _has_plain_rate(self) -> bool:
        rate = getattr(getattr(self.model, "_optimizer", None), "_learning_rate", None)
        if isinstance(rate, (int, float)):
            return True
        warnings.warn(f"[ReduceLROnPlateau] the optimizer's learning rate should be a float, but it is {type(rate).__name__}; "
                      "it is not changed.", stacklevel=3)
        return False

    def _reduce(self) -> None:
        assert self.model is not None
        optimizer: Any = self.model._optimizer
        rate = optimizer.get_lr()
        if rate <= self.min_lr:
            return
        rate = max(rate * self.factor, self.min_lr)
        optimizer.set_lr(rate)
        if self.verbose > 0 and ParallelEnv().local_rank == 0:
            print(f"\nEpoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate to {rate}.")
        self.cooldown_counter = self.cooldown
        self.wait = 0
