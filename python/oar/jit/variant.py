"""One captured form of a function, and how it is captured."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import (
    SUPPORTED,
    Decline,
    Interpreter,
    Keep,
    KeptTensor,
    Raised,
    Restart,
    Results,
    can_be_kept,
)
from oar.jit.structure import rebuild
from oar.nn import _path

__all__ = ["Declined", "CapturePlan", "Variant", "capture_variant"]

_MOST_RESTARTS = 16


class _CaptureLock:
    """A capture makes outside tensors symbolic while it runs: two at a time would see each other's."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.RLock()  # a forked child does not have the thread that may hold the old one


_capturing = _CaptureLock()


class Declined(Exception):  # noqa: N818
    """The function cannot be one program: why, where, and what it had read until then."""

    def __init__(self, reason: str, where: str, guards: Any) -> None:
        super().__init__(f"{reason} ({where})" if where else reason)
        self.guards = guards


class CapturePlan:
    """What is to be captured: the call, and the type of each of its tensors."""

    def __init__(
        self, call: Callable, args: tuple, kwargs: dict, tensors: list[Tensor], names: list[str], title: str, keeps_tensors: bool
    ) -> None:
        self.call, self.args, self.kwargs = call, args, kwargs
        self.tensors, self.names, self.title = tensors, names, title
        self.keeps_tensors = keeps_tensors
        self.symbols: dict[int, str] = {}  # by place among all sizes: the name of an open size
        self.least_open = 2  # value of an open size: calls with 1, which broadcasts, get a capture of their own
        self.kept: list[KeptTensor] = []  # what the function keeps outside, after the tensors it is given

    def keep(self, places: list) -> None:
        """Takes the tensors in these places as inputs too."""
        self.kept += [KeptTensor(place) for place in places]
        given = [*self.tensors, *(one.first for one in self.kept)]
        if len({id(tensor) for tensor in given}) < len(given):
            raise Decline("one of its arguments is a tensor that it keeps outside")

    def rows(self, with_open: bool) -> list[tuple]:
        """The inputs as the native capture takes them."""
        made: dict[str, Any] = {}
        rows, place = [], 0
        for tensor, name in zip(self.tensors, self.names):
            shape: list[Any] = []
            for size in tensor.shape:
                symbol = self.symbols.get(place) if with_open and size > 1 else None
                if symbol is not None:
                    size = made.setdefault(symbol, _open_size(symbol, size, self.least_open))
                shape.append(size)
                place += 1
            rows.append((shape, tensor.dtype, name, tensor.stop_gradient, tensor))
        for i, one in enumerate(self.kept):
            tensor = one.first
            rows.append((list(tensor.shape), tensor.dtype, f"kept_{i}", tensor.stop_gradient, tensor))
        return rows


@functools.lru_cache(maxsize=4096)
def _open_size(name: str, hint: int, least: int) -> Any:
    """Symbols live forever, so equal ones are created once."""
    return _C.Dim(name, hint, least)


class Variant:
    """A program with all conditions under which it is valid for the function."""

    def __init__(self, program: Any, sizes: tuple, interpreted: _Interpretation) -> None:
        self.program, self.sizes, self.guards = program, sizes, interpreted.machine.world.guards
        self.finish, self.effects = interpreted.finish, interpreted.effects
        self.before, self.actions = interpreted.machine.before, interpreted.machine.actions
        self.writes = program.writes or bool(self.effects or self.actions or self.before)
        self._demands = interpreted.demands
        self._kept, self._outside = list(interpreted.plan.kept), interpreted.machine.world.outside()
        self.used = 0  # when, by the function's count of calls
        self._form: Any = None

    @property
    def raises(self) -> bool:
        """Whether the function raises depending on a tensor."""
        return self._demands > 0

    def form_for(self, key: Any) -> Any:
        """What native code needs to run it; None where it cannot."""
        if self._form is None and not self._kept:
            plain = not (self.effects or self.actions or self.before or self._demands)
            places = getattr(self.finish, "places", None) if plain else None
            self._form = _C.Form(key, self.sizes, self.guards, self.program, places, self.run, self.writes)
        return self._form

    def last_use(self) -> int:
        return max(self.used, self._form.used) if self._form else self.used

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
        return self.guards.changed() or self._kept_mismatch(tensors) or self.program.fits(self._inputs(tensors))

    def _kept_mismatch(self, tensors: list[Tensor]) -> str | None:
        """Why what the function keeps outside is not what the program expects."""
        if not self._kept:
            return None
        met = {id(tensor) for tensor in tensors}
        for one in self._kept:
            value = one.read()
            if not one.fits(value) or id(value) in met or id(value) in self._outside:
                return "a tensor that it keeps is of another kind, or is passed to it"
            met.add(id(value))
        return None

    def _inputs(self, tensors: list[Tensor]) -> list[Tensor]:
        return [*tensors, *(one.read() for one in self._kept)] if self._kept else tensors

    def run(self, tensors: list[Tensor]) -> Any:
        tensors = self._inputs(tensors)
        for action in self.before:
            action()
        place = _C.rng_state() if self._demands else ()
        try:
            made = self.program.run(tensors)
        except Exception:
            if not self._demands:
                raise
            _C.set_rng_state(*place)
            raise _C.Unmet from None  # the function may have raised before it came to what failed
        if self._demands:
            if not all(bool(t) for t in made[-self._demands:]):
                _C.set_rng_state(*place)
                raise _C.Unmet
            del made[-self._demands:]
        memo: dict[int, Any] = {}
        result = self.finish(made, tensors, memo)
        for effect in self.effects:
            effect(made, tensors, memo)
        for action in self.actions:
            action()
        return result


