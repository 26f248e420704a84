"""``save`` and ``load``.

A path that ends in ``.safetensors`` holds named tensors in that format. Every other path holds a pickle in
Paddle's layout: arrays in nested dictionaries, lists and tuples (``.pdparams``, ``.pdopt``). Loading a pickle
never runs code from it. Files appear whole or not at all.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar._tensor import PACKED_DTYPES, bits_of, from_bits
from oar.framework import _pickle, _torch_files, safetensors
from oar.framework._binary import looks_binary, read_binary, write_binary
from oar.framework._pickle_limits import MOST_LEVELS
from oar.framework._replace import replace_files
from oar.framework._strange_files import explained, name_of
from oar.framework.parameter import EagerParamBase  # noqa: F401

__all__ = ["load", "save"]

NAME_TABLE = "StructuredToParameterName@@"
BIG_ARRAYS = "UnpackBigParamInfor@@"
# Pickles of protocol 2 and 3 cannot hold more than this in one array.
_BIG = (1 << 30) - 1
# What load() reads again: an array has containers inside.
_MOST_LEVELS = MOST_LEVELS - 20
# How arrays carry dtypes that NumPy lacks, and the dtype of the same size that a tensor can have.
_BITS = {("bfloat16", "uint16"): "int16", ("float8_e4m3fn", "uint8"): "uint8", ("float8_e5m2", "uint8"): "uint8"}
_SAVE_OPTIONS = {"use_binary_format", "pickle_protocol"}
_LOAD_OPTIONS = {"model_filename", "params_filename", "keep_name_table", "return_numpy"}


# arrays and tensors ------------------------------------------------------------------------------


def _dtype_name(tensor: Tensor) -> str:
    from oar.framework.parameter import dtype_name

    return dtype_name(tensor.dtype)


def tensor_to_array(tensor: Tensor) -> np.ndarray:
    """The values of a tensor; bfloat16 as the bits in uint16, packed dtypes one element per byte."""
    if _dtype_name(tensor) in PACKED_DTYPES:
        return bits_of(tensor)
    array = tensor.detach().numpy()
    if _dtype_name(tensor) == "bfloat16" and array.dtype != np.uint16:
        array = array.view(np.uint16) if array.dtype.itemsize == 2 else _bfloat16_bits(array)
    return array


def _bfloat16_bits(array: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def array_to_tensor(array: np.ndarray, dtype: str | None = None) -> Tensor:
    """A tensor with the values of an array, or with its bits for dtypes that NumPy lacks, in static mode too; uint16 alone means bfloat16."""
    if oar.in_dynamic_mode():
        return _tensor_with_values(array, dtype)
    from oar.static.program import written_elsewhere

    with written_elsewhere():
        return _tensor_with_values(array, dtype)


def _tensor_with_values(array: np.ndarray, dtype: str | None) -> Tensor:
    array = np.asarray(array)
    if dtype in PACKED_DTYPES:
        return from_bits(array, dtype)
    if dtype is None and array.dtype == np.uint16:
        dtype = "bfloat16"
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype is not None and (bits := _BITS.get((dtype, array.dtype.name))) is not None:
        return ops.bitcast(oar.to_tensor(np.ascontiguousarray(array).reshape(array.shape).view(bits)), dtype)
    tensor = oar.to_tensor(np.ascontiguousarray(array).reshape(array.shape))
    if dtype is not None and _dtype_name(tensor) != dtype:
        tensor = tensor.astype(dtype)
    return tensor


# saving ------------------------------------------------------------------------------------------


def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Save an object: a state dict, a tensor, or nested containers of them.

    Args:
        obj: what to save. With a path ending in ``.safetensors``: a dictionary of tensors. A ``static.Program`` is saved as text.
        path: a path or a binary file object.
        protocol: the pickle protocol, 2 to 4.
        configs: ``use_binary_format=True`` writes a single tensor without a pickle; ``pickle_protocol`` is an older name of
            ``protocol``.

    The file is written under a temporary name, flushed to the disk, and moved in one step. A link stays a link: the
    file that it points to is replaced. An existing file's permissions stay. A named pipe or a device is written to.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model.pdparams')
        >>> oar.save(nn.Linear(2, 1).state_dict(), path)
        >>> sorted(oar.load(path))
        ['bias', 'weight']
    """
    unknown = set(configs) - _SAVE_OPTIONS
    if unknown:
        raise ValueError(f"save() does not know the options {sorted(unknown)}.")
    writer = writer_of(obj, configs.get("pickle_protocol", protocol), configs.get("use_binary_format", False))
    if hasattr(path, "write"):
        writer(path)
        return
    path = os.fsdecode(path)
    if os.path.basename(path) == "":
        raise ValueError(f"The path should name a file, but {path!r} ends in a directory.")
    if path.endswith(".safetensors"):
        arrays = _named_arrays(obj)
        writer = lambda file: safetensors.save_arrays(file, arrays)  # noqa: E731
    replace_files({path: writer})


