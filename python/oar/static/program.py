"""Programs that are written call by call, and which of them calls go to."""

from __future__ import annotations

import atexit
import contextlib
import copy
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework import unique_name
from oar.framework.parameter import Parameter
from oar.static.operator import Operator, OlderOperator

__all__ = [
    "Block",
    "Operator",
    "Program",
    "default_main_program",
    "default_startup_program",
    "disable_static",
    "enable_static",
    "program_guard",
    "program_of",
]

_by_serial: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()


class Block:
    """The instructions of a program, and its variables by name."""

    idx = 0

    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def program(self) -> Program:
        """The program it belongs to."""
        return self._program

    @property
    def ops(self) -> list[Operator]:
        """The calls so far."""
        return [self._operator(i, row) for i, row in enumerate(self.program._builder.calls())]

    def _operator(self, index: int, row: Any) -> Operator:
        return (OlderOperator if self.program._older else Operator)(self, index, row)

    @property
    def vars(self) -> dict[str, Tensor]:
        """The variables that have names."""
        return {v.name: v for v in self.program.list_vars()}

    def var(self, name: str) -> Tensor:
        """The variable of this name."""
        found = self.program._find(name)
        if found is None:
            raise ValueError(f"the program has no variable {name!r}. It has {_some(self.vars)}.")
        return found

    def has_var(self, name: str) -> bool:
        """Whether there is a variable of this name."""
        return self.program._find(name) is not None

    def all_parameters(self) -> list[Parameter]:
        """The parameters of the program."""
        return self.program.all_parameters()

    def create_var(self, name: str | None = None, shape: Any = (), dtype: Any = "float32",
                   persistable: bool = False, stop_gradient: bool = True, **kwargs: Any) -> Tensor:
        """A variable that starts as zeros in every run, or, if it is persistable, is read from the scope."""
        from oar.static.states import empty_variable

        made = empty_variable(self.program, name or unique_name.generate("_generated_var"), shape or [], dtype, persistable)
        made.stop_gradient = stop_gradient
        return made

    def append_op(self, type: str, inputs: Any = None, outputs: Any = None, attrs: Any = None,
                  **kwargs: Any) -> Operator:
        """Writes down a call under Paddle's older names, and gives its results to the variables of ``outputs``.

        Args:
            type: the op: one of Paddle's older names, or a registered op, of a user's library for example.
            inputs: variables or their names, or lists of them, by slot.
            outputs: variables for the results by slot, for example from ``create_var``, or their names.
            attrs: the other arguments by name.
        """
        from oar.base import operators

        calls = self.program._builder.calls
        before = len(calls())
        given = {slot: self._variables(value) for slot, value in (inputs or {}).items()}
        made = {slot: self._variables(value) for slot, value in (outputs or {}).items()}
        self.program._within(lambda: operators.append(type, given, made, attrs or {}))
        rows = calls()
        if len(rows) == before:
            raise ValueError(f"[append_op] {type} wrote no call.")
        return self._operator(len(rows) - 1, rows[-1])

    def _variables(self, value: Any) -> Any:
        """Variables where names of them are given."""
        if isinstance(value, (list, tuple)):
            return [self._variables(item) for item in value]
        return self.var(value) if isinstance(value, str) else value

    def create_parameter(self, shape: Any, dtype: Any, name: str | None = None, initializer: Any = None,
                         trainable: bool = True, **kwargs: Any) -> Parameter:
        """A parameter of this program, which fills it in every run if there is an initializer.

        So a startup program gets the parameter with an initializer, and a main program without one.
        """
        from oar.static.states import program_parameter

        known = ("optimize_attr", "regularizer", "do_model_average", "need_clip", "is_distributed")
        settings = {key: kwargs[key] for key in known if key in kwargs}
        settings |= {"name": name or unique_name.generate("_generated_var"), "trainable": trainable}
        return program_parameter(self.program, shape, dtype, settings, initializer)

    def __repr__(self) -> str:
        return self.program.to_string()


def _some(names: Any, most: int = 12) -> str:
    listed = list(names)
    return (", ".join(map(repr, listed[:most])) or "none") + (", …" if len(listed) > most else "")