class _Interpretation:
    """One attempt to capture: the function is interpreted once, and nothing outside changes."""

    def __init__(self, plan: CapturePlan) -> None:
        self.plan = plan
        self.machine = Interpreter()
        self.machine.world.keeps_tensors = plan.keeps_tensors

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        """Called by the native capture with its symbolic tensors."""
        world, plan = self.machine.world, self.plan
        kept = [one.first for one in plan.kept]
        world.inputs = {id(symbolic): given for symbolic, given in zip(inputs, [*plan.tensors, *kept])}
        world.kept = {one.place.name: symbolic for one, symbolic in zip(plan.kept, inputs[len(plan.tensors):])}
        given = iter(inputs)
        args, kwargs = rebuild((list(plan.args), plan.kwargs), lambda: next(given), world.argument)
        grad, cast = _C.is_grad_enabled(), _C.get_autocast()
        try:
            with _path.watched(), _path.inside_method(plan.call):
                result = self.machine.start(plan.call, args, kwargs)
            if _C.is_grad_enabled() != grad or _C.get_autocast() != cast:
                raise Decline("it leaves the gradient mode or mixed precision changed")
        finally:
            _C.set_grad_enabled(grad)
            _C.set_autocast(*cast)
        undone = world.undone_by_itself()
        for label, place in undone:
            if place is None or not can_be_kept(place.read()):
                raise Decline(f"it changes what it reads: {label}")
        if undone:
            raise Keep([place for _, place in undone])
        world.check_kept(kept)
        results = Results(world)
        self.finish = results.finish(result)
        self.effects = results.effects()
        for tensor in self.machine.retained:
            if tensor.grad is None or any(tensor is one for one in results.outputs):
                raise Decline("a tensor that it makes keeps its gradient until the caller looks at it")
        self.demands = len(self.machine.demands)
        return [*results.outputs, *self.machine.demands]


def capture_variant(plan: CapturePlan, with_open: bool) -> Variant:
    """Captures the call. Raises ``Declined`` where that cannot be done; nothing has happened then."""
    if not SUPPORTED:
        raise Declined("functions are captured under CPython 3.11 only", "", None)
    with _capturing.lock:
        plan.kept.clear()
        for _ in range(_MOST_RESTARTS):
            rows = plan.rows(with_open)
            attempt = _Interpretation(plan)
            machine = attempt.machine
            try:
                program = _C.capture_trained(attempt.run, rows, plan.title)
            except Restart:
                continue
            except Keep as keep:
                try:
                    plan.keep(keep.places)
                    continue
                except Decline as decline:
                    raise Declined(str(decline), "", machine.world.guards) from None
            except Decline as decline:
                raise Declined(str(decline), machine.where_declined(), machine.world.guards) from None
            except Raised as raised:
                reason = f"it raises {type(raised.error).__name__}: {raised.error}"
                raise Declined(reason, machine.where_declined(), machine.world.guards) from None
            except Exception as error:
                if machine.is_foreign(error):
                    raise
                text = (str(error).strip().splitlines() or [""])[0]
                reason = f"{type(error).__name__}: {text}"
                raise Declined(reason, machine.where_declined(), machine.world.guards) from None
            if attempt.demands and program.writes:
                raise Declined("it raises depending on a tensor, and changes outside tensors", "", None)
            sizes = tuple(None if isinstance(d, _C.Dim) else d for row in rows[:len(plan.tensors)] for d in row[0])
            return Variant(program, sizes, attempt)
        raise Declined("it creates a lasting object at every call", "", None)
