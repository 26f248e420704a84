"""Schedules with a shape: warm-up, cosine, cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oar.optimizer.lr.scheduler import LRScheduler

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "LinearLR",
    "LinearWarmup",
    "OneCycleLR",
]


def _number(value: Any, name: str) -> float:
    if not isinstance(value, (float, int)):
        raise TypeError(f"'{name}' must be 'float' or 'int', but received {type(value)}")
    return value


def _count(value: Any, name: str) -> int:
    if not isinstance(value, int):
        raise TypeError(f"'{name}' must be 'int', but received {type(value)}")
    if value <= 0:
        raise ValueError(f"'{name}' must be a positive integer, but received {value}")
    return value


class LinearWarmup(LRScheduler):
    """From ``start_lr`` to ``end_lr`` in ``warmup_steps``; from then on ``learning_rate``.

    ``learning_rate`` may be a scheduler, which then starts where the warm-up ends.

    Args:
        learning_rate: the rate to start from.
        warmup_steps: the number of steps of the rise.
        start_lr: the first rate.
        end_lr: the last rate.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.LinearWarmup(0.5, warmup_steps=2, start_lr=0.0, end_lr=0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.0, 0.25, 0.5, 0.5]
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, (float, int, LRScheduler)):
            raise TypeError(f"learning_rate should be a number or an LRScheduler, but is {learning_rate!r}.")
        if not isinstance(warmup_steps, int) or warmup_steps <= 0:
            raise AssertionError(f" 'warmup_steps' must be a positive integer, but received {warmup_steps!r}.")
        if not end_lr > start_lr:
            raise AssertionError(f"end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.start_lr = start_lr
        self.end_lr = end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate


class CosineAnnealingDecay(LRScheduler):
    """From ``learning_rate`` to ``eta_min`` and back along a cosine; ``T_max`` epochs each way.

    Args:
        learning_rate: the rate to start from.
        T_max: the number of epochs of half a wave.
        eta_min: the smallest rate.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.CosineAnnealingDecay(0.5, T_max=4)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.4268, 0.25, 0.0732]
    """

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(T_max, int):
            raise TypeError(f"The type of 'T_max' must be 'int', but received {type(T_max)}.")
        if T_max <= 0:
            raise AssertionError(f" 'T_max' must be a positive integer, but received {T_max}.")
        self.T_max = T_max
        self.eta_min = float(_number(eta_min, "eta_min"))
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        # From the rate before, so that a rate changed by hand is carried on.
        epoch, half = self.last_epoch, self.T_max
        if epoch == 0:
            return self.base_lr
        if (epoch - 1 - half) % (2 * half) == 0:
            return self.last_lr + (self.base_lr - self.eta_min) * (1 - math.cos(math.pi / half)) / 2
        now, before = (1 + math.cos(math.pi * e / half) for e in (epoch, epoch - 1))
        return now / before * (self.last_lr - self.eta_min) + self.eta_min

    def _get_closed_form_lr(self) -> float:
        swing = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return self.eta_min + (self.base_lr - self.eta_min) * swing / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along a cosine in ``T_0`` epochs, then again from the top, ``T_mult`` times as long each time.

    Args:
        learning_rate: the rate to start from.
        T_0: the number of epochs of the first wave.
        T_mult: how much longer each wave is than the one before.
        eta_min: the smallest rate.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.CosineAnnealingWarmRestarts(0.5, T_0=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.25, 0.5, 0.25]
    """

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        swing = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return self.eta_min + (self.base_lr - self.eta_min) * swing / 2

    def step(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._jump_to(epoch)
        self.last_epoch = math.floor(epoch)
        self.last_lr = self.get_lr()
        self._announce()

    def _jump_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        rounds = 0
        if epoch >= self.T_0:
            rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**rounds - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult**rounds


class OneCycleLR(LRScheduler):
    """Up to ``max_learning_rate`` and down to ``end_learning_rate`` in ``total_steps``, after Smith.

    Args:
        max_learning_rate: the peak.
        total_steps: the length of the whole schedule.
        divide_factor: the rate starts at ``max_learning_rate / divide_factor``.
        end_learning_rate: where it ends.
        phase_pct: the share of steps in which the rate increases.
        anneal_strategy: ``'cos'`` or ``'linear'``.
        three_phase: come down to the first rate in as many steps as it went up, then to the end.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.OneCycleLR(max_learning_rate=1.0, total_steps=10)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.04, 0.52, 1.0, 0.9505]
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        for name, value in (("max_learning_rate", max_learning_rate), ("end_learning_rate", end_learning_rate)):
            if _number(value, name) < 0:
                raise ValueError(f"'{name}' must not be negative, but is {value}.")
        self.total_steps = _count(total_steps, "total_steps")
        if not isinstance(phase_pct, float):
            raise TypeError(f"'phase_pct' must be 'float', but received {type(phase_pct)}")
        if not 0 <= phase_pct <= 1:
            raise ValueError(f"'phase_pct' must be between 0 and 1, but received {phase_pct}")
        if three_phase and phase_pct >= 0.5:
            raise ValueError("When three_phase is True, 'phase_pct' must be less than 0.5")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"'anneal_strategy' must be 'cos' or 'linear', but received {anneal_strategy}")
        self.anneal_func = self._cos_annealing if anneal_strategy == "cos" else self._linear_annealing
        first = max_learning_rate / float(_number(divide_factor, "divide_factor"))
        last = float(end_learning_rate)
        turn = phase_pct * total_steps
        self._corners = [(0.0, first), (turn - 1, max_learning_rate), (total_steps - 1, last)]
        if three_phase:
            self._corners.insert(2, (2 * turn - 2, first))
        super().__init__(first, last_epoch, verbose)

    @staticmethod
    def _cos_annealing(start_lr: float, end_lr: float, pct: float) -> float:
        return end_lr + (start_lr - end_lr) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _linear_annealing(start_lr: float, end_lr: float, pct: float) -> float:
        return (end_lr - start_lr) * pct + start_lr

    def get_lr(self) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times, but the schedule ends after {self.total_steps} steps.")
        phases = list(zip(self._corners, self._corners[1:]))
        for (start, low), (end, high) in phases:
            if step <= end or (end, high) == self._corners[-1]:
                return self.anneal_func(low, high, (step - start) / (end - start))
        raise AssertionError("unreachable: the last phase takes every step")


