"""An optimiser whose updates are made by servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.distributed.ps.runtime import Runtime

__all__ = ["DenseParameters", "ServerOptimizer"]


class DenseParameters:
    """All parameters, joined in one array: the dense table of the servers."""

    def __init__(self, names: Sequence[str], shapes: Sequence[Sequence[int]], dtypes: Sequence[str]) -> None:
        for name, dtype in zip(names, dtypes):
            if dtype != "float32":
                raise TypeError(f"[distributed_optimizer] servers keep float32, and the parameter '{name}' is {dtype}.")
        self._shapes = [tuple(shape) for shape in shapes]
        self._ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes], dtype="int64")
        self.size = int(self._ends[-1]) if len(self._ends) else 0

    def joined(self, parts: Sequence[Any]) -> Any:
        """Arrays of the parameters' shapes as one; None stands for zeros."""
        whole = np.zeros(self.size, "float32")
        for end, part in zip(self._ends, parts):
            if part is not None:
                whole[end - part.size : end] = np.asarray(part, "float32").reshape(-1)
        return whole

    def cut(self, whole: Any) -> list[Any]:
        """The arrays of the parameters."""
        return [part.reshape(shape) for part, shape in zip(np.split(whole, self._ends[:-1]), self._shapes)]


class ServerOptimizer:
    """What ``fleet.distributed_optimizer`` returns with servers: ``step`` pushes the gradients of parameters and of sparse embeddings,
    and pulls the values of the parameters.
    """

    def __init__(self, optimizer: Any, runtime: Runtime) -> None:
        self._optimizer, self._runtime = optimizer, runtime
        self._dense: DenseParameters | None = None

    def _parameters(self) -> list[Tensor]:
        return [p for p in self._optimizer._flat if not p.stop_gradient]

    def _begin(self) -> DenseParameters:
        if self._dense is None:
            parameters = self._parameters()
            self._dense = DenseParameters([p.name for p in parameters], [p.shape for p in parameters],
                                          [p.dtype.name for p in parameters])
            if self._dense.size:
                self._write(self._runtime.begin_dense(self._dense.joined([p.numpy() for p in parameters])))
        return self._dense

    def _write(self, values: Any) -> None:
        assert self._dense is not None
        with oar.no_grad():
            for parameter, content in zip(self._parameters(), self._dense.cut(values)):
                parameter.set_value(content)

    def begin(self) -> None:
        """Pulls the values that all workers begin with. The first ``step`` does it, too late for its own gradients."""
        self._begin()

    def step(self) -> None:
        """Ends a step."""
        fresh = self._dense is None
        dense = self._begin()
        if fresh and self._runtime.roles._worker_num() > 1 and dense.size:
            raise RuntimeError("[step] the parameters of the workers have not been made equal before the first step. hint: call "
                               "fleet.init_worker() after fleet.distributed_optimizer.")
        lookups = [lookup for layer in self._runtime.layers for lookup in layer.take_lookups()]
        rate = float(self._optimizer.get_lr())
        if self._runtime.mode == "geo":
            self._optimizer.step()
            values = self._runtime.step_of_geo(dense.joined([p.numpy() for p in self._parameters()]), lookups, rate)
        else:
            gradients = [None if p.grad is None else p.grad.numpy() for p in self._parameters()]
            values = self._runtime.step(dense.joined(gradients), lookups, rate)
        if values is not None and dense.size:
            self._write(values)

    def minimize(self, loss: Tensor, *args: Any, **kwargs: Any) -> Any:
        """``step``: call ``loss.backward()`` before."""
        self.step()
        return [], [(p, p.grad) for p in self._parameters()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)
