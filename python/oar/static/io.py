"""Programs and their states in files.

A program is kept as its text under a line of JSON with the names of what is fed and fetched. Reading it runs no code.
"""

from __future__ import annotations

import json
import os
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.framework._replace import replace_files
from oar.framework.io import states_from_bytes, states_to_bytes
from oar.framework.oar_file import OarContent, is_oar_path, load_oar, save_oar
from oar.static.checkpoints import load, load_program_state, prefix_of, save, set_program_state
from oar.static.executor import CompiledProgram, _contents
from oar.static.oar_model import FORMAT, VERSION, OarBuilder, first_line
from oar.static.program import Program, _some, default_main_program, program_of, written_elsewhere
from oar.static.scope import global_scope
from oar.static.sequences import lengths_among

__all__ = [
    "deserialize_persistables",
    "deserialize_program",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "normalize_program",
    "save",
    "save_inference_model",
    "save_to_file",
    "serialize_persistables",
    "serialize_program",
    "set_program_state",
]


def _variables(value: Any, what: str) -> list[Tensor]:
    listed = [value] if isinstance(value, Tensor) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(v, Tensor) for v in listed):
        raise TypeError(f"{what} should be a variable or a list of variables, but received {value!r}.")
    return list(listed)


# one program with its inputs and outputs ---------------------------------------------------------


def _pruned(program: Program | None, feed_vars: Any, fetch_vars: Any, contents: Any = None) -> tuple[Any, list, list]:
    """The program for inference between these variables; the names that it is fed and the variables it gives."""
    feeds, fetches = _variables(feed_vars, "feed_vars"), _variables(fetch_vars, "fetch_vars")
    source = program or program_of(fetches[0]) or default_main_program()
    if isinstance(source, CompiledProgram):
        source = source._program
    if not isinstance(source, Program):
        raise TypeError(f"program should be a Program, but received {type(source).__name__}.")
    with written_elsewhere():
        for_test = source.clone(for_test=True)
        names = [v.name for v in feeds]
        executable, needed = for_test._builder.draft(fetches, contents or _placeholder, False, feeds)
    names += [name for name in lengths_among(needed, names) if name not in names]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(f"the outputs need {_some(missing)}, which feed_vars does not have.")
    return executable, [name for name in names if name in needed], [v.name for v in fetches]


def _placeholder(name: str, shape: list[int], dtype: Any, read: bool) -> Tensor:
    tensor = oar.zeros(shape, dtype)
    tensor.name = name
    return tensor


def serialized(executable: Any, feeds: list[str], fetches: list[str], order: list[str]) -> bytes:
    """A native program as bytes, with the names of what is fed, in the order of feeds and in that of its inputs, and fetched."""
    labels = {label: tensor.name for label, tensor in executable.states()}
    labels.update(zip(executable.input_names, order))
    return (first_line(feeds, fetches, labels) + executable.full_text()).encode()


