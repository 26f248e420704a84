"""Methods of Python's own types and of tensors: on containers that are guarded, or created inside."""

from __future__ import annotations

import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import asking, grown, known
from oar.jit._interpret.attributes import Attributes
from oar.jit._interpret.world import ABSENT, Decline, Raised, is_array

__all__ = ["Methods"]


class Methods(Attributes):
    """Methods, as a part of the interpreter."""

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
                getattr(cls, "__init__")(owner, *args, **kwargs)
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
            self.world.guards.bases(owner)
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
                return self.world.new(getattr(cls, "copy")(target))
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
            if name in ("update", "__ior__", "__init__") and args:
                args = [self._checked_entries(args[0])]
            elif name == "__or__" and isinstance(args[0], dict):
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
            for key, value in [*(self._checked_entries(args[0]) if args else ()), *kwargs.items()]:
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
            if name in ("copy", "__or__") and cls is not dict and type(owner) is not type(held):
                raise Decline(f"it copies a {type(owner).__name__}")
            args = [world.content(a) if isinstance(a, dict) else a for a in args]
            return world.new(getattr(type(held), name)(held, *args))
        if name == "__len__":
            return len(held)
        raise Decline(f"it calls {name} of a dictionary outside")

    def _checked_entries(self, value: Any) -> list[tuple[Any, Any]]:
        entries = self.entries_of(value)
        for key, _ in entries:
            self.check_key(key)
        return entries

    def _missing(self, owner: dict, missing: Any, key: Any) -> Any:
        if isinstance(missing, types.FunctionType):
            return self.call(missing, [owner, key], {})
        factory = getattr(owner, "default_factory", None)
        self.world.guards.value(owner, "default_factory", factory, "the default_factory of a dictionary")
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
        if name == "retain_grads":
            self.retained.append(owner)
        if name == "backward":
            asking.check_backward(world, "it calls backward()")
        made = world.new_deep(self.on_tensors(lambda: getattr(owner, name)(*args, **kwargs), owner, args, kwargs))
        if is_array(made):
            world.new(made)
        return made