class Program:
    """What calls in static mode are written down in. Runs of it are the business of ``Executor``.

    Args:
        builder: the program of the core; a new one if None.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2 + 1
        ...
        >>> len(main.global_block().ops)
        4
        >>> oar.disable_static()
    """

    _seed_to_come = 0

    def __init__(self, builder: _C.Builder | None = None) -> None:
        self._builder: Any = _C.Builder("main") if builder is None else builder
        self._parameters: dict[str, Parameter] = {}
        self._optimizers: list[Any] = []
        self._feed_names: list[str] = []  # of a program that was loaded
        self._drafts: dict[Any, Any] = {}
        self._fetch_names: list[str] = []
        self._lookups: list[Any] = []  # in tables of servers
        self._server_step: Any = None
        self._lengths: dict[str, Tensor] = {}  # of sequences, by the open size that they divide
        self._low_ranges: list[tuple[int, int]] = []  # the calls inside `amp.fp16_guard`
        self._seed = Program._seed_to_come
        self._older = _mode.older  # its calls are shown in Paddle's older names
        # A block keeps its program alive, not the other way round: a cycle would keep both until a collection.
        self._kept_block: weakref.ref[Block] | None = None
        _by_serial[self._builder.serial] = self

    # reading -----------------------------------------------------------------------------------

    @property
    def _block(self) -> Block:
        block = self._kept_block() if self._kept_block else None
        if block is None:
            block = Block(self)
            self._kept_block = weakref.ref(block)
        return block

    def global_block(self) -> Block:
        """The block of all instructions."""
        return self._block

    def block(self, index: int) -> Block:
        """The block of this number; there is one."""
        if index != 0:
            raise IndexError(f"a program has one block; {index} is not there.")
        return self._block

    def current_block(self) -> Block:
        """The block that calls go to."""
        return self._block

    @property
    def blocks(self) -> list[Block]:
        """All blocks."""
        return [self._block]

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return 1

    def num_ops(self) -> int:
        """How many calls there are so far."""
        return len(self._builder.calls())

    def _find(self, name: str) -> Tensor | None:
        return self._parameters.get(name) if name in self._parameters else self._builder.find(name)

    def list_vars(self) -> Iterator[Tensor]:
        """The variables that have names."""
        seen = set()
        for variable in [*self._parameters.values(), *self._builder.named()]:
            if variable.name not in seen:
                seen.add(variable.name)
                yield variable

    def all_parameters(self) -> list[Parameter]:
        """The parameters, in the order of their creation."""
        return list(self._parameters.values())

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The program as text."""
        return self._builder.text()

    __str__ = __repr__ = to_string

    # seeds -------------------------------------------------------------------------------------

    @property
    def random_seed(self) -> int:
        """Where it is not 0, every run draws the same random numbers, those of this seed."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise ValueError(f"random_seed must be an integer, not {type(seed).__name__}.")
        self._seed = seed

    def global_seed(self, seed: int = 0) -> None:
        """Sets the seed of this program and of those to come."""
        self.random_seed = seed
        Program._seed_to_come = seed

    # copies ------------------------------------------------------------------------------------

    def clone(self, for_test: bool = False) -> Program:
        """A copy. For tests, backward and updates are removed, and dropout and similar ops run in evaluation mode."""
        with written_elsewhere():
            twin = Program(self._builder.clone(for_test))
        twin._seed = self._seed
        twin._older = self._older
        for name, parameter in self._parameters.items():
            twin._adopt(twin._builder.find(name), name, parameter)
        lengths = {size: twin._builder.find(variable.name) for size, variable in self._lengths.items()}
        twin._lengths = {size: found for size, found in lengths.items() if found is not None}
        twin._lookups = list(self._lookups)
        if not for_test:
            twin._optimizers = list(self._optimizers)
            twin._server_step = self._server_step
            twin._low_ranges = list(self._low_ranges)
        return twin

    def _adopt(self, data: Tensor, name: str, like: Parameter) -> None:
        parameter = Parameter(data=data, name=name, **copy.copy(like._settings()))
        self._builder.follow(parameter)
        self._parameters[name] = parameter

    @staticmethod
    def parse_from_string(binary_str: bytes | str) -> Program:
        """The program that a text describes."""
        text = binary_str.decode() if isinstance(binary_str, bytes) else binary_str
        return Program(_C.builder_from_text(text, {}, {}))

    @contextlib.contextmanager
    def switch_name_generator_guard(self, new_generator: Any) -> Iterator[None]:
        """Inside it, another generator creates names."""
        with unique_name.guard(new_generator):
            yield

    # states ------------------------------------------------------------------------------------

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, Tensor]:
        """The contents of the program's states in a scope: ``'param'``, ``'opt'`` or ``'all'`` of them."""
        from oar.static.scope import global_scope

        if mode not in ("all", "param", "opt"):
            raise ValueError(f"mode is {mode!r}; it can be 'all', 'param' or 'opt'.")
        scope = global_scope() if scope is None else scope
        wanted = []
        for name in self._builder.state_names:
            kept = name in self._parameters
            if mode == "all" or kept == (mode == "param"):
                wanted.append(name)
        missing = [name for name in wanted if scope._tensor(name) is None]
        if missing:
            raise ValueError(f"the scope has no {_some(missing)}. Run the startup program first.")
        return {name: scope._tensor(name) for name in wanted}

    def set_state_dict(self, state_dict: dict[str, Any], scope: Any = None) -> None:
        """Write contents of states into a scope."""
        from oar.static.scope import global_scope

        scope = global_scope() if scope is None else scope
        known = set(self._builder.state_names)
        for name, value in state_dict.items():
            if name in known:
                scope._set(name, value)

    def _within(self, function: Callable[[], Any]) -> Any:
        """Calls the function so that its calls go to this program."""
        return _C.static_within(self._builder, function)

    @contextlib.contextmanager
    def _role(self, role: str) -> Iterator[None]:
        self._builder.begin(role)
        try:
            yield
        finally:
            self._builder.end()


