"""One captured form of a function, and the making of it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework import host_actions
from oar.jit.guards import Guards
from oar.jit.observe import Observer
from oar.jit.structure import rebuild, template_of

__all__ = ["Declined", "Plan", "Variant", "capture_variant"]

# A capture makes tensors outside symbolic while it lasts: two at a time would meet each other's.
_one_at_a_time = threading.RLock()


class Declined(Exception):  # noqa: N818
    """The function ran on symbolic tensors, but its program would not do what it does."""


class Plan:
    """What is to be captured: the call, and the type of each of its tensors."""

    def __init__(
        self, call: Callable, args: tuple, kwargs: dict, tensors: list[Tensor], names: list[str], title: str
    ) -> None:
        self.call, self.args, self.kwargs = call, args, kwargs
        self.tensors, self.names, self.title = tensors, names, title
        self.symbols: dict[int, str] = {}  # by place among all sizes: the name of an open size

    def rows(self, with_open: bool) -> list[tuple]:
        """The inputs as the native capture takes them."""
        made: dict[str, Any] = {}
        rows, place = [], 0
        for tensor, name in zip(self.tensors, self.names):
            shape: list[Any] = []
            for size in tensor.shape:
                symbol = self.symbols.get(place) if with_open and size > 1 else None
                if symbol is not None:
                    size = made.setdefault(symbol, _C.Dim(symbol, size, 2))
                shape.append(size)
                place += 1
            rows.append((shape, tensor.dtype, name, tensor.stop_gradient))
        return rows


class Variant:
    """A program with all that has to be so for it to stand for the function."""

    def __init__(self, program: Any, sizes: tuple, guards: Guards, finish: Callable, actions: list) -> None:
        self.program, self.sizes, self.guards = program, sizes, guards
        self.finish, self.actions = finish, actions
        self.writes = program.writes
        self.used = 0  # when, by the function's count of calls

    def other_size(self, sizes: tuple) -> int | None:
        """The place of a size that it is not for."""
        if sizes == self.sizes:
            return None
        for i, (then, now) in enumerate(zip(self.sizes, sizes)):
            if then != now and (then is not None or now < 2):
                return i
        return None

    def mismatch(self, tensors: list[Tensor]) -> str | None:
        """Why it is not for a call with sizes that it is for."""
        return self.guards.changed() or self.program.fits(tensors)

    def run(self, tensors: list[Tensor]) -> Any:
        made = self.program.run(tensors)
        for action in self.actions:
            action()
        return self.finish(made, tensors)


def capture_variant(plan: Plan, with_open: bool) -> Variant:
    """Captures the call. Raises what the function raises, with what it read as ``error.guards``, or ``Declined``."""
    with _one_at_a_time:
        attempts = [_Attempt(plan, with_open)]
        try:
            if attempts[0].changed and not attempts[0].keeps:
                attempts.append(_Attempt(plan, with_open))  # what the first call has made is there now
            return attempts[-1].variant()
        except Exception:
            for attempt in reversed(attempts):
                attempt.restore()
            raise


class _Attempt:
    def __init__(self, plan: Plan, with_open: bool) -> None:
        observer = Observer(plan.call)
        self.guards, self._random = observer.guards, observer.random
        rows = plan.rows(with_open)
        self._sizes = tuple(None if isinstance(d, _C.Dim) else d for row in rows for d in row[0])
        finish: list[Callable] = []

        def run(inputs: list[Tensor]) -> list[Tensor]:
            given = iter(inputs)
            args, kwargs = rebuild((plan.args, plan.kwargs), lambda: next(given))
            with observer:
                result = plan.call(*args, **kwargs)
            outputs, made = template_of(result, inputs)
            finish.append(made)
            return outputs

        try:
            with host_actions.collecting() as self._actions:
                self._program = _C.capture_trained(run, rows, plan.title)
        except Exception as error:
            self.restore()
            error.guards = self.guards  # type: ignore[attr-defined]
            raise
        self._finish = finish[0]
        self.changed = self.guards.changed()
        self._impure = observer.impure
        self.keeps = self._keeps_tensors()

    def restore(self) -> None:
        """Undoes what the function did to what it read: it is to run once more."""
        self.guards.restore()
        self._random.restore()

    def _keeps_tensors(self) -> bool:
        if self._program.kept_tensors:
            gc.collect()
        return self._program.kept_tensors > 0

    def variant(self) -> Variant:
        left = self.guards.holds_open_size()
        if left is not None:
            raise Declined(f"the function keeps a size that is open in {left}.")
        if self.keeps:
            raise Declined("the function keeps a tensor that it has made beyond its end.")
        if self.changed:
            raise Declined(f"the function changes what it reads: {self.changed}.")
        if self._impure:
            raise Declined(f"{self._impure}, which is another thing at every call.")
        return Variant(self._program, self._sizes, self.guards, self._finish, self._actions)
