"""L-BFGS: a quasi-Newton method that remembers some steps instead of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor
from oar.optimizer._line_search import strong_wolfe
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer

__all__ = ["LBFGS"]


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    """With its own lists, since a step adds to them."""
    return {key: list(value) if isinstance(value, list) else value for key, value in state.items()}


class LBFGS(Optimizer):
    """Minimises by Newton's method with an approximate inverse Hessian from the last steps.

    ``step`` takes a closure that clears the gradients, computes the loss, calls ``backward`` and returns the loss.
    It may be called several times in a step.

    Args:
        learning_rate: the length of steps, in parts of the Newton step.
        max_iter: iterations in one call of ``step``.
        max_eval: calls of the closure in one call of ``step``; by default ``max_iter * 5 // 4``.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where neither the parameters nor the loss change more.
        history_size: the number of steps to remember.
        line_search_fn: None or ``'strong_wolfe'``.
        parameters: parameters, in one group.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``; it enters the gradient.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = oar.create_parameter([1], 'float32', default_initializer=nn.initializer.Constant(5.0))
        >>> optimizer = oar.optimizer.LBFGS(parameters=[w], line_search_fn='strong_wolfe')
        >>> def closure():
        ...     optimizer.clear_grad()
        ...     loss = ((w - 3) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        ...
        >>> _ = optimizer.step(closure)
        >>> round(w.item(), 3)
        3.0
    """

    _by_element = False

    def __init__(
        self,
        learning_rate: float | LRScheduler = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn can be None or 'strong_wolfe', but received {line_search_fn!r}.")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if len(self._groups) != 1:
            raise ValueError("LBFGS takes one group of parameters.")
        self.max_iter = max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad = tolerance_grad
        self.tolerance_change = tolerance_change
        self.history_size = history_size
        self.line_search_fn = line_search_fn
        self._state: dict[str, Any] = {"func_evals": 0, "n_iter": 0}

    # parameters and gradients as one vector --------------------------------------------------------

    def _trained(self) -> list[int]:
        return [i for i, param in enumerate(self._flat) if not param.stop_gradient]

    def _flat_grad(self) -> Tensor:
        grads: list[Any] = [None] * len(self._flat)
        for i in self._trained():
            param = self._flat[i]
            grad = oar.zeros_like(param) if param.grad is None else param.grad
            grads[i] = grad.to_dense() if grad.is_selected_rows() else grad
        if self._groups[0]["grad_clip"] is not None:
            grads = self._clipped(grads)
        pairs = [(self._flat[i], grads[i]) for i in self._trained()]
        pairs = self.append_regularization_ops(pairs, self.regularization)
        return oar.concat([oar.reshape(grad, [-1]) for _, grad in pairs])

    def _move(self, length: float, direction: Tensor) -> None:
        at = 0
        for i in self._trained():
            param = self._flat[i]
            part = direction[at : at + param.size]
            param.set_value(param + oar.reshape(part, param.shape) * length)
            at += param.size

    def _evaluate(self, closure: Callable[[], Tensor]) -> tuple[float, Tensor]:
        with oar.enable_grad():
            loss = float(closure())
        self._state["func_evals"] += 1
        return loss, self._flat_grad()

    def _along(self, closure: Callable[[], Tensor], start: list[Tensor], length: float, direction: Tensor) -> Any:
        """Loss and gradient at ``start + length * direction``; the parameters are at ``start`` again then."""
        self._move(length, direction)
        made = self._evaluate(closure)
        for i, value in zip(self._trained(), start):
            self._flat[i].set_value(value)
        return made

    # the method ------------------------------------------------------------------------------------

    def _remember(self, change: Tensor, grad_change: Tensor) -> None:
        state = self._state
        curvature = float((grad_change * change).sum())
        if curvature <= 1e-10:
            return
        if len(state["old_sk"]) == self.history_size:
            for key in ("old_sk", "old_yk", "ro"):
                state[key].pop(0)
        state["old_sk"].append(change)
        state["old_yk"].append(grad_change)
        state["ro"].append(1.0 / curvature)
        state["H_diag"] = curvature / float((grad_change * grad_change).sum())

    def _direction(self, grad: Tensor) -> Tensor:
        """Less the approximate inverse Hessian times the gradient, by two loops over the history."""
        state = self._state
        changes, grad_changes, weights = state["old_sk"], state["old_yk"], state["ro"]
        direction, used = -grad, []
        for change, grad_change, weight in zip(reversed(changes), reversed(grad_changes), reversed(weights)):
            used.append((change * direction).sum() * weight)
            direction = direction - grad_change * used[-1]
        direction = direction * state["H_diag"]
        for change, grad_change, weight in zip(changes, grad_changes, weights):
            direction = direction + change * (used.pop() - (grad_change * direction).sum() * weight)
        return direction

    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        """Some iterations. Returns the loss before them."""
        with oar.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Tensor]) -> Tensor:
        state, rate = self._state, self.get_lr()
        first_evals = state["func_evals"]
        with oar.enable_grad():
            first = closure()
        state["func_evals"] += 1
        loss, grad = float(first), self._flat_grad()
        largest = float(oar.abs(grad).max())
        if largest <= self.tolerance_grad:
            return first
        for iteration in range(self.max_iter):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(old_sk=[], old_yk=[], ro=[], H_diag=1.0, d=-grad)
            else:
                self._remember(state["d"] * state["alpha"], grad - state["prev_flat_grad"])
                state["d"] = self._direction(grad)
            state["prev_flat_grad"], before = grad, loss
            direction = state["d"]
            length = min(1.0, 1.0 / float(oar.abs(grad).sum())) * rate if state["n_iter"] == 1 else rate
            slope = float((grad * direction).sum())
            if slope > -self.tolerance_change:
                break
            if self.line_search_fn:
                start = [self._flat[i].clone() for i in self._trained()]
                loss, grad, length = strong_wolfe(
                    lambda a: self._along(closure, start, a, direction), length, direction, loss, grad, slope
                )
                self._move(length, direction)
                largest = float(oar.abs(grad).max())
            else:
                self._move(length, direction)
                if iteration != self.max_iter - 1:
                    loss, grad = self._evaluate(closure)
                    largest = float(oar.abs(grad).max())
            state.update(alpha=length, prev_loss=before)
            small = float(oar.abs(direction * length).max()) <= self.tolerance_change
            settled = abs(loss - before) < self.tolerance_change
            spent = state["func_evals"] - first_evals >= self.max_eval
            if largest <= self.tolerance_grad or small or settled or spent:
                break
        return first

    # state -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The history, the counters and, with a scheduler, its state."""
        packed: dict[str, Any] = {"state": _copied(self._state)}
        if isinstance(self._learning_rate, LRScheduler):
            packed["LR_Scheduler"] = self._learning_rate.state_dict()
        return packed

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a history."""
        self._state = _copied(state_dict["state"])
        if isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(state_dict["LR_Scheduler"])
            self._refresh_lr()

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Not for LBFGS, which needs to compute the loss again."""
        raise NotImplementedError("LBFGS optimizer does not support minimize; call step with a closure.")
