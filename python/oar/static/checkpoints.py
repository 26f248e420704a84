"""The states of programs in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.framework._replace import replace_files
from oar.static.executor import CompiledProgram
from oar.static.program import Program, _some, written_elsewhere
from oar.static.scope import global_scope

__all__ = ["load", "load_program_state", "save", "set_program_state"]


def is_persistable(var: Tensor) -> bool:
    """Whether a variable keeps its value from one run of its program to the next."""
    return bool(var.persistable)


def is_parameter(var: Tensor) -> bool:
    """Whether a variable is a parameter: one that keeps its value and takes gradients."""
    return is_persistable(var) and not var.stop_gradient


def prefix_of(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path should be a string, but received {type(path).__name__}.")
    prefix = os.path.normpath(os.fspath(path))
    if os.path.isdir(prefix) or os.path.basename(os.fspath(path)) == "":
        raise ValueError(f"the path should be a prefix of files, but {os.fspath(path)!r} is a directory.")
    return prefix


def save(program: Program, model_path: str, protocol: int = 4, **configs: Any) -> None:
    """Write parameters to ``.pdparams``, other states to ``.pdopt``, the program to ``.pdmodel``: all or none.

    Args:
        program: the program.
        model_path: the path of the files without their extension.
        protocol: accepted for compatibility.
        configs: accepted for compatibility.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.static.save(main, path)
        >>> sorted(os.listdir(os.path.dirname(path)))
        ['model.pdmodel', 'model.pdopt', 'model.pdparams']
        >>> oar.disable_static()
    """
    prefix = prefix_of(model_path)
    if not isinstance(program, Program):
        raise TypeError(f"program should be a Program, but received {type(program).__name__}.")
    with written_elsewhere():
        parameters, others, text = program.state_dict("param"), program.state_dict("opt"), program.to_string().encode()
        replace_files({
            prefix + ".pdparams": lambda file: oar.save(parameters, file, protocol, **configs),
            prefix + ".pdopt": lambda file: oar.save(others, file, protocol, **configs),
            prefix + ".pdmodel": lambda file: file.write(text),
        })


def load_program_state(model_path: str, var_list: Any = None) -> dict[str, Any]:
    """The arrays that ``save`` wrote, by name.

    Args:
        model_path: the path of the files without their extension.
        var_list: the variables to load; all if None.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.static.save(main, path)
        >>> sorted(array.shape for array in oar.static.load_program_state(path).values())
        [(1,), (3, 1)]
        >>> oar.disable_static()
    """
    prefix = model_path
    for end in (".pdparams", ".pdopt", ".pdmodel"):
        prefix = prefix.removesuffix(end)
    if not os.path.isfile(prefix + ".pdparams"):
        raise ValueError(f"there is no file {prefix}.pdparams.")
    state = {}
    with written_elsewhere():
        for end in (".pdparams", ".pdopt"):
            if os.path.isfile(prefix + end):
                state.update(oar.load(prefix + end, return_numpy=True))
    if var_list is not None:
        wanted = [v if isinstance(v, str) else v.name for v in var_list]
        missing = [name for name in wanted if name not in state]
        if missing:
            raise RuntimeError(f"the files have no {_some(missing)}. They have {_some(state)}.")
        state = {name: state[name] for name in wanted}
    return {name: np.asarray(value) for name, value in state.items() if name != "StructuredToParameterName@@"}


def set_program_state(program: Program, state_dict: dict[str, Any]) -> None:
    """Put arrays into the global scope, by the names of the program's states.

    Args:
        program: the program.
        state_dict: the arrays by name.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.static.save(main, path)
        >>> oar.static.set_program_state(main, oar.static.load_program_state(path))
        >>> oar.disable_static()
    """
    known = {name: program._find(name) for name in program._builder.state_names}
    for name, value in state_dict.items():
        variable = known.get(name)
        if variable is None:
            continue
        array = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
        if list(array.shape) != list(variable.shape):
            raise RuntimeError(f"{name!r} has shape {list(variable.shape)}; an array of shape {list(array.shape)} does not fit.")
        global_scope()._set(name, array)


def load(program: Program, model_path: str, executor: Any = None, var_list: Sequence[Any] | None = None) -> None:
    """Put what ``save`` wrote into the global scope.

    Args:
        program: the program.
        model_path: the path of the files without their extension.
        executor: the executor.
        var_list: the variables to load; all if None.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.static.save(main, path)
        >>> oar.static.load(main, path, executor)
        >>> oar.disable_static()
    """
    if isinstance(program, CompiledProgram):
        program = program._program
    state = load_program_state(model_path, var_list)
    wanted = program._builder.state_names if var_list is None else [v if isinstance(v, str) else v.name for v in var_list]
    missing = [name for name in wanted if name not in state]
    if missing:
        raise RuntimeError(f"the files have no {_some(missing)}. They have {_some(state)}.")
    set_program_state(program, state)
