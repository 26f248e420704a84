"""Reading pickles without running what they say.

A pickle can name any function and have it called. This unpickler knows the few names that arrays and plain
containers need, replaces those that build arrays by its own functions that check their arguments, and
rejects every other name. So a file from a stranger can be wrong, but it cannot do anything.
"""

from __future__ import annotations

import functools
import io
import math
import pickle
from collections import OrderedDict
from typing import Any, BinaryIO

from oar._lazy import np
from oar.framework._pickle_limits import LimitError, check_hashes, check_limits

__all__ = ["Extension", "UnsafePickleError", "function_of_pickles", "place_of_damage", "restricted_load"]

_KINDS = "biufcSUV?"


class UnsafePickleError(pickle.UnpicklingError):
    """The file names something that loading does not allow."""


def _make_dtype(spec: Any = "V", align: Any = False, copy: Any = False) -> _Dtype:
    if not isinstance(spec, str) or len(spec) > 32:
        raise UnsafePickleError(f"The file holds an array of the dtype {str(spec)[:80]!r}, which is not admitted.")
    made = np.dtype(spec)
    if made.kind not in _KINDS or made.hasobject or made.names is not None:
        raise UnsafePickleError(f"The file holds an array of dtype {made}; only numbers and text are admitted.")
    return _Dtype(made)