class CyclicLR(LRScheduler):
    """Up and down between two rates, again and again, after Smith.

    Args:
        base_learning_rate: the lower rate.
        max_learning_rate: the upper rate.
        step_size_up: steps from the lower to the upper rate.
        step_size_down: steps back; ``step_size_up`` when None.
        mode: ``'triangular'``, ``'triangular2'`` (half as high each cycle) or ``'exp_range'``.
        exp_gamma: the base of ``'exp_range'``.
        scale_fn: a function that replaces ``mode``.
        scale_mode: whether ``scale_fn`` is given the ``'cycle'`` or the ``'iterations'``.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.CyclicLR(base_learning_rate=0.1, max_learning_rate=0.5, step_size_up=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.1, 0.3, 0.5, 0.3]
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if _number(max_learning_rate, "max_learning_rate") < 0:
            raise ValueError(f"'max_learning_rate' must not be negative, but received {max_learning_rate}")
        up = float(_count(step_size_up, "step_size_up"))
        down = up if step_size_down is None else float(_count(step_size_down, "step_size_down"))
        if not isinstance(exp_gamma, float):
            raise TypeError(f"The type of 'exp_gamma' must be float, but received {type(exp_gamma)}")
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("'mode' is invalid and 'scale_fn' is not specified: one of them must be valid")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError("'scale_mode' must be one of 'cycle' or 'iterations")
        self.cycle_size = up + down
        self.step_up_pct = up / self.cycle_size
        self.max_lr = float(max_learning_rate)
        self.amplitude = self.max_lr - base_learning_rate
        self.mode = mode
        self.gamma = exp_gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        super().__init__(base_learning_rate, last_epoch, verbose)

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 0.5 ** (x - 1) if self.mode == "triangular2" else 1.0

    def get_lr(self) -> float:
        iterations = self.last_epoch
        cycle = 1 + iterations // self.cycle_size
        done = 1.0 + iterations / self.cycle_size - cycle
        up = self.step_up_pct
        height = done / up if done <= up else (1 - done) / (1 - up)
        scale = self._scale(cycle if self.scale_mode == "cycle" else iterations)
        return self.base_lr + self.amplitude * height * scale


class LinearLR(LRScheduler):
    """A factor on the rate that changes from ``start_factor`` to ``end_factor`` in ``total_steps``.

    Args:
        learning_rate: the rate to start from.
        total_steps: the number of steps.
        start_factor: the first factor.
        end_factor: the last factor.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.LinearLR(0.5, total_steps=4)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.1667, 0.25, 0.3333, 0.4167]
    """

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError(f"`start_factor` must be in (0, 1], but got {start_factor}")
        if not 0 <= end_factor <= 1.0:
            raise ValueError(f"`end_factor` must be in [0, 1], but got {end_factor}")
        if total_steps <= 0:
            raise ValueError(f"`total_steps` must be greater than 0, but got {total_steps}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_steps = total_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return self.base_lr * self.start_factor
        if self.last_epoch > self.total_steps:
            return self.last_lr
        rise = self.end_factor - self.start_factor
        before = self.total_steps * self.start_factor + (self.last_epoch - 1) * rise
        return self.last_lr * (1.0 + rise / before)
