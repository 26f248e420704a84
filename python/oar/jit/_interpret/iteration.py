"""Going over things: iterators of Python's own, generators that are interpreted, rows of tensors."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import known, substitutes
from oar.jit._interpret.attributes import Attributes
from oar.jit._interpret.frame import Frame, Generator
from oar.jit._interpret.world import ABSENT, Decline, Raised, is_array

__all__ = ["Iteration"]

_AT_ONCE = (itertools.product, itertools.combinations, itertools.permutations, itertools.combinations_with_replacement)
_ONE_BY_ONE = {
    zip: substitutes.zipped, enumerate: substitutes.numbered, itertools.chain: substitutes.chained,
    itertools.islice: substitutes.sliced,
}
_SEQUENCES = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)


class Iteration(Attributes):
    """Iteration, as a part of the interpreter."""

    def iterator(self, value: Any) -> Any:
        """``iter(value)``: one of Python's own iterators, a generator that is interpreted, or an object of the user's."""
        world, cls = self.world, type(value)
        if isinstance(value, Generator):
            return value
        if cls in known.ITERATORS:
            if not world.is_fresh(value):
                raise Decline(f"it advances a {cls.__name__} from outside")
            return value
        if cls in _SEQUENCES or known.is_plain_type(cls):
            if isinstance(value, known.CONTAINER_TYPES):
                value = world.iterated(value)
            return world.new(self.native(lambda: iter(value)))
        if isinstance(value, Tensor):
            return world.new(iter(world.new(self.rows_of(value))))
        if is_array(value):
            world.settled(value, "iter")
            return world.new(iter(world.new(list(value))))
        method = world.class_attribute(cls, "__iter__")
        if isinstance(method, types.FunctionType):
            return self.iterator_or_object(self.call(method, [value], {}))
        if isinstance(value, known.CONTAINER_TYPES) and method is not ABSENT:
            held = world.iterated(value)
            return world.new(iter(held if isinstance(held, dict) else list(held)))
        if isinstance(value, tuple):
            return world.new(iter(tuple(value)))
        if method is ABSENT and self.world.has_python_method(cls, "__getitem__"):
            return self.call(substitutes.items_of, [value], {})
        if method is ABSENT or method is None:
            raise Raised(TypeError(f"'{cls.__name__}' object is not iterable"))
        if isinstance(value, type) and hasattr(value, "__members__"):
            return world.new(iter(list(value.__members__.values())))
        raise Decline(f"it iterates over a {cls.__name__}")

    def iterator_of_loop(self, frame: Frame, value: Any) -> Any:
        """What a ``for`` takes its values from."""
        return self.iterator(value)

    def iterator_or_object(self, value: Any) -> Any:
        if isinstance(value, Generator) or type(value) in known.ITERATORS:
            return self.iterator(value)
        if self.world.has_python_method(type(value), "__next__"):
            return value
        raise Decline(f"it iterates over a {type(value).__name__}")

    def check_iterable(self, value: Any) -> None:
        """Declines what is not iterable, if Python's message is a special one."""
        cls = type(value)
        if not isinstance(value, Generator) and self.world.class_attribute(cls, "__iter__") in (ABSENT, None) and (
                self.world.class_attribute(cls, "__getitem__") is ABSENT):
            raise Decline(f"it iterates over a {cls.__name__}")

    def mapping_items(self, value: Any) -> list[tuple[Any, Any]]:
        """The entries of a dictionary, or of an object with ``keys()``."""
        if isinstance(value, dict) and not self.world.has_python_method(type(value), "keys"):
            return list(self.world.content(value).items())
        if self.find_attribute(value, "keys") is ABSENT:
            raise Decline(f"it takes a {type(value).__name__} for a dictionary")
        keys = self.call(self.load_attribute(value, "keys"), [], {})
        return [(key, self.subscript(value, key)) for key in self.iterate(keys)]

    def entries_of(self, value: Any) -> list[tuple[Any, Any]]:
        """What ``dict(value)`` holds: the entries of a mapping, or pairs."""
        if isinstance(value, dict) or self.world.class_attribute(type(value), "keys") is not ABSENT:
            return self.mapping_items(value)
        pairs = []
        for pair in self.iterate(value):
            self.check_iterable(pair)
            items = list(self.iterate(pair))
            if len(items) != 2:
                raise Decline("a dictionary is created from something other than pairs")
            pairs.append((items[0], items[1]))
        return pairs

    def subscript(self, container: Any, key: Any) -> Any:
        raise NotImplementedError

    def rows_of(self, value: Tensor) -> list:
        if id(value) in self.world.numbers:
            raise Decline("it iterates over a number")
        if value.ndim == 0:
            raise Raised(TypeError("a 0-d tensor cannot be iterated over."))
        count = value.shape[0]
        if isinstance(count, _C.Dim):
            raise Decline("it iterates over a tensor of open size")
        return self.on_tensors(lambda: [value[i] for i in range(count)], value)

    def next_of(self, value: Any) -> Any:
        """``next(value)``; the end is ``StopIteration``, raised as the function's exception."""
        if isinstance(value, Generator):
            return self.resume(value, None)
        cls = type(value)
        if cls in known.ITERATORS:
            if not self.world.is_fresh(value):
                raise Decline(f"it takes the next of a {cls.__name__} from outside")
            self.check_iterator(value)
            try:
                return next(value)
            except StopIteration as stop:
                raise Raised(stop) from None
        method = self.world.class_attribute(cls, "__next__")
        if isinstance(method, types.FunctionType):
            return self.call(method, [value], {})
        raise Decline(f"it takes the next of a {cls.__name__}")

    def check_iterator(self, value: Any) -> None:
        """Declines if other code may advance it from the same position."""

    def iterate(self, value: Any) -> Iterator[Any]:
        """Goes over it, for the interpreter's own loops."""
        it = self.iterator(value)
        while True:
            try:
                item = self.next_of(it)
            except Raised as raised:
                if isinstance(raised.error, StopIteration):
                    return
                raise
            yield item

    def resume(self, generator: Generator, value: Any) -> Any:
        raise NotImplementedError

    def _make_iterator(self, cls: type, args: list, kwargs: dict) -> Any:
        if cls is reversed:
            return self._reversed(args[0])
        kwargs = {k: self.world.settled(v, cls.__name__) for k, v in kwargs.items()}
        made = list(args) if cls is itertools.repeat else [a if _is_number(cls, a) else self.iterator(a) for a in args]
        if all(_is_number(cls, it) or type(it) in known.ITERATORS for it in made) or cls is itertools.repeat:
            return self.world.new(self.native(lambda: cls(*made, **kwargs)))
        if cls in _AT_ONCE:
            made = [it if _is_number(cls, it) else tuple(self.iterate(it)) for it in made]
            return self.world.new(self.native(lambda: cls(*made, **kwargs)))
        # Interpreted Python yields the items one by one, as late as in Python.
        if cls not in _ONE_BY_ONE or kwargs and cls is not enumerate:
            raise Decline(f"{cls.__name__} iterates over a generator")
        return self.call(_ONE_BY_ONE[cls], [tuple(made)] if cls is itertools.chain else made, kwargs)

    def _reversed(self, value: Any) -> Any:
        method = self.world.class_attribute(type(value), "__reversed__")
        if isinstance(method, types.FunctionType):
            return self.iterator(self.call(method, [value], {}))
        if type(value) in _SEQUENCES or isinstance(value, known.CONTAINER_TYPES) or known.is_plain_type(type(value)):
            held = self.world.content(value) if isinstance(value, known.CONTAINER_TYPES) else value
            return self.world.new(self.native(lambda: reversed(held)))
        return self.world.new(iter(list(self.iterate(value))[::-1]))


def _is_number(cls: type, arg: Any) -> bool:
    """Whether an argument of an iterator is taken as it is: a count, a fill value."""
    if cls in (zip, itertools.chain):
        return False
    return arg is None or isinstance(arg, (int, float)) or isinstance(arg, str) and cls is not enumerate