def writer_of(obj: Any, protocol: Any = 4, binary: Any = False) -> Callable[[BinaryIO], object]:
    """A function that writes an object to a file, as ``save`` does."""
    if not isinstance(binary, bool):
        raise TypeError(f"[save] use_binary_format should be True or False, but received {binary!r}.")
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        raise ValueError(f"The 'protocol' MUST be `int`, but received {type(protocol)}")
    if not 2 <= protocol <= 4:
        raise ValueError(f"Expected 1<'protocol'<5, but received protocol={protocol}")
    if isinstance(obj, oar.nn.Layer):
        raise ValueError("A Layer itself cannot be saved; save its state_dict().")
    obj = _content(obj)
    if binary:
        if not isinstance(obj, Tensor):
            raise NotImplementedError(f"[save] use_binary_format=True takes a single tensor, but received {type(obj).__name__}. "
                                      "Leave it out: other objects are pickled.")
        return lambda file: write_binary(file, tensor_to_array(obj), _dtype_name(obj))
    if "oar.static.program" in sys.modules and isinstance(obj, oar.static.Program):
        text = obj.to_string().encode()
        return lambda file: file.write(text)
    return lambda file: _write_pickle(obj, file, protocol)


def _content(value: Any) -> Any:
    """The tensor of a scope's variable; anything else is itself."""
    scope = sys.modules.get("oar.static.scope")
    return value._tensor if scope is not None and isinstance(value, scope.LoDTensor) else value


def _named_arrays(obj: Any) -> dict[str, tuple[np.ndarray, str]]:
    if not isinstance(obj, dict):
        raise TypeError(f"A .safetensors file holds a dictionary of tensors, but received {type(obj).__name__}.")
    arrays = {}
    for name, value in obj.items():
        if isinstance(value, Tensor):
            arrays[str(name)] = (tensor_to_array(value), _dtype_name(value))
        elif isinstance(value, np.ndarray):
            arrays[str(name)] = (value, value.dtype.name)
        else:
            raise TypeError(
                f"A .safetensors file holds tensors only, but '{name}' is a {type(value).__name__}. "
                "Use another ending for a pickle."
            )
    return arrays


def states_to_bytes(states: dict[str, Tensor]) -> bytes:
    """Named tensors as the bytes of a safetensors file."""
    file = io.BytesIO()
    safetensors.save_arrays(file, _named_arrays(states))
    return file.getvalue()


def states_from_bytes(data: bytes, what: str) -> dict[str, Tensor]:
    """Named tensors from safetensors, or from the pickle that earlier versions wrote; ``what`` is what errors call it."""
    if not safetensors.looks_like_safetensors(data):
        return load(io.BytesIO(data))
    arrays, _ = safetensors.arrays_in(data, what)
    return {name: array_to_tensor(array, dtype) for name, (array, dtype) in arrays.items()}


def _is_state_dict(obj: Any) -> bool:
    """What Paddle writes with a table of names: tensors at the top, and dictionaries that hold none."""
    if not isinstance(obj, dict):
        return False
    return all(isinstance(v, Tensor) or (isinstance(v, dict) and not any(_holds_tensor(item) for item in v.values()))
               for v in obj.values())


def _holds_tensor(value: Any, level: int = 0) -> bool:
    if level > _MOST_LEVELS:
        return True  # it may hold itself, which _plain reports
    if isinstance(value, dict):
        return any(_holds_tensor(item, level + 1) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_tensor(item, level + 1) for item in value)
    return isinstance(value, Tensor)


def _pickled_array(tensor: Tensor) -> np.ndarray:
    """Paddle's pickles hold arrays without the names of their dtypes."""
    if _dtype_name(tensor) in PACKED_DTYPES:
        raise TypeError(
            f"save() cannot write a tensor of dtype {_dtype_name(tensor)} into a pickle of Paddle's format. "
            "Save it to a path that ends in .safetensors."
        )
    array = tensor_to_array(tensor)
    if _dtype_name(tensor).startswith("float8"):
        warnings.warn(f"save() writes a tensor of dtype {_dtype_name(tensor)} into a pickle as int8, as Paddle does: load() returns its "
                      "bits. A path that ends in .safetensors keeps the dtype.", stacklevel=4)
        return array.view(np.int8)
    return array


