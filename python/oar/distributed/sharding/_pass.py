"""The gradients of a backward pass, reduced to their owners while the pass runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import oar
from oar import _C
from oar._C import Tensor
from oar.distributed.communication import ReduceOp, stream
from oar.distributed.communication.group import Group
from oar.distributed.sharding._unit import Unit

__all__ = ["Gradients"]

_UNDER_WAY = 2  # units whose gradients may be sent at once


class Gradients:
    """Collects the gradients of units, and sends each unit when it is complete. All processes send the units in the same order.

    Args:
        units: the units, in the order in which a backward pass reaches them.
        group: the processes.
    """

    def __init__(self, units: Sequence[Unit], group: Group) -> None:
        self.units, self.group = list(units), group
        self.is_on = True
        self.done_with: Callable[[Unit], None] = lambda unit: None
        self._used: set[str] = set()
        self._sent = self._received = 0
        self._is_running = False
        self._stored: list[Tensor] = []  # parameters whose own gradients the tape has kept
        for unit in self.units:
            for number, parameter in enumerate(unit.parameters):
                parameter.register_hook(self._hook(unit, number))

    def _hook(self, unit: Unit, number: int) -> Callable[[Tensor], None]:
        def arrived(gradient: Tensor) -> None:
            if _C.is_capturing() or _C.is_symbolic(gradient):
                raise RuntimeError("[group_sharded_parallel] a step with divided states cannot be captured. hint: capture the layers, and "
                                   "call backward() and step() outside.")
            self._used.add(unit.parameters[number].name)
            if self.is_on:
                with oar.no_grad():
                    if not self._is_running:
                        self._begin()
                        _C.add_backward_final_hook(self._end)
                    self._add(unit, number, gradient)

        return arrived

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Gradients of the block stay with the parameters."""
        before, self.is_on = self.is_on, False
        try:
            yield
        finally:
            self.is_on = before

    def _begin(self) -> None:
        self._is_running, self._sent, self._received = True, 0, 0
        for unit in self.units:
            unit.begin_pass()

    def _add(self, unit: Unit, number: int, gradient: Tensor) -> None:
        parameter = unit.parameters[number]
        if number not in unit.missing:
            raise RuntimeError(f"[group_sharded_parallel] the parameter {parameter.name} got its gradient twice in one backward pass.")
        self._drop_stored()
        dense = gradient if gradient.is_dense() else gradient.to_dense()
        if parameter.grad is not None:  # steps in no_sync have left it
            dense = parameter.grad + dense
            parameter.clear_gradient(False)
        unit.add(number, dense)
        self._stored.append(parameter)
        if not unit.missing:
            self.done_with(unit)
        self._send_complete()

    def _drop_stored(self) -> None:
        for parameter in self._stored:
            parameter.clear_gradient(False)
        self._stored = []

    def _send_complete(self) -> None:
        while self._sent < len(self.units) and not self.units[self._sent].missing:
            self._send_next()

    def _send_next(self) -> None:
        self.units[self._sent].send()
        self._sent += 1
        while self._received < self._sent - _UNDER_WAY:
            self.units[self._received].receive()
            self._received += 1

    def _end(self) -> None:
        """After the backward pass."""
        self._is_running = False
        with oar.no_grad():
            self._drop_stored()
            for unit in self.units:
                for number in sorted(unit.missing):
                    parameter = unit.parameters[number]
                    if parameter.grad is not None:
                        unit.add(number, parameter.grad)
                        parameter.clear_gradient(False)
                unit.missing.clear()
            while self._sent < len(self.units):
                self._send_next()
            for unit in self.units[self._received :]:
                unit.receive()

    def agree_on_unused(self) -> None:
        """Pieces of parameters that no process has used have no gradient."""
        if not self.units:
            return
        parameters = [p for unit in self.units for p in unit.parameters]
        used = oar.to_tensor([int(p.name in self._used) for p in parameters], "int32")
        stream.all_reduce(used, ReduceOp.MAX, self.group)
        idle = {p.name for p, count in zip(parameters, used.tolist()) if not count}
        for unit in self.units:
            for piece in unit.pieces:
                if piece.whole.name in idle:
                    piece.parameter.clear_gradient(False)

    def clear(self, forget_used: bool) -> None:
        """Forgets the gradients, also those of a backward pass that failed."""
        self._is_running = False
        self._stored = []
        if forget_used:
            self._used.clear()
        for unit in self.units:
            unit.clear_gradients()
