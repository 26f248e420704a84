"""Variables: tensors of a program, which get values when it runs."""

from __future__ import annotations

import functools
import numbers
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.static.program import default_main_program
from oar.static.sequences import declare_lengths

__all__ = ["Variable", "data", "setitem"]


# NumPy's comparisons of shapes take an open size for the number that it stands for.
numbers.Number.register(_C.Dim)


class _SymbolicTensors(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        # In dynamic mode programs ask this of any tensor.
        return isinstance(instance, Tensor) and (oar.in_dynamic_mode() or _C.capture_of(instance) is not None)

    def __getattr__(cls, name: str) -> Any:
        # Its instances are tensors, so their methods are its own: Variable.clone.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Tensor, name)


class Variable(metaclass=_SymbolicTensors):
    """The class of every tensor of a program and, in dynamic mode, of every tensor. ``data`` and calls create them.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...
        >>> isinstance(x, oar.static.Variable)
        True
        >>> oar.disable_static()
    """


def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Tensor:
    """An input of the default main program. A size of None or -1 is open.

    A second call with the same name, sizes and dtype returns the existing variable.

    Args:
        name: the name to feed it by.
        shape: its sizes.
        dtype: the default dtype when None.
        lod_level: how many levels of lengths divide the rows into sequences, and those into groups; see
            ``base.create_lod_tensor``. With one or more the number of rows is open, regardless of ``shape``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...
        >>> x.shape, x.name
        ([x_0, 3], 'x')
        >>> oar.disable_static()
    """
    if oar.in_dynamic_mode():
        raise RuntimeError("static.data() is for static mode. Call enable_static() first.")
    if not isinstance(name, str):
        raise TypeError(f"[static.data] name should be a string, but received {type(name).__name__}.")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"[static.data] shape should be a list or a tuple, but received {type(shape).__name__}.")
    if lod_level < 0 or lod_level and not shape:
        raise ValueError(f"[static.data] lod_level is {lod_level} and shape {list(shape)}; lengths divide the rows of axis 0.")
    shape = [None, *shape[1:]] if lod_level else shape
    builder = default_main_program()._builder
    sizes = [_size(name, axis, size) for axis, size in enumerate(shape)]
    dtype = _C.dtype(dtype or oar.get_default_dtype())
    if name in builder.input_names:
        return _same_input(builder.find(name), name, sizes, dtype)
    made = builder.input(sizes, dtype, name, True)
    if lod_level:
        declare_lengths(default_main_program(), made, lod_level, _size)
    return made


def setitem(x: Tensor, index: Any, value: Any) -> Tensor:
    """A copy of ``x`` in which the places of ``index`` hold ``value``; ``x`` stays as it is.

    Args:
        x: the tensor.
        index: the places, as in ``x[index]``.
        value: a tensor or a number.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.zeros([4])
        ...     y = oar.static.setitem(x, slice(1, 3), 5.0)
        ...
        >>> [found.tolist() for found in oar.static.Executor().run(main, fetch_list=[x, y])]
        [[0.0, 0.0, 0.0, 0.0], [0.0, 5.0, 5.0, 0.0]]
        >>> oar.disable_static()
    """
    made = _C.ops.assign(x)
    made[index] = value
    return made


def _same_input(there: Tensor, name: str, sizes: list[Any], dtype: Any) -> Tensor:
    # As text: asking whether an open size equals a number would bind it.
    if [str(size) for size in there.shape] != [str(size) for size in sizes] or there.dtype != dtype:
        raise ValueError(
            f"[static.data] the program has an input {name!r} already, of shape {there.shape} and {there.dtype}; it "
            f"cannot be {sizes} and {dtype} too. hint: give this one another name, or write it in another program."
        )
    return there


@functools.cache
def _open_size(symbol: str) -> _C.Dim:
    """One for all programs: a symbol lives forever. Each program defines its own value."""
    return _C.Dim.left_open(symbol, _HINT)


def _size(name: str, axis: int, size: Any) -> Any:
    if size is None or isinstance(size, int) and size == -1:
        plain = "".join(c if c.isalnum() or c == "_" else f"__{ord(c):x}" for c in name)
        return _open_size(f"{plain}_{axis}")
    if not isinstance(size, _C.Dim) and int(size) < 0:
        raise ValueError(f"[static.data] the size {size} of axis {axis} of {name!r} is negative; -1 leaves it open.")
    return size if isinstance(size, _C.Dim) else int(size)


# What an open size is taken for while the program is written: no size that people write down.
_HINT = 97
