"""Calls: Python functions are interpreted, known native code is run, everything else is declined."""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from collections.abc import Iterator
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework import host_actions
from oar.jit._interpret import asking, grown, known
from oar.jit._interpret.attributes import Attributes, has_python_method
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.world import ABSENT, Decline, Raised, is_array

__all__ = ["Calls"]

_METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType)
_SEQUENCES = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)


def name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__


class Calls(Attributes):
    """Calls, as a part of the interpreter."""

    def call(self, function: Any, args: list, kwargs: dict) -> Any:
        kind = type(function)
        if kind is types.FunctionType:
            special = _FUNCTIONS.get(function)
            if special is not None:
                return special(self, args, kwargs)
            return self.call_function(function, args, kwargs)
        if kind is types.MethodType:
            return self.call(function.__func__, [function.__self__, *args], kwargs)
        if kind is _C.OpFunction:
            return self._call_op(function, args, kwargs)
        if isinstance(function, type):
            return self._call_class(function, args, kwargs)
        if isinstance(function, types.BuiltinFunctionType):
            return self._call_builtin(function, args, kwargs)
        if kind in _METHOD_TYPES:
            return self._call_method(function.__objclass__, function.__name__, args[0], function, args[1:], kwargs)
        if kind is types.MethodWrapperType:
            return self._call_method(function.__objclass__, function.__name__, function.__self__, function, args, kwargs)
        if kind is functools.partial:
            keywords = self.world.content(function.keywords)
            return self.call(function.func, [*function.args, *args], {**keywords, **kwargs})
        if isinstance(function, weakref.ref):
            if not self.world.is_fresh(function) and self.in_users_code():
                raise Decline("it follows a weak reference")  # guards would keep alive what it refers to
            found = function()
            if found is None:
                raise Decline("it follows a weak reference to what is no more")
            return found
        if hasattr(kind, "dygraph_function"):
            return self._call_static(function, args, kwargs)
        if is_numpy_function(function):
            return self._call_numpy(function, args, kwargs)
        called = self.world.class_attribute(kind, "__call__")
        if isinstance(called, (types.FunctionType, _C.OpFunction)):
            self.world.own_dict(function)
            return self.call(called, [function, *args], kwargs)
        raise Decline(f"it calls {name_of(function)}")

    def call_function(self, function: types.FunctionType, args: list, kwargs: dict) -> Any:
        raise NotImplementedError

    def _call_static(self, function: Any, args: list, kwargs: dict) -> Any:
        return self.call(function.dygraph_function, args, kwargs)

    # ops and other native code ---------------------------------------------------------------------

    def native(self, run: Any) -> Any:
        """Runs native code; what it raises is the function's exception."""
        try:
            return run()
        except Exception as error:
            if isinstance(error, Raised) or self.is_foreign(error):
                raise
            raise Raised(error) from None

    def on_tensors(self, run: Any, *inputs: Any) -> Any:
        """Runs native code on tensors. An error may be that of symbolic tensors alone, so nobody may catch it."""
        try:
            made = run()
        except Exception as error:
            if isinstance(error, Raised) or self.is_foreign(error):
                raise
            raise Decline(f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}") from None
        asking.pass_on(self.world, made, inputs)
        return made

    def known_size(self, value: Any) -> Any:
        raise NotImplementedError

    def in_users_code(self) -> bool:
        """Whether the instruction that is done stands in code of the user's."""
        raise NotImplementedError

    def is_foreign(self, error: BaseException) -> bool:
        """Raised by Python code that nobody interprets: the handler of a signal."""
        raise NotImplementedError

    def _call_op(self, function: Any, args: list, kwargs: dict) -> Any:
        what = name_of(function)
        if what in ("stack", "concat") and args and grown.is_grown(self.world, args[0]):
            return grown.joined(self, what, args[0], *args[1:], **kwargs)
        if what.endswith("_") or what == "copy_into":
            self.world.check_write(args[0] if args else None)
        args = [self.world.settled(a, what) for a in args]
        kwargs = {k: self.world.settled(v, what) for k, v in kwargs.items()}
        return self.world.new_deep(self.on_tensors(lambda: function(*args, **kwargs), args, kwargs))

    def run_pure(self, function: Any, args: list, kwargs: dict, tensors: bool = False) -> Any:
        what = name_of(function)
        args = [self.world.settled(a, what, tensors) for a in args]
        kwargs = {k: self.world.settled(v, what, tensors) for k, v in kwargs.items()}
        if not tensors:
            return self.world.new_deep(self.native(lambda: function(*args, **kwargs)))
        owner = getattr(function, "__self__", None)
        return self.world.new_deep(self.on_tensors(lambda: function(*args, **kwargs), owner, args, kwargs))

    def _call_builtin(self, function: Any, args: list, kwargs: dict) -> Any:
        special = _BUILTINS.get(function)
        if special is not None:
            return special(self, args, kwargs)
        owner = function.__self__
        if function in known.MODES:
            return self.run_pure(function, args, kwargs)
        if function in known.CALLBACKS:
            return self._call_with_callbacks(function, args, kwargs)
        if function in known.PURE:
            return self._call_operator(function, args, kwargs)
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self._call_method(native_home(owner, function.__name__), function.__name__, owner, function, args, kwargs)
        if is_numpy_function(function):
            return self._call_numpy(function, args, kwargs)
        raise Decline(f"it calls {name_of(function)}")

    def _call_operator(self, function: Any, args: list, kwargs: dict) -> Any:
        if function is abs or function is round or function is divmod:
            method = f"__{function.__name__}__"
            if args and has_python_method(type(args[0]), method):
                return self.call(_C.Guards.lookup(type(args[0]), method), args, kwargs)
        tensors = any(isinstance(a, (Tensor, _C.Dim)) for a in args) and function.__self__.__name__ != "math"
        return self.run_pure(function, args, kwargs, tensors)

    def _call_with_callbacks(self, function: Any, args: list, kwargs: dict) -> Any:
        """The callables are interpreted when native code calls them."""
        def prepared(value: Any) -> Any:
            if isinstance(value, (types.FunctionType, types.MethodType)):
                return self.trampoline(value)
            if type(value) is list:
                return [prepared(item) for item in self.world.content(value)]
            return value if isinstance(value, Tensor) else self.world.settled(value, name_of(function))

        asking.check(self.world, f"it calls {name_of(function)}")
        args = [prepared(a) for a in args]
        return self.world.new_deep(self.on_tensors(lambda: function(*args, **kwargs)))

    def trampoline(self, function: Any) -> Any:
        """For native code: interprets the function when it is called, while the capture lasts."""
        def run(*args: Any) -> Any:
            try:
                for arg in args:
                    self.world.new_deep(arg)
                return self.world_result(self.call(function, list(args), {}))
            except Raised as raised:
                raise raised.error from None

        return run

    def world_result(self, value: Any) -> Any:
        if type(value) is list:
            return self.world.content(value)
        return value

    def _call_numpy(self, function: Any, args: list, kwargs: dict) -> Any:
        from oar.jit._interpret import arrays

        return arrays.call(self, function, args, kwargs)

    # classes -----------------------------------------------------------------------------------------

    def _call_class(self, cls: type, args: list, kwargs: dict) -> Any:
        special = _CLASSES.get(cls)
        if special is not None:
            return special(self, args, kwargs)
        if cls in known.ITERATORS:
            return self._make_iterator(cls, args, kwargs)
        if cls is _C.dtype:
            return self.run_pure(cls, args, kwargs)
        if cls is weakref.ref and len(args) == 1:
            return self.world.new(self.native(lambda: weakref.ref(args[0])))
        if cls.__module__ == "numpy" or is_numpy_function(cls):
            return self._call_numpy(cls, args, kwargs)
        meta = type(cls)
        if meta is not type:
            called = self.world.class_attribute(meta, "__call__")
            if isinstance(called, types.FunctionType):
                return self.call(called, [cls, *args], kwargs)
            if called is not type.__call__:
                raise Decline(f"it makes a {cls.__name__}")
        return self.make_instance(cls, args, kwargs)

    def make_instance(self, cls: type, args: list, kwargs: dict) -> Any:
        """What ``type.__call__`` does."""
        maker = self.world.class_attribute(cls, "__new__")
        maker = maker.__func__ if isinstance(maker, staticmethod) else maker
        if isinstance(maker, types.FunctionType):
            made = self.call(maker, [cls, *args], kwargs)
            if not isinstance(made, cls):
                return made
        else:
            made = self._new_native(cls, maker, args, kwargs)
        setup = self.world.class_attribute(type(made), "__init__")
        if isinstance(setup, types.FunctionType):
            if self.call(setup, [made, *args], kwargs) is not None:
                raise Decline("__init__ returns a value")
        elif setup not in (object.__init__, tuple.__init__) and not isinstance(made, BaseException):
            self.call(setup, [made, *args], kwargs)
        return made

    def _new_native(self, cls: type, maker: Any, args: list, kwargs: dict) -> Any:
        if maker is object.__new__:
            python_init = isinstance(_C.Guards.lookup(cls, "__init__"), types.FunctionType)
            if (args or kwargs) and not python_init:
                raise Raised(TypeError(f"{cls.__name__}() takes no arguments"))
            return self._noted(self.native(lambda: object.__new__(cls)))
        if issubclass(cls, BaseException):
            return self._noted(self.native(lambda: maker(cls, *args, **kwargs)))
        if issubclass(cls, known.CONTAINER_TYPES) and maker in (list.__new__, dict.__new__, set.__new__):
            return self._noted(self.native(lambda: maker(cls)))
        if issubclass(cls, tuple) and maker is tuple.__new__:
            return self._tuple_of(cls, args)
        raise Decline(f"it makes a {cls.__name__}")

    def _noted(self, made: Any) -> Any:
        self.world.new(made)
        own = getattr(made, "__dict__", None)
        if isinstance(own, dict):
            self.world.new(own)
        return made

    def _tuple_of(self, cls: type, args: list) -> Any:
        items = list(self.iterate(args[0])) if args else []
        return tuple.__new__(cls, items)

    # methods of Python's own types --------------------------------------------------------------------

    def _call_method(
        self, cls: type, name: str, owner: Any, method: Any, args: list, kwargs: dict
    ) -> Any:
        if isinstance(owner, known.CONTAINER_TYPES) and issubclass(cls, known.CONTAINER_TYPES):
            return self._container_method(cls, name, owner, args, kwargs)
        if isinstance(owner, Tensor):
            return self._tensor_method(name, owner, args, kwargs)
        if cls is object or cls is type or name in ("__new__", "__init__", "__setattr__", "__getattribute__", "__delattr__"):
            return self._object_method(cls, name, owner, args, kwargs)
        if isinstance(owner, type(_C.Dim)) or type(owner) is _C.Dim:
            return self.run_pure(getattr(owner, name), args, kwargs, tensors=True)
        if is_array(owner):
            return self._call_numpy(getattr(owner, name), args, kwargs)
        if isinstance(owner, known.ITERATORS) and name in ("__iter__", "__next__"):
            return owner if name == "__iter__" else self.next_of(owner)
        if name == "join" and isinstance(owner, (str, bytes)):
            args = [list(self.iterate(args[0]))]
        if isinstance(owner, (str, bytes, int, float, complex, tuple, frozenset, range, type(None))) or isinstance(
                owner, known.STATELESS) or known.is_plain_type(type(owner)):
            owner = self.world.settled(owner, name)
            function = getattr(cls, name)
            return self.run_pure(function, [owner, *args], kwargs)
        if isinstance(owner, types.FunctionType) and name == "__get__":
            return types.MethodType(owner, args[0]) if args[0] is not None else owner
        if isinstance(owner, BaseException) and name in ("with_traceback", "add_note"):
            raise Decline("it changes an exception")
        if isinstance(owner, known.STATELESS):
            return self.run_pure(getattr(owner, name), args, kwargs)
        raise Decline(f"it calls {name} of a {type(owner).__name__}")

    def _object_method(self, cls: type, name: str, owner: Any, args: list, kwargs: dict) -> Any:
        if name == "__setattr__":
            return self.generic_store(owner, args[0], args[1])
        if name == "__delattr__":
            return self.generic_store(owner, args[0], ABSENT)
        if name == "__getattribute__":
            return self.load_or_raise(self.generic_attribute(owner, args[0]), args[0])
        if name == "__init__" and (cls is object or isinstance(owner, BaseException)):
            if isinstance(owner, BaseException):
                cls.__init__(owner, *args, **kwargs)
            return None
        if name == "__new__" and isinstance(owner, type):
            return self._new_native(args[0] if args else owner, owner.__new__, args[1:], kwargs)
        if name == "__call__" and isinstance(owner, type):
            return self.make_instance(owner, args, kwargs)
        if name == "__init_subclass__":
            return None
        if name in ("__eq__", "__ne__", "__hash__") and cls is object:
            return getattr(object, name)(owner, *args)
        if name in ("mro",) and isinstance(owner, type):
            return self.world.new(list(owner.__mro__))
        raise Decline(f"it calls {name} of a {type(owner).__name__}")

    def load_or_raise(self, found: Any, name: str) -> Any:
        if found is ABSENT:
            raise Raised(AttributeError(name))
        return found

    def _container_method(self, cls: type, name: str, owner: Any, args: list, kwargs: dict) -> Any:
        if name == "__new__":
            return self._new_native(args[0], cls.__new__, args[1:], kwargs)
        if name == "append" and grown.is_grown(self.world, owner):
            return owner.append(args[0])
        self.world.check_content(owner)
        if isinstance(owner, dict):
            return self._dict_method(cls, name, owner, args, kwargs)
        if name in known.WRITERS:
            if name in known.ADDING and not kwargs:
                if name == "extend":
                    args = [list(self.iterate(args[0]))]
                if name in ("add", "discard"):
                    self.check_key(args[0])
                if self.world.add(owner, getattr(cls, name), args):
                    return None
            target = self.world.writable(owner)
            if name in ("extend", "update", "__iadd__", "extendleft", "__init__") and args:
                args = [list(self.iterate(args[0])), *args[1:]]
            if name == "sort":
                return self._sort(target, kwargs)
            if name in ("remove", "discard", "add"):
                self.check_key(args[0])
        else:
            target = self.world.content(owner)
            if name in ("index", "count", "__contains__", "__eq__"):
                return self._search(cls, name, target, args)
            if name == "copy":
                return self.world.new(cls.copy(target))
            if name == "__iter__":
                return self.iterator(owner)
            args = [self.world.content(a) if isinstance(a, known.CONTAINER_TYPES) else a for a in args]
        made = self.native(lambda: getattr(cls, name)(target, *args, **kwargs))
        if name in ("__iadd__", "__ior__", "__imul__") and made is target:
            return owner
        return self.world.new(made) if type(made) in (list, set, dict) and name not in ("pop", "popleft", "__getitem__") else made

    def _search(self, cls: type, name: str, held: Any, args: list) -> Any:
        if name == "__contains__":
            return self.contains(held, args[0])
        if any(isinstance(a, Tensor) for a in [*held, *args]):
            raise Decline("it compares tensors by value")
        settled = self.world.settled(held, name, tensors=False)
        return self.native(lambda: getattr(cls, name)(settled, *args))

    def _sort(self, target: list, kwargs: dict) -> None:
        target[:] = self._sorted(list(target), kwargs)

    def _sorted(self, items: list, kwargs: dict) -> list:
        key, reverse = kwargs.get("key"), bool(kwargs.get("reverse", False))
        keys = items if key is None else [self.call(key, [item], {}) for item in items]
        keys = [self.world.settled(k, "sorting", tensors=False) for k in keys]
        order = self.native(lambda: sorted(range(len(items)), key=keys.__getitem__, reverse=reverse))
        return [items[i] for i in order]

    def _dict_method(self, cls: type, name: str, owner: dict, args: list, kwargs: dict) -> Any:
        world = self.world
        if name in ("get", "__getitem__", "__contains__", "pop", "setdefault", "__setitem__", "__delitem__", "move_to_end"):
            self.check_key(args[0])
        if world.is_fresh(owner):
            if name in ("update", "__ior__", "__init__") and args and not isinstance(args[0], dict):
                args = [[tuple(self.iterate(pair)) for pair in self.iterate(args[0])]]
            elif name in ("update", "__init__", "__ior__", "__or__") and args:
                args = [world.content(args[0])]
            if name == "__eq__" or name == "__ne__":
                return self.compare_plain(name, owner, args[0])
            made = self.native(lambda: getattr(cls, name)(owner, *args, **kwargs))
            return world.new(made) if name in ("copy", "__or__", "fromkeys") else made
        label = "a dictionary"
        if name == "__contains__":
            return world.has_entry(owner, args[0], label)
        if name in ("get", "__getitem__", "setdefault", "pop"):
            found = world.entry(owner, args[0], f"{label}[{args[0]!r}]")
            if name == "setdefault":
                if found is ABSENT:
                    found = args[1] if len(args) > 1 else None
                    world.set_entry(owner, args[0], found)
                return found
            if found is ABSENT:
                if name == "get" or (name == "pop" and len(args) > 1):
                    return args[1] if len(args) > 1 else None
                missing = world.class_attribute(type(owner), "__missing__") if name == "__getitem__" else ABSENT
                if missing is not ABSENT:
                    return self._missing(owner, missing, args[0])
                raise Raised(KeyError(args[0]))
            if name == "pop":
                world.delete_entry(owner, args[0])
            return found
        if name == "__setitem__":
            return world.set_entry(owner, args[0], args[1])
        if name == "__delitem__":
            if world.entry(owner, args[0], label) is ABSENT:
                raise Raised(KeyError(args[0]))
            return world.delete_entry(owner, args[0])
        if name == "update":
            given = world.content(args[0]) if args and isinstance(args[0], dict) else dict(
                tuple(self.iterate(pair)) for pair in self.iterate(args[0])) if args else {}
            for key, value in {**given, **kwargs}.items():
                world.set_entry(owner, key, value)
            return None
        if name in known.WRITERS:
            raise Decline(f"it calls {name} of a dictionary outside")
        held = world.content(owner, label)
        if name == "__iter__":
            return self.iterator(owner)
        if name in ("__eq__", "__ne__"):
            return self.compare_plain(name, held, args[0])
        if name in ("keys", "values", "items", "copy", "__reversed__", "__or__"):
            held = held if world.is_fresh(held) else world.new(dict(cls.items(held) if cls is not dict else held))
            args = [world.content(a) if isinstance(a, dict) else a for a in args]
            made = getattr(dict, name)(held, *args)
            return world.new(made)
        if name == "__len__":
            return len(held)
        raise Decline(f"it calls {name} of a dictionary outside")

    def _missing(self, owner: dict, missing: Any, key: Any) -> Any:
        if isinstance(missing, types.FunctionType):
            return self.call(missing, [owner, key], {})
        factory = getattr(owner, "default_factory", None)
        if factory is None or factory not in (list, dict, int, float, set, str, tuple):
            raise Decline("it reads a missing key of a defaultdict")
        made = self.call(factory, [], {})
        self.world.set_entry(owner, key, made)
        return made

    def _tensor_method(self, name: str, owner: Tensor, args: list, kwargs: dict) -> Any:
        world = self.world
        if name == "_add_hook":
            if not _C.is_symbolic(owner):
                raise Decline("it registers a hook on a tensor outside")
            asking.check(world, "it registers a hook")
            return self.on_tensors(lambda: owner._add_hook(self.trampoline(args[0])))
        if name in ("__getitem__", "__setitem__") or name.startswith("__"):
            if name in ("__hash__",):
                return hash(owner)
            if name in ("__init__", "__new__", "__setattr__", "__getattribute__", "__dlpack__", "__init_subclass__"):
                raise Decline(f"it calls {name} of a tensor")
            if name in ("__bool__", "__len__"):
                return self.length(owner) if name == "__len__" else self.truth(owner)
            return self.run_pure(getattr(owner, name), args, kwargs, tensors=True)
        if name not in known.TENSOR_METHODS:
            raise Decline(f"it calls {name} of a tensor")
        if name == "backward" and not _C.is_symbolic(owner):
            raise Decline("it calls backward() of a tensor outside")
        if name == "item" and not args and not kwargs:
            size = self.known_size(owner)
            if size is not None:
                return size
        args = [world.settled(a, name) for a in args]
        kwargs = {k: world.settled(v, name) for k, v in kwargs.items()}
        if name == "_become":
            world.check_write(owner)
        if name == "backward":
            asking.check(world, "it calls backward()")
        made = world.new_deep(self.on_tensors(lambda: getattr(owner, name)(*args, **kwargs), owner, args, kwargs))
        if is_array(made):
            world.new(made)
        return made

    # going over things --------------------------------------------------------------------------------

    def iterator(self, value: Any) -> Any:
        """``iter(value)``: one of Python's own iterators, a generator that is interpreted, or an object of the user's."""
        world, cls = self.world, type(value)
        if isinstance(value, Generator):
            return value
        if cls in known.ITERATORS:
            if not world.is_fresh(value):
                raise Decline(f"it goes on with a {cls.__name__} from outside")
            return value
        if cls in _SEQUENCES or known.is_plain_type(cls):
            if isinstance(value, known.CONTAINER_TYPES):
                world.iterated(value)
                value = world.content(value)
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
            world.iterated(value)
            held = world.content(value)
            return world.new(iter(list(held)))
        if isinstance(value, tuple):
            return world.new(iter(tuple(value)))
        if method is ABSENT and has_python_method(cls, "__getitem__"):
            from oar.jit._interpret import substitutes

            return self.call(substitutes.items_of, [value], {})
        if method is ABSENT or method is None:
            raise Raised(TypeError(f"'{cls.__name__}' object is not iterable"))
        if isinstance(value, type) and hasattr(value, "__members__"):
            return world.new(iter(list(value.__members__.values())))
        raise Decline(f"it goes over a {cls.__name__}")

    def iterator_or_object(self, value: Any) -> Any:
        if isinstance(value, Generator) or type(value) in known.ITERATORS:
            return self.iterator(value)
        if isinstance(self.world.class_attribute(type(value), "__next__"), types.FunctionType):
            return value
        raise Decline(f"it goes over a {type(value).__name__}")

    def rows_of(self, value: Tensor) -> list:
        if value.ndim == 0:
            raise Raised(TypeError("a 0-d tensor cannot be iterated over."))
        count = value.shape[0]
        if isinstance(count, _C.Dim):
            raise Decline("it goes over a tensor of open size")
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
        """Declines where somebody else may go on with it from the same place."""

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
        made = []
        for arg in args:
            if arg is None or isinstance(arg, (int, str)) and cls not in (zip, enumerate, itertools.chain):
                made.append(arg)
                continue
            if isinstance(arg, (int, float)) or isinstance(arg, Tensor) and cls is itertools.repeat:
                made.append(arg)
                continue
            it = self.iterator(arg)
            if type(it) not in known.ITERATORS:
                it = self.world.new(iter(list(self.iterate(it))))  # interpreted: go through it now
            made.append(it)
        if cls in (itertools.repeat,):
            made = list(args)
        if cls is reversed:
            return self._reversed(args[0])
        kwargs = {k: self.world.settled(v, cls.__name__) for k, v in kwargs.items()}
        return self.world.new(self.native(lambda: cls(*made, **kwargs)))

    def _reversed(self, value: Any) -> Any:
        method = _C.Guards.lookup(type(value), "__reversed__")
        if isinstance(method, types.FunctionType):
            return self.iterator(self.call(method, [value], {}))
        if type(value) in _SEQUENCES or isinstance(value, known.CONTAINER_TYPES) or known.is_plain_type(type(value)):
            held = self.world.content(value) if isinstance(value, known.CONTAINER_TYPES) else value
            return self.world.new(self.native(lambda: reversed(held)))
        return self.world.new(iter(list(self.iterate(value))[::-1]))


