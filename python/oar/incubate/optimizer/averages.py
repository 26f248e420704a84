"""Optimisers that average parameters over steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import oar
from oar._C import Tensor
from oar.optimizer import Optimizer

__all__ = ["LookAhead", "ModelAverage"]


def _require_eager(name: str) -> None:
    if not oar.in_dynamic_mode():
        raise NotImplementedError(f"[{name}] is for eager mode; static programs do not have it yet. Call "
                                  "oar.disable_static() first.")


class LookAhead(Optimizer):
    """Every k steps of another optimiser, moves back towards the parameters of k steps before (Zhang et al. 2019).

    Args:
        inner_optimizer: the optimiser that takes the steps.
        alpha: the part of the way that is kept, between 0 and 1.
        k: the number of steps.
        name: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> sgd = oar.optimizer.SGD(learning_rate=0.1, parameters=net.parameters())
        >>> optimizer = oar.incubate.LookAhead(sgd, alpha=0.5, k=2)
        >>> before = net.weight.clone()
        >>> for _ in range(2):
        ...     net(oar.ones([1, 2])).sum().backward()
        ...     optimizer.step()
        ...     optimizer.clear_grad()
        ...
        >>> oar.allclose(net.weight, before - 0.15).item()
        True
    """

    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None:
        if inner_optimizer is None:
            raise AssertionError("inner optimizer can not be None")
        if not 0.0 <= alpha <= 1.0:
            raise AssertionError("alpha should be larger or equal to 0.0, and less or equal than 1.0")
        if not (isinstance(k, int) and k > 0):
            raise AssertionError("k should be a positive integer")
        _require_eager("LookAhead")
        super().__init__(alpha, inner_optimizer._parameter_list, None, None, name)
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k
        self._slow: dict[str, Tensor] = {}
        self._taken = 0

    def step(self) -> None:
        """A step of the inner optimiser; after every k-th, the slow parameters follow and replace the fast ones."""
        self.inner_optimizer.step()
        self._taken += 1
        with oar.no_grad():
            trained = [p for p in self._flat if not p.stop_gradient and p.grad is not None]
            for param in trained:
                # The slow parameters start after the first step, as in Paddle.
                slow = self._slow.setdefault(param.name, param.detach().clone())
                if self._taken % self.k == 0:
                    slow.set_value(param * self.alpha + slow * (1.0 - self.alpha))
                    param.set_value(slow)

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Step with gradients that are there already, or after ``backward``."""
        if not isinstance(loss, Tensor):
            raise AssertionError("The loss should be an Tensor.")
        pairs = [(p, p.grad) for p in self._flat if p.grad is not None]
        self.step()
        return [], pairs

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of the parameters."""
        self.inner_optimizer.clear_grad(set_to_zero)

    def state_dict(self) -> dict[str, Any]:
        """The inner optimiser's state, the slow parameters and the number of steps."""
        return {"inner": self.inner_optimizer.state_dict(), "steps": self._taken,
                "slow": {name: slow.clone() for name, slow in self._slow.items()}}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        self.inner_optimizer.set_state_dict(state_dict["inner"])
        self._taken = int(state_dict["steps"])
        self._slow = {name: slow.clone() for name, slow in state_dict["slow"].items()}


class ModelAverage(Optimizer):
    """Averages parameters over a window of the last steps, for evaluation. The training is another optimiser's.

    The window ends when it has at least ``min_average_window`` steps and at least ``average_window_rate`` times the steps
    so far, or ``max_average_window`` if that is less; the average covers the last full window and the current one.

    Args:
        average_window_rate: the length of the window relative to the number of steps.
        parameters: the parameters to average.
        min_average_window: the smallest length.
        max_average_window: the largest length that the rate can ask for.
        name: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> average = oar.incubate.ModelAverage(0.15, parameters=net.parameters(), min_average_window=2)
        >>> for value in (1.0, 3.0):
        ...     net.weight.set_value(oar.full([2, 1], value))
        ...     average.step()
        ...
        >>> with average.apply():
        ...     net.weight.flatten().tolist()
        [2.0, 2.0]
        >>> net.weight.flatten().tolist()
        [3.0, 3.0]
    """

    # Sums of more terms than this are added up separately, to lose fewer digits.
    _LONGEST_SUM = 16384

    def __init__(self, average_window_rate: float, parameters: Any = None, min_average_window: int = 10000,
                 max_average_window: int = 10000, name: str | None = None) -> None:
        _require_eager("ModelAverage")
        if parameters is None:
            raise ValueError("[ModelAverage] parameters must be given in eager mode: net.parameters().")
        super().__init__(0.0, parameters, None, None, name)
        self.average_window = average_window_rate
        self.min_average_window, self.max_average_window = min_average_window, max_average_window
        self._sums: dict[str, list[Tensor]] = {}
        self._count = self._old_count = self._updates = 0
        self._restore: dict[str, Tensor] = {}

    def _sums_of(self, param: Tensor) -> list[Tensor]:
        if param.name not in self._sums:
            self._sums[param.name] = [oar.zeros_like(param).detach() for _ in range(3)]
        return self._sums[param.name]

    def step(self) -> None:
        """Add the parameters to the window."""
        self._updates += 1
        self._count += 1
        window = min(self.max_average_window, self._updates * self.average_window)
        full = self._count >= self.min_average_window and self._count >= window
        with oar.no_grad():
            for param in self._flat:
                short, long, before = self._sums_of(param)
                short.set_value(short + param)
                if self._updates % self._LONGEST_SUM == 0:
                    long.set_value(long + short)
                    short.zero_()
                if full:
                    before.set_value(short + long)
                    short.zero_()
                    long.zero_()
        if full:
            self._old_count, self._count = self._count, 0

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Add the parameters to the window."""
        self.step()
        return [], []

    @contextlib.contextmanager
    def apply(self, executor: Any = None, need_restore: bool = True) -> Iterator[None]:
        """Use the averages while the context lasts, or, without ``need_restore``, until ``restore`` is called."""
        count = self._count + self._old_count
        if count == 0:
            raise RuntimeError("[ModelAverage] there is no average before the first step. Call step() first.")
        with oar.no_grad():
            for param in self._flat:
                self._restore[param.name] = param.detach().clone()
                short, long, before = self._sums_of(param)
                param.set_value((short + long + before) / float(count))
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any = None) -> None:
        """The parameters that ``apply`` replaced."""
        with oar.no_grad():
            for param in self._flat:
                if param.name in self._restore:
                    param.set_value(self._restore.pop(param.name))
