"""Native code that the interpreter may run: what each function reads is stated here, everything else is declined."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import math
import operator
import re
import types
from typing import Any

from oar import _C
from oar._lazy import LazyModule

__all__ = [
    "ADDING", "ARRAY_MEMBERS", "CALLBACKS", "CONTAINER_TYPES", "GENERIC_SETTERS", "ITERATORS", "LAZY", "MEMBERS", "MODES", "NATIVE_TYPES",
    "NOT_OF_INPUTS", "PURE", "STATELESS", "TENSOR_METHODS", "TENSOR_PROPERTIES", "TENSOR_VALUES", "UniqueName",
    "WRITERS", "is_plain_type",
]


class UniqueName:
    """A placeholder for a layer's name that differs at every run: it may be stored, but neither read nor returned."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError


_ORDERED: collections.OrderedDict[Any, Any] = collections.OrderedDict()
_ORDERED_VIEWS = (_ORDERED.keys(), _ORDERED.values(), _ORDERED.items())
_PLAIN_TYPES: frozenset[type] = frozenset({
    int, float, str, bool, complex, bytes, type(None), type(Ellipsis), type(NotImplemented), tuple, frozenset, range, slice,
    list, dict, set, bytearray, memoryview, types.CellType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.CodeType, type({}.keys()), type({}.values()), type({}.items()), _C.dtype,
    *(type(view) for view in _ORDERED_VIEWS),
    types.MethodWrapperType, types.SimpleNamespace,
})

# Heap types that are implemented natively all the same.
NATIVE_TYPES: set[type] = {_C.dtype, _C.Dim, _C.OpFunction, _C.SpelledFunction, collections.deque, functools.partial, re.Pattern, re.Match}
# Objects without state: reading an attribute is pure.
STATELESS: tuple[type, ...] = (re.Pattern, re.Match, _C.dtype, _C.OpFunction, _C.SpelledFunction)
MEMBERS: dict[type, frozenset[str]] = {
    slice: frozenset({"start", "stop", "step"}),
    range: frozenset({"start", "stop", "step"}),
    complex: frozenset({"real", "imag"}),
    int: frozenset({"real", "imag", "numerator", "denominator"}),
    float: frozenset({"real", "imag"}),
    functools.partial: frozenset({"func", "args", "keywords"}),
}
# Namespaces that keep what they have looked up.
LAZY: frozenset[type] = frozenset({LazyModule, type(_C.ops)})
GENERIC_SETTERS = (object.__setattr__, object.__delattr__)

CONTAINER_TYPES = (list, dict, set, collections.deque, collections.OrderedDict, bytearray)
# Methods that change a container; all others only read it.
WRITERS: frozenset[str] = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "popitem", "setdefault", "add",
    "discard", "appendleft", "extendleft", "popleft", "rotate", "move_to_end", "__setitem__", "__delitem__", "__init__",
    "__iadd__", "__ior__", "__imul__", "__iand__", "__isub__", "__ixor__", "difference_update", "intersection_update",
    "symmetric_difference_update",
})
# Those of them that need not read the content.
ADDING: frozenset[str] = frozenset({"append", "extend", "add", "discard", "appendleft"})

ITERATORS: tuple[type, ...] = (
    type(iter([])), type(iter(())), type(iter({})), type(iter({}.values())), type(iter({}.items())), type(iter(set())), *(type(iter(view)) for view in _ORDERED_VIEWS),
    type(iter(range(0))), type(iter(range(1 << 80))), type(iter("")), type(iter("é")), type(iter(b"")), type(reversed([])),
    type(reversed({})), type(reversed({}.items())), type(reversed({}.values())), enumerate, zip, reversed,
    itertools.chain, itertools.product, itertools.count, itertools.repeat, itertools.islice, itertools.zip_longest,
    itertools.cycle, itertools.combinations, itertools.permutations, itertools.combinations_with_replacement,
    itertools.compress, *([itertools.pairwise] if hasattr(itertools, "pairwise") else []),
)

TENSOR_PROPERTIES = frozenset({
    "shape", "dtype", "ndim", "size", "stop_gradient", "grad", "is_leaf", "name", "persistable", "_device", "_kind",
})
TENSOR_VALUES = frozenset({"strides", "inplace_version", "_grad_node"})
# What the symbolic tensor of an input does not know of the caller's.
NOT_OF_INPUTS = frozenset({"name", "persistable", "grad", "is_leaf", "_kind"})
# Methods of tensors in C that a capture records or rejects by itself; those that read a content outside are guarded by
# the capture.
TENSOR_METHODS = frozenset({
    "item", "tolist", "numpy", "detach", "contiguous", "backward", "clear_gradient", "_become", "retain_grads",
})
ARRAY_MEMBERS = frozenset({"shape", "dtype", "ndim", "size", "T", "itemsize", "nbytes", "real", "imag"})

# Functions of the extension whose callable arguments are called while the capture is under way.
CALLBACKS = frozenset({_C.cond, _C.while_loop, _C.switch_case, _C.scan})
# Switches of the thread; what they were is put back if the capture is given up.
MODES = frozenset({_C.set_grad_enabled, _C.set_autocast})


@functools.cache
def random_ops() -> frozenset[str]:
    """The ops that draw random numbers."""
    random = _C.trait_bits()["random"]
    return frozenset(record["name"] for record in _C.op_records() if record["traits"] & random)


def is_plain_type(cls: type) -> bool:
    """A type of Python's own whose instances have no attributes of the user's."""
    return cls in _PLAIN_TYPES or cls in ITERATORS


def _public(module: Any) -> list[Any]:
    return [value for name, value in vars(module).items() if isinstance(value, types.BuiltinFunctionType)]


# Results follow from the arguments alone, whatever their types; arguments are plain values.
PURE: set[Any] = {
    *_public(math),
    builtins.abs, builtins.divmod, builtins.pow, builtins.round, builtins.ord, builtins.chr, builtins.bin, builtins.hex,
    builtins.oct, builtins.hash, builtins.ascii,
    *(f for f in _public(operator) if not f.__name__.startswith(("i", "set", "del")) or f.__name__ in ("index", "inv", "invert")),
    _C.is_grad_enabled, _C.grad_state, _C.get_default_dtype, _C.get_autocast, _C.last_autocast_dtype, _C.get_device, _C.is_capturing, _C.static_active,
    re.compile, re.match, re.sub, re.split, re.search, re.findall, re.fullmatch,
}