# which program calls go to -----------------------------------------------------------------------


class _Mode(threading.local):
    """Whether this thread is in static mode, and the programs of the guards around it."""

    def __init__(self) -> None:
        self.static = False
        self.older = False  # whether programs are created as within `OldIrGuard`
        self.guards: list[tuple[Program, Program]] = []

    def sync(self) -> None:
        _C.static_switch(self.programs()[0]._builder if self.static else None)

    def programs(self) -> tuple[Program, Program]:
        return self.guards[-1] if self.guards else _defaults()


_mode = _Mode()
_default_programs: list[Program] = []
atexit.register(lambda: _C.static_switch(None))


def _defaults() -> tuple[Program, Program]:
    if not _default_programs:
        _default_programs.extend((Program(), Program()))
    return _default_programs[0], _default_programs[1]


def default_main_program() -> Program:
    """The program that calls go to in static mode.

    Returns:
        a program.

    Examples:
        >>> import oar
        >>> isinstance(oar.static.default_main_program(), oar.static.Program)
        True
    """
    return _mode.programs()[0]


def default_startup_program() -> Program:
    """The program that initialises parameters.

    Returns:
        a program.

    Examples:
        >>> import oar
        >>> isinstance(oar.static.default_startup_program(), oar.static.Program)
        True
    """
    return _mode.programs()[1]


def program_of(variable: Tensor) -> Program | None:
    """The program that a variable belongs to; None for a tensor that has a value."""
    return _by_serial.get(_C.capture_of(variable))


def enable_static() -> None:
    """From now on calls are written down in the default main program instead of being done.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> oar.in_dynamic_mode()
        False
        >>> oar.disable_static()
    """
    if not _mode.static:
        _mode.static = True
        _mode.sync()


def disable_static(place: Any = None) -> None:
    """From now on calls run at once. New tensors are on ``place``, if one is given.

    Args:
        place: the device, for example ``'cpu'``; the current one if None.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> oar.disable_static()
        >>> oar.in_dynamic_mode()
        True
    """
    if _mode.static:
        _mode.static = False
        _mode.sync()
    if place is not None:
        import oar

        oar.set_device(place)


@contextlib.contextmanager
def mode(static: bool) -> Iterator[None]:
    """Static or dynamic mode within the block."""
    before = _mode.static
    _set_mode(static)
    try:
        yield
    finally:
        _set_mode(before)


@contextlib.contextmanager
def older_programs() -> Iterator[None]:
    """Programs created within the block show their calls in Paddle's older names."""
    before, _mode.older = _mode.older, True
    try:
        yield
    finally:
        _mode.older = before


def _set_mode(static: bool) -> None:
    if _mode.static != static:
        _mode.static = static
        _mode.sync()


def written_elsewhere() -> Any:
    """Inside it, calls run at once, whatever the mode."""
    return mode(False)


def _check_program(value: Any, name: str) -> None:
    if not isinstance(value, Program):
        raise TypeError(f"[program_guard] {name} should be a Program, but received {type(value).__name__}.")


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """In static mode calls within the block go to these programs.

    Args:
        main_program: the program that calls go to.
        startup_program: the program that initialises parameters.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...
        >>> oar.static.default_main_program() is main
        False
        >>> oar.disable_static()
    """
    _check_program(main_program, "main_program")
    if startup_program is not None:
        _check_program(startup_program, "startup_program")
    _mode.guards.append((main_program, startup_program or default_startup_program()))
    try:
        _mode.sync()
        yield
    finally:
        _mode.guards.pop()
        _mode.sync()
