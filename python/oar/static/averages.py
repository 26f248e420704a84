"""Moving averages of parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework import unique_name
from oar.framework.persistent import persistent
from oar.static.scope import global_scope
from oar.static.program import default_main_program, written_elsewhere

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Averages of a program's parameters: ``average = decay * average + (1 - decay) * parameter`` at every run.

    Args:
        decay: how much of the average is kept.
        thres_steps: a variable that counts steps; the decay is then at most ``(steps + 1) / (steps + 10)``.
        name: the first part of the names of the averages.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     loss = oar.static.nn.fc(x, size=1).mean()
        ...     _ = oar.optimizer.SGD(0.1).minimize(loss)
        ...     average = oar.static.ExponentialMovingAverage(0.9)
        ...     average.update()
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> _ = executor.run(main, feed={'x': np.ones([2, 3], 'float32')})
        >>> with average.apply(executor):
        ...     pass  # the parameters are the averages here
        ...
        >>> oar.disable_static()
    """

    def __init__(self, decay: float = 0.999, thres_steps: Tensor | None = None, name: str | None = None) -> None:
        if oar.in_dynamic_mode():
            raise RuntimeError("ExponentialMovingAverage is for static mode. Call enable_static() first.")
        self._decay, self._steps_seen = float(decay), thres_steps
        self._name = name or ""
        self._averages: dict[str, str] = {}
        self._parameters = [p for p in default_main_program().all_parameters() if not p.stop_gradient]
        self._saved: dict[str, Tensor] = {}
        self._rest = persistent(lambda: ops.full([], 1.0, "float32"), unique_name.generate(f"{self._name}ema_rest"))

    def update(self) -> None:
        """Let the program move the averages on; call it after ``minimize``."""
        program = default_main_program()
        with program._role("update"), oar.no_grad():
            decay: Any = self._decay
            if self._steps_seen is not None:
                steps = ops.cast(ops.reshape(self._steps_seen, []), "float32")
                decay = ops.minimum((steps + 1.0) / (steps + 10.0), ops.full([], self._decay, "float32"))
            # What the zeros that averages begin with still count for.
            self._rest.set_value(self._rest * decay)
            for p in self._parameters:
                name = unique_name.generate(f"{self._name}{p.name}_ema")
                average = persistent(lambda: ops.zeros(list(p.shape), p.dtype), name)  # noqa: B023
                average.set_value(average * decay + p * (1.0 - decay))
                self._averages[p.name] = name

    @contextlib.contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Within the block parameters are their averages, without the zeros these began with."""
        scope = global_scope()
        with written_elsewhere():
            share = 1.0 - float(scope._content(self._rest.name))
            for name, average in self._averages.items():
                parameter = scope._content(name)
                self._saved[name] = parameter.clone()
                parameter.set_value(scope._content(average) / share if share > 0 else scope._content(average))
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Parameters are as they were before ``apply``."""
        with written_elsewhere():
            for name, value in self._saved.items():
                global_scope()._content(name).set_value(value)
        self._saved = {}
