"""An optimiser around another one."""

from __future__ import annotations

from typing import Any

__all__ = ["WrappedOptimizer"]


class WrappedOptimizer:
    """An optimiser of several processes around one of a single process."""

    def __init__(self, optimizer: Any) -> None:
        self._inner_opt = optimizer

    def step(self) -> None:
        """Updates the parameters."""
        self._inner_opt.step()

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Computes gradients and updates the parameters: see ``Optimizer.minimize``."""
        return self._inner_opt.minimize(loss, startup_program, parameters, no_grad_set)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner_opt":
            raise AttributeError(name)
        return getattr(self._inner_opt, name)