def _write_pickle(obj: Any, file: BinaryIO, protocol: int) -> None:
    if _is_state_dict(obj):
        names = {key: value.name for key, value in obj.items() if isinstance(value, Tensor)}
        plain = {key: _pickled_array(v) if isinstance(v, Tensor) else _plain(v, False) for key, v in obj.items()}
        plain[NAME_TABLE] = names
        if protocol < 4:
            plain = _split_big_arrays(plain)
    else:
        plain = _plain(obj, True)
    pickle.dump(plain, file, protocol=protocol)


def _plain(value: Any, named: bool, level: int = 0) -> Any:
    """``value`` with tensors as arrays, or as ``(name, array)`` when ``named``."""
    if level > _MOST_LEVELS:
        raise ValueError(f"save() takes containers that are nested {_MOST_LEVELS} deep at most; this one is deeper.")
    value = _content(value)
    if isinstance(value, Tensor):
        array = _pickled_array(value)
        return (value.name, array) if named else array
    if isinstance(value, dict):
        items = {key: _plain(item, named, level + 1) for key, item in value.items()}
        return OrderedDict(items) if isinstance(value, OrderedDict) else items
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(_plain(item, named, level + 1) for item in value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(_plain(item, named, level + 1) for item in value)
    if callable(value) and not isinstance(value, np.generic):
        raise TypeError(f"save() takes tensors, arrays, numbers, text and containers, but received {value!r}.")
    return value


def _split_big_arrays(state: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    table: dict[str, Any] = {}
    for key, value in state.items():
        limit = _BIG // value.dtype.itemsize if isinstance(value, np.ndarray) else 0
        if not limit or value.size <= limit:
            result[key] = value
            continue
        flat = value.ravel()
        slices = [f"{key}@@.{number}" for number in range(-(-value.size // limit))]
        for number, piece in enumerate(slices):
            result[piece] = flat[number * limit : (number + 1) * limit]
        table[key] = {"OriginShape": value.shape, "slices": slices}
    if table:
        result[BIG_ARRAYS] = table
    return result


# loading -----------------------------------------------------------------------------------------


def load(path: Any, **configs: Any) -> Any:
    """Load what ``save`` wrote, here, in Paddle or in PyTorch, or the weights that Keras wrote.

    Args:
        path: a path or a binary file object.
        return_numpy: arrays instead of tensors.
        keep_name_table: keep Paddle's table of parameter names in a state dict.
        configs: accepted for compatibility.

    Files that ``torch.save`` wrote (``.pt``, ``.pth``) are read, too: state dicts and checkpoints of tensors, numbers, text and
    plain containers, but no whole modules and no TorchScript. So are weights of Keras in HDF5 files (``.h5``), as a dictionary of tensors by
    their paths in the file.

    Loading reads values only. A file that would run code is rejected. Arrays that were saved next to tensors stay arrays.

    Examples:
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'values.pdparams')
        >>> oar.save({'x': oar.to_tensor([1.0, 2.0])}, path)
        >>> oar.load(path)['x']
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
    """
    unknown = set(configs) - _LOAD_OPTIONS
    if unknown:
        raise ValueError(f"load() does not know the options {sorted(unknown)}.")
    as_numpy = bool(configs.get("return_numpy", False))
    keep_names = bool(configs.get("keep_name_table", False))
    if hasattr(path, "read"):
        return _read(path, as_numpy, keep_names)
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"load() takes a path or a file that is open for reading, not {type(path).__name__}.")
    path = os.fsdecode(path)
    if os.path.isdir(path) or not os.path.exists(path):
        raise ValueError(_no_file(path))
    if path.endswith(".safetensors"):
        arrays, _ = safetensors.load_arrays(path)
        if as_numpy:
            return {name: array for name, (array, _) in arrays.items()}
        return {name: array_to_tensor(array, dtype) for name, (array, dtype) in arrays.items()}
    with open(path, "rb") as file:
        return _read(file, as_numpy, keep_names)


def _no_file(path: str) -> str:
    problem = "is a folder" if os.path.isdir(path) else "does not exist"
    start = "" if os.path.isabs(path) else f" in {os.getcwd()}"
    ends = [end for end in (".pdparams", ".pdopt", ".safetensors") if os.path.isfile(path + end)]
    hint = f" Pass the whole name: {path + ends[0]!r}." if ends else ""
    return f"The path '{path}' passed to load() is not a file: it {problem}{start}.{hint}"


def _read(file: BinaryIO, as_numpy: bool, keep_names: bool) -> Any:
    """A pickle, a tensor in Paddle's binary form, what PyTorch saved, or the text of a program."""
    start = b""
    if file.seekable():
        start = file.read(16)
        file.seek(-len(start), 1)
    if looks_binary(start):
        array, dtype = read_binary(file.read(), name_of(file))
        return array if as_numpy else array_to_tensor(array, dtype)
    if _torch_files.looks_like_torch(start):
        return _torch_files.read_torch(file, array_to_tensor, as_numpy)
    if start.startswith(b"\x89HDF\r\n\x1a\n"):
        tensors = oar._C.hdf5_tensors(file.read())
        return {name: tensor.numpy() for name, tensor in tensors.items()} if as_numpy else tensors
    if start.startswith(b"program "):
        return oar.static.Program.parse_from_string(file.read())
    with explained(file):
        return _from_pickle(_pickle.restricted_load(file), as_numpy, keep_names)


def _from_pickle(value: Any, as_numpy: bool, keep_names: bool) -> Any:
    if isinstance(value, dict) and BIG_ARRAYS in value:
        value = _join_big_arrays(value)
    if not isinstance(value, dict) or NAME_TABLE not in value:
        # Where tensors were saved with their names, an array without one was an array.
        return _with_tensors(value, as_numpy, _contains(value, _is_named_array))
    names = value.pop(NAME_TABLE)
    result = dict(value)
    for key, name in names.items():
        if not isinstance(result.get(key), np.ndarray):
            continue
        result[key] = _tensor_of(result[key], as_numpy)
        if isinstance(result[key], Tensor) and isinstance(name, str) and name:
            result[key].name = name
    if keep_names:
        result[NAME_TABLE] = names
    return result


def _contains(value: Any, condition: Callable[[Any], bool]) -> bool:
    if condition(value):
        return True
    if isinstance(value, dict):
        return any(_contains(item, condition) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_contains(item, condition) for item in value)


def _tensor_of(array: np.ndarray, as_numpy: bool) -> Any:
    return array if as_numpy or array.dtype.kind in "SUV" else array_to_tensor(array)


def _with_tensors(value: Any, as_numpy: bool, only_named: bool) -> Any:
    if isinstance(value, np.ndarray):
        return value if only_named else _tensor_of(value, as_numpy)
    if _is_named_array(value):
        made = _tensor_of(value[1], as_numpy)
        if isinstance(made, Tensor) and value[0]:
            made.name = value[0]
        return made
    if isinstance(value, dict):
        return type(value)((key, _with_tensors(item, as_numpy, only_named)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(item, as_numpy, only_named) for item in value)
    return value


def _is_named_array(value: Any) -> bool:
    """What a tensor outside a state dict becomes in a pickle: ``(name, array)``."""
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and isinstance(value[0], str) and isinstance(value[1], np.ndarray)


def _join_big_arrays(state: dict[str, Any]) -> dict[str, Any]:
    table = state.pop(BIG_ARRAYS)
    for key, entry in table.items():
        pieces = [state.pop(name) for name in entry["slices"]]
        state[key] = np.concatenate(pieces).reshape(entry["OriginShape"])
    return state


def loads(data: bytes, **configs: Any) -> Any:
    """``load`` from bytes."""
    return load(io.BytesIO(data), **configs)


# Paddle's names of the steps of loading, which programs that load in their own way call ---------------


def _parse_every_object(obj: Any, condition_func: Callable[[Any], bool], convert_func: Callable[[Any], Any]) -> Any:
    """Replaces in a nest of dicts, lists, tuples and sets what a condition selects; dicts and lists in place."""
    if condition_func(obj):
        return convert_func(obj)
    if type(obj) in (dict, OrderedDict, list):
        for key in range(len(obj)) if isinstance(obj, list) else list(obj):
            obj[key] = _parse_every_object(obj[key], condition_func, convert_func)
        return obj
    if type(obj) in (tuple, set):
        return type(obj)(_parse_every_object(value, condition_func, convert_func) for value in obj)
    if isinstance(obj, Iterable) and not isinstance(obj, (str, bytes, np.ndarray, Tensor)):
        raise NotImplementedError(f"[load] {type(obj).__name__} cannot be searched; lists, tuples, dicts and sets can.")
    return obj


def _transformed_from_lodtensor(obj: Any) -> bool:
    """Whether an object was a tensor when it was saved: an array, or an array with its name."""
    return isinstance(obj, np.ndarray) or _is_named_array(obj)


def _to_LodTensor(ndarray: np.ndarray) -> Tensor:  # noqa: N802
    """A tensor of that array."""
    return array_to_tensor(ndarray)
