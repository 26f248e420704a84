"""``ReduceOnPlateau``: the rate falls when a metric stops getting better."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar._lazy import np
from oar.optimizer.lr.scheduler import LRScheduler

__all__ = ["ReduceOnPlateau"]


class ReduceOnPlateau(LRScheduler):
    """Multiplies the rate by ``factor`` when the metric given to ``step`` has not improved for a while.

    Args:
        learning_rate: the rate to start from.
        mode: ``'min'`` when less is better, ``'max'`` when more is.
        factor: what the rate is multiplied by.
        patience: how many epochs without improvement are let pass.
        threshold: how much better counts as improvement.
        threshold_mode: ``'rel'``: as a share of the best; ``'abs'``: as a difference.
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the rate does not fall below this.
        epsilon: smaller changes are ignored.
        verbose: print reductions.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.ReduceOnPlateau(0.5, factor=0.1, patience=1)
        >>> for loss in [1.0, 1.0, 1.0, 1.0]:
        ...     schedule.step(loss)
        ...
        >>> round(schedule(), 4)
        0.05
    """

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 0.0001,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-08,
        verbose: bool = False,
    ) -> None:
        if mode.lower() not in ("min", "max"):
            raise ValueError(f"mode: {mode} is unknown!")
        if threshold_mode.lower() not in ("rel", "abs"):
            raise ValueError(f"threshold mode: {threshold_mode} is unknown!")
        if factor >= 1.0:
            raise ValueError(f"factor should be < 1.0, so that the rate falls, but is {factor}.")
        if not isinstance(learning_rate, (float, int)):
            raise TypeError(f"learning_rate should be a float, but received {type(learning_rate)}.")
        self.mode = mode.lower()
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode.lower()
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.epsilon = epsilon
        self.cooldown_counter = 0
        self.best: float | None = None
        self.num_bad_epochs = 0
        # No first step: there is no metric yet.
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = 0
        self.verbose = verbose
        self._var_name = None

    def state_keys(self) -> None:
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Look at the metric of the epoch that has ended."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        value = _as_number(metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            reduced = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - reduced > self.epsilon:
                self.last_lr = reduced
                self._announce()

    def _is_better(self, current: float, best: float) -> bool:
        margin = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return current < best - margin if self.mode == "min" else current > best + margin


def _as_number(metrics: Any) -> float:
    if isinstance(metrics, (Tensor, np.ndarray)):
        if metrics.size != 1:
            raise AssertionError(f"The metric should be one number, but has {metrics.size}. Take its mean first.")
        return float(np.reshape(metrics.numpy() if isinstance(metrics, Tensor) else metrics, -1)[0])
    if isinstance(metrics, (int, float, np.number)):
        return float(metrics)
    raise TypeError(f"metrics must be a number, an array or a Tensor, but received {type(metrics)}.")
