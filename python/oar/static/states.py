"""Variables that live on between runs: parameters, buffers, moments.

Each is a state of the main program and is given its first content by the startup program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework import unique_name
from oar.framework.parameter import Parameter
from oar.framework.parameter import create_parameter as create_parameter
from oar.static.program import Program, default_main_program, default_startup_program, mode

__all__ = ["create_global_var", "create_parameter", "empty_variable", "make_state", "program_parameter", "static_parameter"]


def _initialise(program: Program, name: str, make: Callable[[], Tensor]) -> tuple[list[int], Any]:
    """Makes a program compute what ``make`` returns as the content of a state; returns shape and dtype."""
    there = program._builder.find(name)
    if there is not None:
        return list(there.shape), there.dtype

    def write() -> Tensor:
        with oar.no_grad():
            value = make()
            state = program._builder.state(list(value.shape), value.dtype, name)
            ops.copy_into(state, value)
        return state

    state = program._within(write)
    return list(state.shape), state.dtype


def make_state(make: Callable[[], Tensor], name: str) -> Tensor:
    """A state of the main program, whose initial content the startup program computes by calling ``make``."""
    shape, dtype = _initialise(default_startup_program(), name, make)
    return default_main_program()._builder.state(shape, dtype, name)


def static_parameter(shape: Sequence[int], dtype: Any, initializer: Any, settings: dict[str, Any]) -> Parameter:
    """A parameter of the main program, filled by the startup program; the one of this name, if there is one."""
    main, name = default_main_program(), settings["name"]
    there = _parameter_there(main, name, shape)
    if there is not None:
        return there
    _initialise(default_startup_program(), name, lambda: _first_value(shape, dtype, initializer))
    return _declare(main, shape, dtype, settings)


def program_parameter(program: Program, shape: Sequence[int], dtype: Any, settings: dict[str, Any],
                      initializer: Any) -> Parameter:
    """A parameter of a program, which fills it itself if there is an initializer; the one of this name, if there is one."""
    there = _parameter_there(program, settings["name"], shape)
    if there is not None:
        return there
    if initializer is not None:
        with mode(True):
            _initialise(program, settings["name"], lambda: _first_value(shape, dtype, initializer))
    return _declare(program, shape, dtype, settings)


def _parameter_there(program: Program, name: str, shape: Sequence[int]) -> Parameter | None:
    there = program._parameters.get(name)
    if there is not None and list(there.shape) != list(shape):
        raise ValueError(f"the parameter {name!r} has shape {there.shape} already; it cannot have {list(shape)} too.")
    return there


def _first_value(shape: Sequence[int], dtype: Any, initializer: Any) -> Tensor:
    dtype = oar.dtype(dtype)
    if hasattr(initializer, "has_sampler") and initializer.has_sampler():
        return initializer.sample(list(shape), dtype)
    tensor = ops.zeros(list(shape), dtype)
    initializer(tensor, None)
    return tensor


def _declare(program: Program, shape: Sequence[int], dtype: Any, settings: dict[str, Any]) -> Parameter:
    parameter = Parameter(data=program._builder.state(list(shape), dtype, settings["name"]), **settings)
    program._builder.follow(parameter)
    program._parameters[settings["name"]] = parameter
    return parameter


def create_global_var(shape: Sequence[int], value: float, dtype: Any, persistable: bool = False,
                      force_cpu: bool = False, name: str | None = None) -> Tensor:
    """A variable that starts with one value everywhere and lives on between runs.

    Args:
        shape: the shape of the result.
        value: the value.
        dtype: the dtype of the result; None takes the default, or that of the input.
        persistable: whether the variable lives on between runs.
        force_cpu: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     counter = oar.static.create_global_var([1], 0.0, 'float32', persistable=True)
        ...     oar.increment(counter)
        ...
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True, kind=symbolic)
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> for _ in range(3):
        ...     _ = executor.run(main)
        ...
        >>> executor.run(main, fetch_list=[counter])[0].tolist()
        [4.0]
        >>> oar.disable_static()
    """
    name = name or unique_name.generate("global_var")
    if oar.in_dynamic_mode():
        made = oar.full(list(shape), value, dtype)
        made.name = name
    else:
        made = make_state(lambda: oar.full(list(shape), value, dtype), name)
    made.persistable = persistable
    return made


def empty_variable(program: Program, name: str, shape: Sequence[int], dtype: Any, persistable: bool) -> Tensor:
    """A variable without a first content."""
    if persistable:
        return program._builder.state(list(shape), dtype, name)
    made = program._within(lambda: ops.zeros([1 if d in (-1, None) else d for d in shape], dtype))
    made.name = name
    return made
