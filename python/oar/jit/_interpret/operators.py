"""Operators, comparisons, subscripts and truth, on plain values, tensors and objects of the user's."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import known
from oar.jit._interpret.calls import Calls
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.world import ABSENT, IMMUTABLE, Decline, Raised, is_array

__all__ = ["Operators"]

_BINARY: dict[str, tuple[Any, str]] = {
    "+": (operator.add, "add"), "&": (operator.and_, "and"), "//": (operator.floordiv, "floordiv"),
    "<<": (operator.lshift, "lshift"), "@": (operator.matmul, "matmul"), "*": (operator.mul, "mul"),
    "%": (operator.mod, "mod"), "|": (operator.or_, "or"), "**": (operator.pow, "pow"), ">>": (operator.rshift, "rshift"),
    "-": (operator.sub, "sub"), "/": (operator.truediv, "truediv"), "^": (operator.xor, "xor"),
}
_INPLACE: dict[str, Any] = {
    "+": operator.iadd, "&": operator.iand, "//": operator.ifloordiv, "<<": operator.ilshift, "@": operator.imatmul,
    "*": operator.imul, "%": operator.imod, "|": operator.ior, "**": operator.ipow, ">>": operator.irshift,
    "-": operator.isub, "/": operator.itruediv, "^": operator.ixor,
}
_COMPARE: dict[str, tuple[Any, str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"), "<=": (operator.le, "__le__", "__ge__"), "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"), ">": (operator.gt, "__gt__", "__lt__"), ">=": (operator.ge, "__ge__", "__le__"),
}
_UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "UNARY_POSITIVE": (operator.pos, "__pos__"), "UNARY_NEGATIVE": (operator.neg, "__neg__"),
    "UNARY_INVERT": (operator.invert, "__invert__")}


def _is_simple(value: Any) -> bool:
    """Native operators on it run no Python and read nothing that changes."""
    kind = type(value)
    return kind in IMMUTABLE or kind is Tensor or kind is _C.Dim or isinstance(value, Tensor)


class Operators(Calls):
    """Operators, as a part of the interpreter."""

    def _run(self, function: Any, *values: Any) -> Any:
        for value in values:
            if type(value) is _C.Dim:
                check_size(value)
        if any(isinstance(v, Tensor) for v in values):
            return self.on_tensors(lambda: function(*values), values)
        return self.native(lambda: function(*values))

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        function, name = _BINARY[symbol]
        if symbol == "%" and isinstance(a, (str, bytes)) and not self.world.has_python_method(type(b), "__rmod__"):
            shown = self.world.settled(b, "%", tensors=False)
            return self.native(lambda: a % shown)
        if _is_simple(a) and _is_simple(b):
            return self._run(function, a, b)
        return self._binary_of_objects(function, f"__{name}__", f"__r{name}__", a, b)

    def _binary_of_objects(self, function: Any, method: str, reflected: str, a: Any, b: Any) -> Any:
        result = NotImplemented
        first = (a, b, method), (b, a, reflected)
        if type(a) is not type(b) and issubclass(type(b), type(a)) and self.world.has_python_method(type(b), reflected):
            first = first[::-1]
        python = False
        for owner, other, name in first:
            if self.world.has_python_method(type(owner), name):
                python = True
                result = self.call(self.world.class_attribute(type(owner), name), [owner, other], {})
                if result is not NotImplemented:
                    return result
        if python:
            raise Decline(f"no {method} fits")
        if isinstance(a, known.CONTAINER_TYPES) or isinstance(b, known.CONTAINER_TYPES) or isinstance(a, tuple):
            return self._join(function, a, b)
        return self._computed(function, a, b)

    def _join(self, function: Any, a: Any, b: Any) -> Any:
        """Sums and products of containers, whose items are not read."""
        a = self.world.content(a) if isinstance(a, known.CONTAINER_TYPES) else a
        b = self.world.content(b) if isinstance(b, known.CONTAINER_TYPES) else b
        for value in (a, b):
            if isinstance(value, (set, dict)):
                for key in value:
                    self.check_key(key)
            elif not isinstance(value, (list, tuple, int)) and type(value) not in IMMUTABLE and not isinstance(value, Tensor):
                return self._computed(function, a, b)
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return self._computed(function, a, b)
        made = self.native(lambda: function(a, b))
        return self.world.new(made) if type(made) in (list, set, dict) else made

    def _computed(self, function: Any, a: Any, b: Any) -> Any:
        a, b = (self.world.settled(v, function.__name__) for v in (a, b))
        made = self._run(function, a, b)
        return self.world.new(made) if is_array(made) else self.world.new_deep(made)

    def inplace(self, symbol: str, a: Any, b: Any) -> Any:
        name = _BINARY[symbol][1]
        if _is_simple(a) and _is_simple(b):
            return self._run(_INPLACE[symbol], a, b)
        method = f"__i{name}__"
        if self.world.has_python_method(type(a), method):
            result = self.call(self.world.class_attribute(type(a), method), [a, b], {})
            if result is not NotImplemented:
                return result
        elif isinstance(a, known.CONTAINER_TYPES) and self.world.class_attribute(type(a), method) is not ABSENT:
            self.call(getattr(a, method), [b], {})
            return a
        elif is_array(a) and not self.world.is_fresh(a):
            raise Decline("it changes an array outside")
        elif is_array(a):
            other = self.world.settled(b, "an array")
            return self.native(lambda: _INPLACE[symbol](a, other))
        return self.binary(symbol, a, b)

    def unary(self, name: str, value: Any) -> Any:
        function, method = _UNARY[name]
        if _is_simple(value):
            return self._run(function, value)
        if self.world.has_python_method(type(value), method):
            return self.call(self.world.class_attribute(type(value), method), [value], {})
        settled = self.world.settled(value, method)
        return self.native(lambda: function(settled))

    # comparing -----------------------------------------------------------------------------------------

    def compare(self, symbol: str, a: Any, b: Any) -> Any:
        function, method, reflected = _COMPARE[symbol]
        if {type(a), type(b)} in ({_C.Dim, float}, {_C.Dim, complex}):
            raise Decline("it compares an open size with a number that is not an integer")
        if _is_simple(a) and _is_simple(b):
            return self._run(function, a, b)
        first = (a, b, method), (b, a, reflected)
        if type(a) is not type(b) and issubclass(type(b), type(a)):
            first = first[::-1]
        for owner, other, name in first:
            found = self.world.class_attribute(type(owner), name) if type(owner).__flags__ & (1 << 9) else ABSENT
            if isinstance(found, types.FunctionType):
                result = self.call(found, [owner, other], {})
                if result is not NotImplemented:
                    return result
        if symbol == "!=" and any(self.world.has_python_method(type(v), "__eq__") for v in (a, b)):
            return not self.truth(self.compare("==", a, b))
        if symbol in ("==", "!=") and (self._by_identity(a) or self._by_identity(b)):
            return (a is b) == (symbol == "==")
        return self.compare_plain(method, a, b)

    def _by_identity(self, value: Any) -> bool:
        kind = type(value)
        if isinstance(value, (type, types.FunctionType, types.ModuleType, Generator, types.MethodType)):
            return not isinstance(value, types.MethodType)
        return bool(kind.__flags__ & (1 << 9)) and self.world.class_attribute(kind, "__eq__") is object.__eq__

    def compare_plain(self, method: str, a: Any, b: Any) -> Any:
        tensors = not isinstance(a, known.CONTAINER_TYPES + (tuple,)) or not isinstance(b, known.CONTAINER_TYPES + (tuple,))
        if isinstance(a, types.MethodType) and isinstance(b, types.MethodType):
            return (a.__self__ is b.__self__ and a.__func__ is b.__func__) == (method == "__eq__")
        if not tensors and (_holds_dim(a) or _holds_dim(b)):
            return self._compare_sizes(method, a, b)
        a, b = (self.world.settled(v, "comparing", tensors) for v in (a, b))
        made = self._run(getattr(operator, method), a, b)
        return self.world.new(made) if is_array(made) else made

    def _compare_sizes(self, method: str, a: Any, b: Any) -> bool:
        """Lists and tuples with open sizes, item by item: each comparison is an assumption of the program."""
        if method not in ("__eq__", "__ne__") or not isinstance(a, (list, tuple)) or not isinstance(b, (list, tuple)):
            raise Decline("it compares open sizes")
        a, b = (self.world.content(v) if isinstance(v, list) else v for v in (a, b))
        same = isinstance(a, list) == isinstance(b, list) and len(a) == len(b)
        same = same and all(self.truth(self.compare("==", x, y)) for x, y in zip(a, b))
        return same == (method == "__eq__")

    def contains(self, container: Any, item: Any) -> bool:
        cls = type(container)
        method = self.world.class_attribute(cls, "__contains__") if cls.__flags__ & (1 << 9) else ABSENT
        if isinstance(method, types.FunctionType):
            return self.truth(self.call(method, [container, item], {}))
        if isinstance(container, dict):
            self.check_key(item)
            return self.world.has_entry(container, item, "a dictionary")
        if isinstance(container, (set, frozenset)):
            self.check_key(item)
            held = self.world.content(container) if isinstance(container, set) else container
            return item in held
        if isinstance(container, (list, tuple)):
            held = self.world.content(container) if isinstance(container, list) else container
            return any(x is item or self.truth(self.compare("==", x, item)) for x in held)
        if isinstance(container, (str, bytes, range)) or known.is_plain_type(cls):
            if isinstance(item, _C.Dim):
                raise Decline("it looks for an open size")
            item = self.world.settled(item, "in", tensors=False)
            return self.native(lambda: item in container)
        if isinstance(container, Tensor) or is_array(container):
            raise Decline("it looks for a value in a tensor")
        return any(x is item or self.truth(self.compare("==", x, item)) for x in self.iterate(container))

    def check_key(self, key: Any) -> None:
        """Looking it up in a dictionary must run no Python and depend on nothing but the key."""
        kind = type(key)
        if kind is _C.Dim:
            raise Decline("an open size is a key")
        if id(key) in self.world.numbers:
            raise Decline("a number that depends on a tensor is a key")
        if kind in IMMUTABLE or isinstance(key, (Tensor, type, types.FunctionType, types.ModuleType)):
            return
        if kind in (tuple, frozenset) or isinstance(key, tuple) and not self.world.has_python_method(kind, "__hash__"):
            for item in key:
                self.check_key(item)
            return
        if self.world.has_python_method(kind, "__hash__") or self.world.has_python_method(kind, "__eq__"):
            raise Decline(f"a {kind.__name__} is a key")
        if isinstance(key, known.CONTAINER_TYPES) or is_array(key):
            raise Raised(TypeError(f"unhashable type: '{kind.__name__}'"))

    # subscripts ------------------------------------------------------------------------------------------

    def subscript(self, container: Any, key: Any) -> Any:
        cls = type(container)
        if isinstance(container, Tensor):
            key = self.world.settled(key, "an index")
            return self.on_tensors(lambda: container[key], container, key)
        if cls is list or cls is tuple:
            held = self.world.content(container) if cls is list else container
            return self._item(held, key)
        method = self.world.class_attribute(cls, "__getitem__") if cls.__flags__ & (1 << 9) else ABSENT
        if isinstance(method, types.FunctionType):
            return self.call(method, [container, key], {})
        if isinstance(container, dict):
            return self._dict_method(cls if cls in known.CONTAINER_TYPES else dict, "__getitem__", container, [key], {})
        if isinstance(container, (list, tuple)):
            return self._item(self.world.content(container) if isinstance(container, list) else container, key)
        if is_array(container):
            return self._call_numpy(container.__getitem__, [key], {})
        if isinstance(container, type):
            return self._of_generic(container, key)
        if known.is_plain_type(cls) or isinstance(container, known.CONTAINER_TYPES):
            held = self.world.settled(container, "an index", tensors=False)
            key = self.world.settled(key, "an index", tensors=False)
            return self.native(lambda: held[key])
        if method is ABSENT:
            raise Raised(TypeError(f"'{cls.__name__}' object is not subscriptable"))
        raise Decline(f"it takes an item of a {cls.__name__}")

    def _of_generic(self, cls: type, key: Any) -> Any:
        meta = self.world.class_attribute(type(cls), "__getitem__") if type(cls) is not type else ABSENT
        if isinstance(meta, types.FunctionType):
            return self.call(meta, [cls, key], {})
        raise Decline(f"it takes an item of the class {cls.__name__}")

    def _item(self, held: Any, key: Any) -> Any:
        if isinstance(key, Tensor):
            size = self.known_size(key)
            key = self.on_tensors(lambda: operator.index(key)) if size is None else size
        if self.world.has_python_method(type(key), "__index__"):
            key = self.call(self.world.class_attribute(type(key), "__index__"), [key], {})
        key = self.world.settled(key, "an index", tensors=False)
        made = self.native(lambda: held[key])
        return self.world.new(made) if isinstance(key, slice) and type(made) is list else made

    def store_subscript(self, container: Any, key: Any, value: Any) -> None:
        cls = type(container)
        method = self.world.class_attribute(cls, "__setitem__") if cls.__flags__ & (1 << 9) else ABSENT
        if isinstance(method, types.FunctionType) and not isinstance(container, Tensor):
            self.call(method, [container, key, value], {})
        elif isinstance(container, Tensor):
            self.world.check_write(container)
            key, value = self.world.settled(key, "an index"), self.world.settled(value, "an index")
            if self.world.asking:
                raise Decline("it writes to a tensor, and a branch determines whether it requires a gradient")
            self.on_tensors(lambda: operator.setitem(container, key, value))  # type: ignore[call-overload]
        elif isinstance(container, dict):
            self.check_key(key)
            self.world.set_entry(container, key, value)
        elif isinstance(container, (list, bytearray)):
            target = self.world.writable(container)
            key = self.world.settled(key, "an index", tensors=False)
            if isinstance(key, slice):
                value = list(self.iterate(value))
            self.native(lambda: target.__setitem__(key, value))
        elif is_array(container) and self.world.is_fresh(container) and container.base is None:
            key, value = self.world.settled(key, "an array", False), self.world.settled(value, "an array", False)
            self.native(lambda: container.__setitem__(key, value))
        else:
            raise Decline(f"it sets an item of a {cls.__name__}")

    def delete_subscript(self, container: Any, key: Any) -> None:
        cls = type(container)
        method = self.world.class_attribute(cls, "__delitem__") if cls.__flags__ & (1 << 9) else ABSENT
        if isinstance(method, types.FunctionType):
            self.call(method, [container, key], {})
        elif isinstance(container, dict):
            self._dict_method(dict, "__delitem__", container, [key], {})
        elif isinstance(container, list):
            target = self.world.writable(container)
            key = self.world.settled(key, "an index", tensors=False)
            self.native(lambda: target.__delitem__(key))
        else:
            raise Decline(f"it deletes an item of a {cls.__name__}")

    def known_size(self, value: Any) -> Any:
        """The integer in a tensor, as a number or an open size, if it follows from sizes; else None."""
        if isinstance(value, Tensor) and _C.is_symbolic(value) and id(value) not in self.world.numbers:
            return _C.known_size(value)
        return None

    # truth and length ------------------------------------------------------------------------------------

    def truth(self, value: Any) -> bool:
        """``bool(value)`` if the result is known now."""
        kind = type(value)
        if kind is bool:
            return value
        if kind in IMMUTABLE and kind is not range:
            return bool(value)
        if isinstance(value, Tensor):
            return self.truth_of_tensor(value)
        if kind is _C.Dim:
            check_size(value)
            return self.native(lambda: value != 0)
        if isinstance(value, known.CONTAINER_TYPES) and not self.world.has_python_method(kind, "__bool__") and not (
                self.world.has_python_method(kind, "__len__")):
            return len(self.world.content(value)) > 0
        if kind.__flags__ & (1 << 9):
            for name in ("__bool__", "__len__"):
                method = self.world.class_attribute(kind, name)
                if isinstance(method, types.FunctionType):
                    found = self.call(method, [value], {})
                    if name == "__bool__" and type(found) is not bool and not isinstance(found, Tensor):
                        raise Decline("__bool__ returns something else than True or False")
                    return self.truth(found if name == "__bool__" else _checked_length(found))
                if method is not ABSENT and not is_array(value):
                    break
            else:
                return True
        if isinstance(value, (types.FunctionType, types.MethodType, Generator)):
            return True
        if isinstance(value, (tuple, frozenset, range)):
            return len(value) > 0
        settled = self.world.settled(value, "bool", tensors=False)
        return self.native(lambda: bool(settled))

    def truth_of_tensor(self, value: Tensor) -> bool:
        return self.on_tensors(lambda: bool(value))

    def length(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) in self.world.numbers:
                raise Decline("it takes the length of a number")
            if value.ndim == 0:
                raise Raised(TypeError("a 0-d tensor has no len()."))
            return value.shape[0]
        method = self.world.class_attribute(type(value), "__len__")
        if isinstance(method, types.FunctionType):
            return _checked_length(self.call(method, [value], {}))
        if isinstance(value, known.CONTAINER_TYPES):
            return len(self.world.content(value))
        if isinstance(value, tuple):
            return len(value)
        settled = self.world.settled(value, "len")
        return self.native(lambda: len(settled))


def _checked_length(found: Any) -> Any:
    if type(found) is not _C.Dim and (type(found) is not int or found < 0):
        raise Decline("__len__ returns something else than a length")
    return found


def check_size(size: Any) -> None:
    """What Python concludes about an open size is an assumption of the program: not for sizes that are known only at run time."""
    if size.is_told:
        raise Decline("it reads a size that depends on values")


def _holds_dim(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(type(v) is _C.Dim for v in value)
