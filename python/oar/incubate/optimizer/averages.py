"""Optimisers that average parameters over steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework import unique_name
from oar.framework.persistent import persistent
from oar.optimizer import Optimizer
from oar.optimizer._in_program import is_variable

__all__ = ["LookAhead", "ModelAverage"]


def _at_once() -> Any:
    """Inside it, calls run at once, whatever the mode."""
    return contextlib.nullcontext() if oar.in_dynamic_mode() else oar.static.program.written_elsewhere()


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

    _by_element = False

    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None:
        if inner_optimizer is None:
            raise AssertionError("inner optimizer can not be None")
        if not 0.0 <= alpha <= 1.0:
            raise AssertionError("alpha should be larger or equal to 0.0, and less or equal than 1.0")
        if not (isinstance(k, int) and k > 0):
            raise AssertionError("k should be a positive integer")
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

    def _append_follow(self, params: list[Tensor]) -> None:
        """The same in a program, where the number of steps is a state."""
        taken = persistent(lambda: ops.full([1], 0, "int64"), unique_name.generate("lookahead_step"))
        taken.set_value(taken + 1)
        is_first, is_due = taken == 1, taken % self.k == 0
        for param in params:
            slow = persistent(lambda: ops.zeros(list(param.shape), param.dtype), unique_name.generate(f"{param.name}_slow"))  # noqa: B023
            start = ops.where(is_first, param, slow)
            reached = ops.where(is_due, param * self.alpha + start * (1.0 - self.alpha), start)
            slow.set_value(reached)
            param.set_value(ops.where(is_due, reached, param))

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Step with gradients that are there already, or after ``backward``. In static mode, lets the program do so at every run."""
        if not isinstance(loss, Tensor):
            raise AssertionError("The loss should be an Tensor.")
        if is_variable(loss):
            steps, pairs = self.inner_optimizer.minimize(loss, startup_program, parameters, no_grad_set)
            with loss.block.program._role("update"), oar.no_grad():
                self._append_follow([param for param, _ in pairs])
            return steps, pairs
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

    _state_names = ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates", "restore")

    _by_element = False

    def __init__(self, average_window_rate: float, parameters: Any = None, min_average_window: int = 10000,
                 max_average_window: int = 10000, name: str | None = None) -> None:
        is_static = not oar.in_dynamic_mode()
        if parameters is None and not is_static:
            raise ValueError("[ModelAverage] parameters must be given in eager mode: net.parameters().")
        if parameters is None:
            parameters = [param for param in oar.static.default_main_program().all_parameters() if param.do_model_average is not False]
        super().__init__(0.0, parameters, None, None, name)
        self.average_window = average_window_rate
        self.min_average_window, self.max_average_window = min_average_window, max_average_window
        self._is_applied = False
        if is_static:
            with oar.static.default_main_program()._role("update"):
                self.step()

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        if name.startswith(("sum", "restore")):
            return ops.zeros(list(param.shape), param.dtype)
        return ops.full([1], 0, "int64")

    def _states(self, param: Tensor) -> list[Tensor]:
        """All but the last: in static mode these are states of the program that the startup program creates."""
        return [self._state_tensor(name, param) for name in self._state_names[:-1]]

    def step(self) -> None:
        """Add the parameters to the window. In static mode the program does that, at every run."""
        with oar.no_grad():
            for param in self._flat:
                self._add(param)

    def _add(self, param: Tensor) -> None:
        short, long, before, count, old_count, updates = self._states(param)
        updates.set_value(updates + 1)
        added = count + 1
        longest = ops.cast(ops.cast(updates, "float64") * float(self.average_window), "int64")
        window = ops.minimum(longest, ops.full([1], self.max_average_window, "int64"))
        is_full = ops.logical_and(added >= self.min_average_window, added >= window)
        is_long, sum_now, none = updates % self._LONGEST_SUM == 0, short + param, ops.zeros(list(param.shape), param.dtype)
        long_now = ops.where(is_long, long + sum_now, long)
        sum_now = ops.where(is_long, none, sum_now)
        before.set_value(ops.where(is_full, sum_now + long_now, before))
        short.set_value(ops.where(is_full, none, sum_now))
        long.set_value(ops.where(is_full, none, long_now))
        old_count.set_value(ops.where(is_full, added, old_count))
        count.set_value(ops.where(is_full, ops.full([1], 0, "int64"), added))

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Add the parameters to the window."""
        if not is_variable(loss):
            self.step()
        return [], []

    def _content(self, tensor: Tensor) -> Tensor:
        """The tensor, or what the global scope holds for a variable."""
        return oar.static.global_scope()._content(tensor.name) if is_variable(tensor) else tensor

    @contextlib.contextmanager
    def apply(self, executor: Any = None, need_restore: bool = True) -> Iterator[None]:
        """Use the averages while the context lasts, or, without ``need_restore``, until ``restore`` is called."""
        with _at_once(), oar.no_grad():
            for param in self._flat:
                short, long, before, count, old_count, _ = [self._content(state) for state in self._states(param)]
                steps = (count + old_count).item()
                if steps == 0:
                    raise RuntimeError("[ModelAverage] there is no average before the first step. Call step() first.")
                value = self._content(param)
                self._accumulators["restore"][param.name] = value.detach().clone()
                value.set_value((short + long + before) / float(steps))
        self._is_applied = True
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any = None) -> None:
        """The parameters that ``apply`` replaced."""
        if not self._is_applied:
            return
        self._is_applied = False
        with _at_once(), oar.no_grad():
            for param in self._flat:
                self._content(param).set_value(self._accumulators["restore"][param.name])
