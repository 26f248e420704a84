"""Schedules that go down: by powers, by steps, by a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oar.optimizer.lr.scheduler import LRScheduler

__all__ = [
    "ExponentialDecay",
    "InverseTimeDecay",
    "LambdaDecay",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "StepDecay",
]


def _positive_int(value: Any, name: str) -> int:
    if not isinstance(value, int) or value <= 0:
        raise AssertionError(f" '{name}' must be a positive integer, but received {value!r}.")
    return value


def _shrinking(gamma: float) -> float:
    if gamma >= 1.0:
        raise ValueError(f"gamma should be < 1.0, but is {gamma}.")
    return gamma


class NoamDecay(LRScheduler):
    """Up linearly for ``warmup_steps``, then down with the square root of the step, as for Transformers.

    ``learning_rate * d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5)``

    Args:
        d_model: the width of the model.
        warmup_steps: the number of steps of the rise.
        learning_rate: the rate to start from.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.NoamDecay(d_model=64, warmup_steps=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.0, 0.0442, 0.0884, 0.0722]
    """

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if d_model <= 0:
            raise ValueError(f"d_model should be greater than 0, but is {d_model}.")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        step = self.last_epoch
        falling = 1 if step == 0 else step**-0.5
        rising = step * self.warmup_steps**-1.5
        return self.base_lr * self.d_model**-0.5 * min(falling, rising)


class PiecewiseDecay(LRScheduler):
    """``values[i]`` until ``boundaries[i]``, and the last value from then on.

    Args:
        boundaries: the epochs at which the rate changes.
        values: the rates.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.PiecewiseDecay(boundaries=[1, 2], values=[1.0, 0.5, 0.1])
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [1.0, 0.5, 0.1, 0.1]
    """

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if len(boundaries) == 0:
            raise ValueError("The boundaries cannot be empty.")
        if len(values) <= len(boundaries):
            raise ValueError(
                f"There should be one value more than boundaries, but there are {len(values)} values and "
                f"{len(boundaries)} boundaries."
            )
        self.boundaries = boundaries
        self.values = values
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        for boundary, value in zip(self.boundaries, self.values):
            if self.last_epoch < boundary:
                return value
        return self.values[-1]


class _GammaDecay(LRScheduler):
    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_GammaDecay):
    """``learning_rate * exp(-gamma * epoch)``.

    Args:
        learning_rate: the rate to start from.
        gamma: the factor of the decay.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.NaturalExpDecay(0.5, gamma=0.1)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.4524, 0.4094, 0.3704]
    """

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not gamma > 0.0:
            raise AssertionError(f" 'gamma' must be positive so that the learning rate decays, but is {gamma}.")
        super().__init__(learning_rate, gamma, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_GammaDecay):
    """``learning_rate / (1 + gamma * epoch)``.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.InverseTimeDecay(0.5, gamma=0.1)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.4545, 0.4167, 0.3846]
    """

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_GammaDecay):
    """``learning_rate * gamma ** epoch``.

    Args:
        learning_rate: the rate to start from.
        gamma: the factor of the decay.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.ExponentialDecay(0.5, gamma=0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.45, 0.405, 0.3645]
    """

    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not 0.0 < gamma < 1.0:
            raise AssertionError(f" 'gamma' must be in (0.0, 1.0) so that the learning rate decays, but is {gamma}.")
        super().__init__(learning_rate, gamma, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class PolynomialDecay(LRScheduler):
    """From ``learning_rate`` to ``end_lr`` in ``decay_steps`` along a polynomial of degree ``power``.

    With ``cycle``, each stretch that is run over is followed by a longer one that starts higher again.

    Args:
        learning_rate: the rate to start from.
        decay_steps: the number of steps of the decay.
        end_lr: the last rate.
        power: the degree of the polynomial.
        cycle: whether the decay starts again.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.PolynomialDecay(0.5, decay_steps=10)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.45, 0.4, 0.35]
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.decay_steps = _positive_int(decay_steps, "decay_steps")
        if not power > 0.0:
            raise AssertionError(f" 'power' must be greater than 0.0, but is {power}.")
        self.end_lr = end_lr
        self.power = power
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.cycle:
            done = self.last_epoch
            total = self.decay_steps * max(math.ceil(self.last_epoch / self.decay_steps), 1)
        else:
            done = min(self.last_epoch, self.decay_steps)
            total = self.decay_steps
        return (self.base_lr - self.end_lr) * (1 - done / total) ** self.power + self.end_lr


class MultiStepDecay(LRScheduler):
    """Times ``gamma`` at each of the ``milestones``.

    Args:
        learning_rate: the rate to start from.
        milestones: the epochs at which the rate changes.
        gamma: the factor of the decay.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.MultiStepDecay(0.5, milestones=[1, 2])
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.05, 0.005, 0.005]
    """

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(milestones, (tuple, list)):
            raise TypeError(f"milestones should be a tuple or list, but received {type(milestones).__name__}.")
        if any(later <= earlier for earlier, later in zip(milestones, milestones[1:])):
            raise ValueError(f"The milestones must increase, but are {list(milestones)}.")
        self.gamma = _shrinking(gamma)
        self.milestones = milestones
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        passed = sum(self.last_epoch >= milestone for milestone in self.milestones)
        return self.base_lr * self.gamma**passed


class StepDecay(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs.

    Args:
        learning_rate: the rate to start from.
        step_size: the number of epochs between changes.
        gamma: the factor of the decay.
        last_epoch: the epoch to resume from.
        verbose: whether each change is printed.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.StepDecay(0.5, step_size=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.5, 0.05, 0.05]
    """

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(step_size, int):
            raise TypeError(f"The type of 'step_size' must be 'int', but received {type(step_size)}.")
        self.gamma = _shrinking(gamma)
        self.step_size = _positive_int(step_size, "step_size")
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class _FunctionDecay(LRScheduler):
    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not callable(lr_lambda):
            raise TypeError(f"lr_lambda should be a function of the epoch, but received {type(lr_lambda).__name__}.")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_FunctionDecay):
    """``learning_rate * lr_lambda(epoch)``.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.LambdaDecay(0.5, lr_lambda=lambda epoch: 0.9 ** epoch)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.45, 0.405, 0.3645]
    """

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_FunctionDecay):
    """``learning_rate * lr_lambda(1) * … * lr_lambda(epoch)``.

    Examples:
        >>> import oar
        >>> schedule = oar.optimizer.lr.MultiplicativeDecay(0.5, lr_lambda=lambda epoch: 0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(schedule(), 4))
        ...     schedule.step()
        ...
        >>> rates
        [0.5, 0.45, 0.405, 0.3645]
    """

    def get_lr(self) -> float:
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate = rate * self.lr_lambda(epoch)
        return rate