def is_numpy_function(function: Any) -> bool:
    """Whether NumPy brought it."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return isinstance(module, str) and module.partition(".")[0] == "numpy"


def native_home(owner: Any, name: str) -> type:
    """The class that brought a native method; classes of the user's may have another one under the same name."""
    for base in type(owner).__mro__:
        if name in vars(base) and not isinstance(vars(base)[name], types.FunctionType):
            return base
    return type(owner)


_BUILTINS: dict[Any, Any] = {}
_CLASSES: dict[type, Any] = {}
_FUNCTIONS: dict[Any, Any] = {}


def builtin(*functions: Any) -> Any:
    """Registers how the interpreter does what a function of Python's does."""
    def register(method: Any) -> Any:
        for function in functions:
            table = _CLASSES if isinstance(function, type) else (
                _BUILTINS if isinstance(function, types.BuiltinFunctionType) else _FUNCTIONS)
            table[function] = method
        return method

    return register


def host_action(machine: Any, args: list, kwargs: dict) -> Any:
    """An action on the host, after the run. What it changes must not be looked at any more."""
    action, owner = args
    for cell in action.__closure__ or ():
        if _holds_tensor(cell.cell_contents):
            raise Decline(f"a step of a {type(owner).__name__} looks at a tensor")
    machine.defer(action, owner)
    return True


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_holds_tensor, value))
    if isinstance(value, dict):
        return any(map(_holds_tensor, value.values()))
    return isinstance(value, Tensor)


_FUNCTIONS[host_actions.defer] = host_action