def serialize_program(feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> bytes:
    """The program between these variables, as bytes.

    Args:
        feed_vars: the inputs.
        fetch_vars: the results.
        kwargs: accepted for compatibility.

    Returns:
        bytes.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> data = oar.static.serialize_program([x], [y])
        >>> isinstance(data, bytes)
        True
        >>> oar.disable_static()
    """
    executable, feeds, fetches = _pruned(kwargs.get("program"), feed_vars, fetch_vars)
    # A deployed library has kernels and no decompositions.
    executable = executable.for_deployment()
    return serialized(executable, feeds, fetches, _input_order(executable, feeds))


def _input_order(executable: Any, feeds: list[str]) -> list[str]:
    """The names of inputs by the order in which the program takes them."""
    plain = {"".join(c if c.isalnum() or c in "_." else "_" for c in name): name for name in feeds}
    return [plain.get(label, label) for label in executable.input_names]


def _header(line: bytes) -> dict[str, Any]:
    """The first line of a program's bytes, checked before it is used."""
    try:
        header = json.loads(line)
        known = header["format"] == FORMAT
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known:
        raise ValueError("these bytes are not a program of Oar.")
    if header.get("version") != VERSION:
        raise ValueError(f"the program has version {header.get('version')}; this Oar reads version {VERSION}.")

    def are_texts(values: Any) -> bool:
        return isinstance(values, list) and all(isinstance(value, str) for value in values)

    names = header.get("names")
    named = isinstance(names, dict) and are_texts(list(names.values()))
    if not (named and are_texts(header.get("feed")) and are_texts(header.get("fetch"))):
        raise ValueError("the program's first line lacks its inputs, its results or their names; the file is damaged.")
    return header


def deserialize_program(data: bytes) -> Program:
    """The program that ``serialize_program`` wrote.

    Args:
        data: the bytes.

    Returns:
        a program.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> program = oar.static.deserialize_program(oar.static.serialize_program([x], [y]))
        >>> isinstance(program, oar.static.Program)
        True
        >>> oar.disable_static()
    """
    if not isinstance(data, bytes):
        raise ValueError(f"a program is read from bytes, not from {type(data).__name__}.")
    return program_in(data, {})


def program_in(data: bytes, tensors: dict[str, Tensor]) -> Program:
    """The same; constants that the text leaves out are among the tensors."""
    line, _, text = data.partition(b"\n")
    header = _header(line)
    constants = {label: tensors[name] for label, name in header["names"].items() if name in tensors}
    program = Program(_C.builder_from_text(text.decode(), constants, header["names"]))
    program._feed_names, program._fetch_names = list(header["feed"]), list(header["fetch"])
    return program


def serialize_persistables(feed_vars: Any, fetch_vars: Any, executor: Any, **kwargs: Any) -> bytes | None:
    """The contents of the states that the program between these variables reads, as bytes.

    Args:
        feed_vars: the inputs.
        fetch_vars: the results.
        executor: the executor.
        kwargs: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> isinstance(oar.static.serialize_persistables([x], [y], executor), bytes)
        True
        >>> oar.disable_static()
    """
    executable, _, _ = _pruned(kwargs.get("program"), feed_vars, fetch_vars, _contents(global_scope()))
    with written_elsewhere():
        return states_to_bytes({tensor.name: tensor for _, tensor in executable.states()})


def deserialize_persistables(program: Program, data: bytes, executor: Any) -> None:
    """Puts the contents that ``serialize_persistables`` wrote into the global scope.

    Args:
        program: the program.
        data: the bytes.
        executor: the executor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=1)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> data = oar.static.serialize_persistables([x], [y], executor)
        >>> program = oar.static.deserialize_program(oar.static.serialize_program([x], [y]))
        >>> oar.static.deserialize_persistables(program, data, executor)
        >>> oar.disable_static()
    """
    with written_elsewhere():
        for name, tensor in states_from_bytes(data, "the file of states").items():
            global_scope()._set(name, tensor)



def normalize_program(program: Program, feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> Program:
    """The program for inference between these variables, without the rest.

    Args:
        program: the program.
        feed_vars: the inputs.
        fetch_vars: the results.
        kwargs: accepted for compatibility.

    Returns:
        a program.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y, unused = x * 2, x * 3
        ...
        >>> normalized = oar.static.normalize_program(main, [x], [y])
        >>> len(normalized.global_block().ops) < len(main.global_block().ops)
        True
        >>> oar.disable_static()
    """
    if not isinstance(program, Program):
        raise TypeError(f"program should be a Program, but received {type(program).__name__}.")
    executable, feeds, fetches = _pruned(program, feed_vars, fetch_vars)
    return deserialize_program(serialized(executable, feeds, fetches, _input_order(executable, feeds)))


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes to a file, whole or not at all.

    Args:
        path: the path of the file.
        content: the bytes.

    Examples:
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'bytes')
        >>> oar.static.save_to_file(path, b'abc')
        >>> oar.static.load_from_file(path)
        b'abc'
    """
    if not isinstance(content, bytes):
        raise ValueError(f"content should be bytes, but received {type(content).__name__}.")
    replace_files({os.fspath(path): lambda file: file.write(content)})


def load_from_file(path: str) -> bytes:
    """The bytes of a file.

    Args:
        path: the path of the file.

    Returns:
        bytes.

    Examples:
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'bytes')
        >>> oar.static.save_to_file(path, b'abc')
        >>> oar.static.load_from_file(path)
        b'abc'
    """
    with open(path, "rb") as file:
        return file.read()


def save_inference_model(path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any, **kwargs: Any) -> None:
    """Write the program between these variables to ``path_prefix.pdmodel``, its states to ``.pdiparams``.

    Both files are replaced, or, where something fails, neither is. A path that ends in ``.oar`` is that of one file with both.

    Args:
        path_prefix: the path of the files without their extension, or of an ``.oar`` file.
        feed_vars: the inputs.
        fetch_vars: the results.
        executor: the executor.
        kwargs: ``program``; for an ``.oar`` file ``metadata`` (texts by name), ``docs`` (texts about inputs and outputs) and ``shard_size``
            (the most bytes of weights per file). Others are accepted for compatibility.

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
        >>> oar.static.save_inference_model(path, [x], [y], executor)
        >>> sorted(os.listdir(os.path.dirname(path)))
        ['model.pdiparams', 'model.pdmodel']
        >>> oar.disable_static()
    """
    prefix = prefix_of(path_prefix)
    if is_oar_path(prefix):
        _save_oar(prefix, feed_vars, fetch_vars, kwargs)
        return
    program = serialize_program(feed_vars, fetch_vars, **kwargs)
    states = serialize_persistables(feed_vars, fetch_vars, executor, **kwargs) or b""
    replace_files({
        prefix + ".pdmodel": lambda file: file.write(program),
        prefix + ".pdiparams": lambda file: file.write(states),
    })


def _program_of_paddle(model: bytes, params: bytes) -> Program:
    """A program that Paddle wrote; its parameters are put into the global scope."""
    from oar.inference.paddle import Model

    with written_elsewhere():
        read = Model(model, params)
        executable = read.open_program()
        for _, tensor in executable.states():
            global_scope()._set(tensor.name, tensor)
    return deserialize_program(serialized(executable, read.inputs, read.outputs, read.inputs))


def _save_oar(path: str, feed_vars: Any, fetch_vars: Any, options: dict[str, Any]) -> None:
    executable, feeds, fetches = _pruned(options.get("program"), feed_vars, fetch_vars, _contents(global_scope()))
    states = {tensor.name: tensor for _, tensor in executable.states()}
    executable = executable.for_deployment()
    builder = OarBuilder(options.get("metadata"), options.get("docs"))
    builder.add("forward", "", [executable], feeds, fetches, _input_order(executable, feeds))
    with written_elsewhere():
        save_oar(path, builder.content(states, {}), options.get("shard_size"))


def _load_oar(path: str, options: dict[str, Any]) -> Program:
    content: OarContent = load_oar(path, bool(options.get("verify", False)))
    program = program_in(content.method(options.get("method", "forward"), path)[0], content.tensors)
    with written_elsewhere():
        for name, tensor in content.tensors.items():
            global_scope()._set(name, tensor)
    return program


def _model_files(path: str, model_name: str | None, params_name: str | None) -> list[str]:
    """The files of a program and of its states. Where one has a name, ``path`` is their folder, or a prefix within it."""
    if os.path.isdir(path) and (model_name or params_name):
        folder, prefix = path, os.path.join(path, "__model__")
    else:
        prefix = prefix_of(path)
        folder = os.path.dirname(prefix)
    files = []
    for name, ending in ((model_name, ".pdmodel"), (params_name, ".pdiparams")):
        file = os.path.join(folder, name) if name else prefix + ending
        files.append(file + ending if name and os.path.isfile(file + ending) else file)
    if not model_name and not os.path.isfile(files[0]):
        there = [other for other in (prefix + ".json", prefix) if os.path.isfile(other)]  # Paddle's own, and those of Paddle 1
        files[0] = there[0] if there else files[0]
    return files


def load_inference_model(path_prefix: str | None, executor: Any, **kwargs: Any) -> list[Any]:
    """Read what ``save_inference_model`` wrote: the program, the names to feed, the variables to fetch.

    ``path_prefix`` may be None where ``model_filename`` and ``params_filename`` hold the bytes themselves. The weights of an ``.oar``
    file are mapped into memory: they are read when they are used, and processes share them. Files that Paddle wrote, ``.pdmodel`` or
    ``.json`` with ``.pdiparams``, are read too.

    Args:
        path_prefix: the path of the files without their extension, or of an ``.oar`` file; a folder, if their names are given.
        executor: the executor.
        kwargs: ``model_filename`` and ``params_filename``, with or without their extension; for an ``.oar`` file ``method``
            ('forward') and ``verify``: whether weights are compared with their checksums. Others are accepted for compatibility.

    Examples:
        >>> import os, tempfile
        >>> import numpy as np
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
        >>> oar.static.save_inference_model(path, [x], [y], executor)
        >>> program, names, results = oar.static.load_inference_model(path, executor)
        >>> executor.run(program, feed={names[0]: np.ones([2, 3], 'float32')}, fetch_list=results)[0].shape
        (2, 1)
        >>> oar.disable_static()
    """
    if path_prefix is None:
        model, params = kwargs.get("model_filename"), kwargs.get("params_filename")
        if not isinstance(model, bytes):
            raise ValueError("without a path, model_filename should be the bytes of a program.")
    elif is_oar_path(path_prefix):
        program = _load_oar(prefix_of(path_prefix), kwargs)
        return [program, program._feed_names, program._builder.outputs()]
    else:
        files = _model_files(path_prefix, kwargs.get("model_filename"), kwargs.get("params_filename"))
        for file in files[:1]:
            if not os.path.isfile(file):
                raise ValueError(f"there is no file {file}.")
        model = load_from_file(files[0])
        params = load_from_file(files[1]) if os.path.isfile(files[1]) else None
    if _C.is_paddle_program(model):
        program = _program_of_paddle(model, params or b"")
    else:
        with written_elsewhere():
            tensors = states_from_bytes(params, "the file of parameters") if params else {}
            for name, tensor in tensors.items():
                global_scope()._set(name, tensor)
        program = program_in(model, tensors)
    return [program, program._feed_names, program._builder.outputs()]


# states of a training program --------------------------------------------------------------------
