"""The interpreter: runs the instructions of Python functions on symbolic tensors."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework.frames import is_users_file
from oar.jit._interpret.frame import Frame, Generator, frame_of
from oar.jit._interpret.operators import Operators
from oar.jit._interpret.world import ABSENT, Decline, Raised, World, is_known_by_value
from oar.nn import _path

__all__ = ["INSTRUCTIONS", "Machine", "instruction"]

INSTRUCTIONS: dict[str, Callable] = {}
_RETURNED, _YIELDED = "returned", "yielded"
_FRAMES_PER_CALL = 12  # of Python's own, for one that is interpreted


def instruction(*names: str) -> Callable:
    """Registers how an instruction is done. What it returns, if anything, ends the run of the frame."""
    def register(function: Callable) -> Callable:
        for name in names:
            INSTRUCTIONS[name] = function
        return function

    return register


class Machine(Operators):
    """One interpretation of one call."""

    raised: list[Any]
    negation: Callable[..., Any]
    next_in_range: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.in_package)
        self.frames: list[Frame] = []
        self.actions: list[Any] = []  # on the host, after every run
        self.before: list[Any] = []  # … and before it
        self._acted_on: list[Any] = []
        self._declined_at = ""
        self.forked = 0  # branches on tensors that are under way
        self.has_returned = False
        self.retained: list[Tensor] = []  # tensors that keep their gradient

    # running ---------------------------------------------------------------------------------------------

    def start(self, function: Any, args: list, kwargs: dict) -> Any:
        """Interprets the call. Raises ``Decline``, ``Restart``, or what the function raises, as ``Raised``."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, limit * _FRAMES_PER_CALL))
        try:
            result = self.call(function, args, kwargs)
            self._check_generators()
            self.has_returned = True
            return result
        except RecursionError:
            raise Decline("it calls itself too deeply") from None
        finally:
            sys.setrecursionlimit(limit)

    def where(self) -> str:
        """The user's line that is being interpreted."""
        for frame in reversed(self.frames):
            path = frame.code.raw.co_filename
            if is_users_file(path):
                source = linecache.getline(path, frame.line).strip()
                return f"{path}:{frame.line}: {source}" if source else f"{path}:{frame.line}"
        return ""

    def where_declined(self) -> str:
        """Where the interpretation was given up."""
        return self._declined_at

    def call_function(self, function: types.FunctionType, args: list, kwargs: dict) -> Any:
        frame = frame_of(function, args, kwargs, self.world)
        if frame.code.is_generator:
            if frame.code.raw.co_flags & 0x280:  # a coroutine, an asynchronous generator
                raise Decline("it is asynchronous")
            frame.index = next(i for i, one in enumerate(frame.code.instructions) if one.name == "RETURN_GENERATOR") + 1
            return self.world.new(Generator(frame))
        return self.run(frame)[1]

    def run(self, frame: Frame) -> tuple[str, Any]:
        """Goes on with a frame until it returns or yields."""
        self.frames.append(frame)
        try:
            return self.step_until_end(frame)
        except (Decline, Raised):
            self._declined_at = self._declined_at or self.where()
            raise
        finally:
            self.frames.pop()

    def step_until_end(self, frame: Frame) -> tuple[str, Any]:
        instructions, table = frame.code.instructions, INSTRUCTIONS
        while True:
            one = instructions[frame.index]
            frame.index += 1
            todo = table.get(one.name)
            if todo is None:
                raise Decline(f"it uses the instruction {one.name}")
            try:
                ended = todo(self, frame, one)
            except Raised as raised:
                self.unwind(frame, raised)
                self._declined_at = ""
                continue
            if ended is not None:
                return ended

    def unwind(self, frame: Frame, raised: Raised) -> None:
        """Goes on in the handler of an exception, or raises it in the caller."""
        handler = frame.code.handler_of(frame.index - 1)
        if handler is None:
            raise raised
        error = raised.error
        self.world.new(error)
        if frame.caught and frame.caught[-1] is not error and error.__context__ is None:
            error.__context__ = frame.caught[-1]
        del frame.stack[handler.depth:]
        if handler.lasti:
            frame.stack.append(frame.index - 1)
        frame.stack.append(error)
        frame.index = handler.target

    def resume(self, generator: Generator, value: Any) -> Any:
        """Runs a generator to its next value."""
        if generator.ended:
            raise Raised(StopIteration())
        if generator.running:
            raise Decline("a generator runs itself")
        self.check_iterator(generator)
        frame = generator.frame
        if generator.started:
            frame.stack.append(value)
        else:
            generator.started = True
            frame.stack.append(None)
        generator.running = True
        try:
            how, result = self.run(frame)
        except BaseException as error:
            generator.ended = True
            if isinstance(error, Raised) and isinstance(error.error, StopIteration):
                raise Decline("a generator raises StopIteration") from None
            raise
        finally:
            generator.running = False
        if how is _YIELDED:
            return result
        generator.ended = True
        raise Raised(StopIteration(result))

    def _check_generators(self) -> None:
        """Python closes a generator that is freed: its pending ``finally`` and ``with`` blocks run."""
        for one in self.world.fresh_objects().values():
            if isinstance(one, Generator) and one.waits_in_a_handler():
                raise Decline("a generator is left in the middle of a try or with statement")

    def in_users_code(self) -> bool:
        return is_users_file(self.frames[-1].code.raw.co_filename)

    def in_package(self) -> bool:
        return bool(self.frames) and str(self.frames[-1].globals.get("__name__")).startswith("oar.")

    def is_foreign(self, error: BaseException) -> bool:
        """The handler of a signal raised it: there is a frame of Python in between that is not interpreted."""
        trace = error.__traceback__
        while trace is not None:
            if is_users_file(trace.tb_frame.f_code.co_filename):
                return True
            trace = trace.tb_next
        return False

    # what happens on the host ------------------------------------------------------------------------------

    def defer(self, action: Callable, owner: Any) -> None:
        """An action after every run; its owner must not be looked at from here on."""
        self.world.check_effect("it acts on the host")
        self.actions.append(action)
        if owner is not None:
            self.world.guards.object(owner)
            self._acted_on.append(owner)

    def was_acted_on(self, owner: Any) -> bool:
        return any(owner is one for one in self._acted_on)

    def find_attribute(self, value: Any, name: str) -> Any:
        if self._acted_on and self.was_acted_on(value) and name != "step":
            raise Decline(f"it reads a {type(value).__name__} after its step")
        return super().find_attribute(value, name)

    # jumps on values -----------------------------------------------------------------------------------------

    def jump_if(self, frame: Frame, one: Any, value: Any, wanted: bool) -> Any:
        """Jumps where the truth of the value is the wanted one."""
        if isinstance(value, Tensor) and _C.is_symbolic(value):
            return self.fork(frame, one, value, wanted)
        if self.truth(value) == wanted:
            frame.index = one.target
        return None

    def fork(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        raise NotImplementedError

    def fork_or_pop(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        raise NotImplementedError

    def same_object(self, a: Any, b: Any) -> bool:
        """``a is b``"""
        told = any(id(v) in told for v in (a, b) for told in (self.world.origins, self.world.numbers, self.world.joined))
        if told and all(isinstance(v, (Tensor, int, float)) for v in (a, b)):
            raise Decline("it tests the identity of a tensor that depends on a branch")
        if is_known_by_value(a) and type(a) is type(b) and (type(a) is _C.Dim or _C.Guards.same(a, b)):
            raise Decline(f"it asks whether two equal values are one {type(a).__name__}")
        return a is b

    def range_of(self, args: list) -> Any:
        """``range``"""
        if any(isinstance(a, Tensor) for a in args):
            args = [self.on_tensors(lambda a=a: a.__index__()) if isinstance(a, Tensor) else a for a in args]
        args = [self.world.settled(a, "range", tensors=False) for a in args]
        return self.native(lambda: range(*args))

    def check_known(self, value: Any) -> None:
        """Declines a variable that is not the same on all ways to here."""

    def absent_name(self, name: str, local: bool = False) -> Raised:
        if local:
            return Raised(UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value"))
        return Raised(NameError(f"name '{name}' is not defined", name=name))


def returned(value: Any) -> tuple[str, Any]:
    return _RETURNED, value


def yielded(value: Any) -> tuple[str, Any]:
    return _YIELDED, value


def load_global(machine: Machine, frame: Frame, name: str) -> Any:
    if name == "_watched" and _path.is_reader(frame.globals):
        return False  # whoever watches sees the programs' launches, whenever they were captured
    found = machine.world.entry(frame.globals, name, f"global {name}")
    if found is ABSENT:
        builtins = frame.builtins if isinstance(frame.builtins, dict) else vars(frame.builtins)
        found = machine.world.entry(builtins, name, f"builtin {name}")
        if found is ABSENT:
            raise machine.absent_name(name)
    return found