class _Dtype:
    """A dtype while it is being read; a pickle sets its byte order afterwards."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            if state[1] in "<>":
                self.dtype = self.dtype.newbyteorder(state[1])
            if len(state) > 4 and (state[2] is not None or state[3] is not None):
                raise UnsafePickleError("The file holds an array of a structured dtype, which is not admitted.")


def _plain_dtype(dtype: Any) -> np.dtype:
    if isinstance(dtype, _Dtype):
        return dtype.dtype
    raise UnsafePickleError("The file builds an array from something that is not a dtype.")


def _array(data: Any, dtype: Any, shape: Any, fortran: bool) -> np.ndarray:
    kind = _plain_dtype(dtype)
    counts = isinstance(shape, tuple) and all(isinstance(n, int) and 0 <= n < 1 << 63 for n in shape)
    if not counts or len(shape) > 64:
        raise UnsafePickleError(f"The file holds an array of shape {str(shape)[:80]}, which is none.")
    if isinstance(data, str):
        data = data.encode("latin1")
    if not isinstance(data, (bytes, bytearray, memoryview)) or len(data) != math.prod(shape) * kind.itemsize:
        raise UnsafePickleError(f"An array of shape {shape} and dtype {kind} does not fit the data given for it.")
    flat = np.frombuffer(data, dtype=kind).copy()
    return flat.reshape(shape, order="F" if fortran else "C")


class _Array:
    """An array while it is being read."""

    def __init__(self, *arguments: Any) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise UnsafePickleError("The file holds an array whose parts are not those of an array.")
        shape, dtype, fortran, data = state[-4:]
        self.value = _array(data, dtype, shape, bool(fortran))


def _scalar(dtype: Any, data: Any = b"") -> Any:
    return _array(data, dtype, (), False)[()]


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C") -> np.ndarray:
    return _array(bytes(data), dtype, shape, order == "F")


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "ascii", "utf-8", "utf8"):
        raise UnsafePickleError("The file encodes something that is not text.")
    return text.encode(encoding)


def _bytes(kind: type, *arguments: Any) -> Any:
    """``bytes`` or ``bytearray`` of given content; a number would allocate that many zeros."""
    if arguments and not isinstance(arguments[0], (bytes, bytearray, str, list)):
        raise UnsafePickleError(f"The file makes {kind.__name__} of a {type(arguments[0]).__name__}.")
    return kind(*arguments)


def _hashed(kind: type, *arguments: Any) -> Any:
    """A set of values, or a dictionary of pairs."""
    if not arguments:
        return kind()
    (values,) = arguments
    pairs = issubclass(kind, dict) and not isinstance(values, dict)
    check_hashes((key for key, _ in values) if pairs else values)
    return kind(values)


class _Call:
    """A function that a pickle may call and cannot change: it has no attributes to set."""

    __slots__ = ("_function",)
    _function: Any

    def __init__(self, function: Any) -> None:
        object.__setattr__(self, "_function", function)

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnsafePickleError("The file changes a function, which is not admitted.")

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def function_of_pickles(function: Any) -> Any:
    """A function that an extension lets pickles call."""
    return _Call(function)


def _named_data(expression: Any, names: Any = None, *others: Any) -> Any:
    """``eval("data", {"data": array})``, as which Paddle pickles a tensor of a static graph. Nothing is evaluated."""
    if expression != "data" or others or type(names) is not dict or list(names) != ["data"]:
        raise UnsafePickleError("The file wants builtins.eval, which loading does not admit.")
    return names["data"]


def _no_array_type(*arguments: Any) -> Any:
    raise UnsafePickleError("The file calls numpy.ndarray, which is not admitted.")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Call(_no_array_type),
    ("numpy", "dtype"): _Call(_make_dtype),
    ("_codecs", "encode"): _Call(_encode),
    ("collections", "OrderedDict"): _Call(functools.partial(_hashed, OrderedDict)),
}
for _core in ("numpy.core", "numpy._core"):
    _ALLOWED[(f"{_core}.multiarray", "_reconstruct")] = _Call(_Array)
    _ALLOWED[(f"{_core}.multiarray", "scalar")] = _Call(_scalar)
    _ALLOWED[(f"{_core}.numeric", "_frombuffer")] = _Call(_from_buffer)
for _module in ("builtins", "__builtin__"):
    _ALLOWED.update({(_module, plain.__name__): plain for plain in (tuple, list, complex)})
    _ALLOWED.update({(_module, hashed.__name__): _Call(functools.partial(_hashed, hashed))
                     for hashed in (dict, set, frozenset)})
    _ALLOWED[(_module, "eval")] = _Call(_named_data)
    _ALLOWED.update({(_module, held.__name__): _Call(functools.partial(_bytes, held)) for held in (bytearray, bytes)})


class Extension:
    """What pickles of another framework may name besides, and how they refer to what is outside of the pickle."""

    def find(self, module: str, name: str) -> Any:
        """What such a name stands for; ``None`` rejects it. A function must be a ``_Call``."""
        return None

    def outside(self, pid: Any) -> Any:
        """What a persistent id stands for."""
        raise UnsafePickleError("The file refers to objects outside itself, which is not admitted.")


class _RestrictedUnpickler(pickle.Unpickler):
    extension = Extension()

    def find_class(self, module: str, name: str) -> Any:
        try:
            found = self.extension.find(module, name)
            return _ALLOWED[(module, name)] if found is None else found
        except KeyError:
            raise UnsafePickleError(
                f"The file wants {module}.{name}, which loading does not admit: only arrays, numbers, text and plain "
                "containers are read, so that a file cannot run code."
            ) from None

    def persistent_load(self, pid: Any) -> Any:
        return self.extension.outside(pid)


class _Follower(pickle._Unpickler):  # type: ignore[name-defined]
    """The same in Python: after an error its stacks show what was being read."""

    extension = Extension()
    find_class = _RestrictedUnpickler.find_class
    persistent_load = _RestrictedUnpickler.persistent_load

    def place(self) -> str:
        """The keys of the dictionaries that were being filled, joined by dots; empty if there is none."""
        keys = []
        frames = [*getattr(self, "metastack", []), getattr(self, "stack", [])]
        for around, items in zip(frames, frames[1:]):
            # After a dictionary and a mark come its keys and values in turn, at last the parts of an unfinished value.
            names = [key for key in items[::2] if isinstance(key, str)]
            if around and isinstance(around[-1], dict) and names:
                keys.append(names[-1])
        return ".".join(keys)


def place_of_damage(file: BinaryIO) -> str:
    """Which entry of a pickled dictionary cannot be read; empty if it is none or not known."""
    reader = _Follower(file, encoding="latin1")
    try:
        reader.load()
    except Exception:
        return reader.place()
    return ""


def _finished(value: Any, seen: dict[int, Any]) -> Any:
    """``value`` with the arrays and dtypes that were being read replaced by what they became."""
    if isinstance(value, _Array):
        if value.value is None:
            raise UnsafePickleError("The file holds an array without its parts.")
        return value.value
    if isinstance(value, _Dtype):
        return value.dtype
    if callable(value):
        raise UnsafePickleError(f"The file holds {value!r} as a value, which is not admitted.")
    if not isinstance(value, (dict, list, tuple, set, frozenset)):
        return value
    if id(value) in seen:
        return seen[id(value)]
    result: Any
    if isinstance(value, dict):
        seen[id(value)] = result = type(value)()
        for key, item in value.items():
            result[_finished(key, seen)] = _finished(item, seen)
    elif isinstance(value, list):
        seen[id(value)] = result = []
        result.extend(_finished(item, seen) for item in value)
    else:
        result = type(value)(_finished(item, seen) for item in value)
    return result


def restricted_load(file: BinaryIO, extension: Extension | None = None) -> Any:
    """Read one pickle of arrays, numbers, text and plain containers, and of what an extension admits."""
    try:
        if not file.seekable():
            file = io.BytesIO(file.read())
        check_limits(file)
        reader = _RestrictedUnpickler(file, encoding="latin1")
        if extension is not None:
            reader.extension = extension
        return _finished(reader.load(), {})
    except LimitError as error:
        raise UnsafePickleError(f"load() rejects the file: {error}.") from None
    except pickle.UnpicklingError:
        raise
    except MemoryError:
        raise UnsafePickleError("The file claims more memory than there is.") from None
    except Exception as error:
        raise pickle.UnpicklingError(f"The file is damaged: {type(error).__name__}: {error}") from error
