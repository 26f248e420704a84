"""Attributes: Python's protocol, step by step, with a guard on everything that is found outside."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._sizes import TensorSize
from oar.jit._interpret import known
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.world import ABSENT, Decline, Raised, World, is_array

__all__ = ["Attributes"]

_FUNCTIONS = (types.FunctionType, _C.OpFunction, _C.SpelledFunction)
_NATIVE_DESCRIPTORS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
)
_OF_FUNCTIONS = frozenset({
    "__name__", "__qualname__", "__module__", "__doc__", "__code__", "__defaults__", "__kwdefaults__", "__wrapped__",
    "__closure__", "__globals__", "__annotations__", "__dict__",
})
_OF_CLASSES = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "__mro__", "__bases__", "__class__", "__base__"})
_HEAP_TYPE = 1 << 9
_FIELD = type(vars(collections.namedtuple("_Pair", "left"))["left"])


class Attributes:
    """Reads and writes of attributes, as a part of the interpreter."""

    world: World
    # What other parts of the interpreter provide.
    _call_numpy: Callable[..., Any]
    _new_native: Callable[..., Any]
    check_key: Callable[..., Any]
    compare_plain: Callable[..., Any]
    contains: Callable[..., Any]
    entries_of: Callable[..., Any]
    has_returned: bool
    retained: list[Tensor]
    iterate: Callable[..., Any]
    iterator: Callable[..., Any]
    known_size: Callable[..., Any]
    length: Callable[..., Any]
    make_instance: Callable[..., Any]
    next_of: Callable[..., Any]
    run_pure: Callable[..., Any]
    trampoline: Callable[..., Any]
    truth: Callable[..., Any]

    def call(self, function: Any, args: list, kwargs: dict) -> Any:
        raise NotImplementedError

    # reading -------------------------------------------------------------------------------------

    def load_attribute(self, value: Any, name: str) -> Any:
        found = self.find_attribute(value, name)
        if found is ABSENT:
            owner = value.__name__ if isinstance(value, (type, types.ModuleType)) else type(value).__name__
            kind = "type object" if isinstance(value, type) else "module" if isinstance(value, types.ModuleType) else None
            text = f"{kind} '{owner}' has no attribute '{name}'" if kind else f"'{owner}' object has no attribute '{name}'"
            raise Raised(AttributeError(text, name=name, obj=value))
        return found

    def find_attribute(self, value: Any, name: str) -> Any:
        """The attribute, or ``ABSENT``."""
        self.world.check_class(type(value))
        if isinstance(value, types.ModuleType):
            return self._of_module(value, name)
        if isinstance(value, type):
            return self._of_class(value, name)
        if isinstance(value, super):
            return self._of_super(value, name)
        if isinstance(value, Generator):
            raise Decline(f"it reads {name} of a generator")
        cls = type(value)
        if isinstance(value, Tensor):
            return self._of_tensor(value, name)
        if cls in known.LAZY:
            getattr(value, name, None)  # looked up by name once, and kept
        if not cls.__flags__ & _HEAP_TYPE or cls in known.NATIVE_TYPES or is_array(value):
            return self._of_native(value, name)
        return self.generic_attribute(value, name)

    def generic_attribute(self, value: Any, name: str) -> Any:
        """What ``object.__getattribute__`` finds, then ``__getattr__``."""
        cls = type(value)
        if name == "__class__":
            self.world.own_dict(value)
            return cls
        raw = self.world.class_attribute(cls, name)
        kind = type(raw)
        if raw is not ABSENT and self._is_data_descriptor(raw):
            return self._or_absent(lambda: self._from_descriptor(raw, value, cls, name), cls, value, name)
        own = self.world.own_dict(value)
        if name == "__dict__" and own is not None:
            return own
        if own is not None:
            found = self.world.entry(own, name, f"{cls.__name__}.{name}")
            if found is not ABSENT:
                return found
        if raw is ABSENT:
            return self._fall_back(cls, value, name)
        if kind in _FUNCTIONS:
            return types.MethodType(raw, value)
        return self._or_absent(lambda: self._from_descriptor(raw, value, cls, name), cls, value, name)

    def _fall_back(self, cls: type, value: Any, name: str) -> Any:
        asked = self.world.class_attribute(cls, "__getattr__")
        if isinstance(asked, types.FunctionType):
            return self._or_absent(lambda: self.call(asked, [value, name], {}))
        if asked is not ABSENT:
            raise Decline(f"{cls.__name__}.__getattr__ is native")
        return ABSENT

    def _or_absent(self, read: Any, cls: type | None = None, value: Any = None, name: str = "") -> Any:
        try:
            return read()
        except Raised as raised:
            if not isinstance(raised.error, AttributeError):
                raise
            if cls is not None and self.world.class_attribute(cls, "__getattr__") is not ABSENT:
                return self._fall_back(cls, value, name)
            raise

    def _is_data_descriptor(self, raw: Any) -> bool:
        return any(self.world.class_attribute(type(raw), name) is not ABSENT for name in ("__set__", "__delete__"))

    def _from_descriptor(self, raw: Any, value: Any, cls: type, name: str) -> Any:
        kind = type(raw)
        if kind in _FUNCTIONS:
            return raw if value is None else types.MethodType(raw, value)
        if kind is property:
            if value is None:
                return raw
            if raw.fget is None:
                raise Raised(AttributeError(f"property '{name}' of '{cls.__name__}' object has no getter"))
            return self.call(raw.fget, [value], {})
        if kind is staticmethod:
            return raw.__func__
        if kind is classmethod:
            return self._bound(raw.__func__, cls)
        if kind is types.MemberDescriptorType:
            return raw if value is None else self._present(self.world.slot(value, raw, f"{cls.__name__}.{name}"), cls, name)
        if kind in _NATIVE_DESCRIPTORS:
            return self._from_native(raw, value, cls, name)
        getter = self.world.class_attribute(kind, "__get__")
        if getter is ABSENT or kind is _FIELD and value is None:
            return raw
        if kind is _FIELD:
            return raw.__get__(value, cls)
        if isinstance(getter, types.FunctionType):
            return self.call(getter, [raw, value, cls], {})
        if kind.__name__ == "StaticFunction" and hasattr(raw, "dygraph_function"):
            return raw if value is None else raw.__get__(value, cls)
        raise Decline(f"the attribute {name} of {cls.__name__} is a {kind.__name__}")

    def _from_native(self, raw: Any, value: Any, cls: type, name: str) -> Any:
        if isinstance(raw, types.GetSetDescriptorType):
            if value is None:
                return raw
            if name in ("__dict__", "__weakref__"):
                own = self.world.own_dict(value)
                if name == "__dict__" and own is not None:
                    return own
            raise Decline(f"the attribute {name} of {cls.__name__} is native")
        return raw if value is None and not isinstance(raw, types.ClassMethodDescriptorType) else raw.__get__(value, cls)

    def _present(self, found: Any, cls: type, name: str) -> Any:
        if found is ABSENT:
            raise Raised(AttributeError(f"'{cls.__name__}' object has no attribute '{name}'"))
        return found

    def _bound(self, function: Any, owner: Any) -> Any:
        if type(function) in _FUNCTIONS:
            return types.MethodType(function, owner)
        if isinstance(function, types.BuiltinFunctionType):
            return types.MethodType(function, owner)
        return self._from_descriptor(function, owner, type(owner), "__func__")

    def _of_module(self, module: types.ModuleType, name: str) -> Any:
        own = module.__dict__
        found = self.world.entry(own, name, f"{module.__name__}.{name}")
        if found is not ABSENT:
            return found
        if name == "__dict__":
            return own
        if name == "__class__":
            return type(module)
        asked = self.world.entry(own, "__getattr__", f"{module.__name__}.__getattr__")
        if isinstance(asked, types.FunctionType):
            return self._or_absent(lambda: self.call(asked, [name], {}))
        if type(module) is not types.ModuleType:
            raw = self.world.class_attribute(type(module), name)
            if isinstance(raw, (types.FunctionType, property)):
                return self._from_descriptor(raw, module, type(module), name)
            asked = self.world.class_attribute(type(module), "__getattr__")
            if isinstance(asked, types.FunctionType):
                return self._or_absent(lambda: self.call(asked, [module, name], {}))
            if raw is not ABSENT or asked is not ABSENT:
                raise Decline(f"the module {module.__name__} has a special way of reading attributes")
        return ABSENT

    def _of_class(self, cls: type, name: str) -> Any:
        if name in _OF_CLASSES:
            found = getattr(cls, name)
            self.world.guards.value(cls, name, found, f"{cls.__name__}.{name}")
            return found
        meta = type(cls)
        if meta is not type and self.world.has_python_method(meta, "__getattribute__"):
            raise Decline(f"{meta.__name__} defines __getattribute__")
        above = self.world.class_attribute(meta, name)
        if above is not ABSENT and self._is_data_descriptor(above):
            if name == "__dict__":
                raise Decline("it reads the dictionary of a class")
            return self._from_descriptor(above, cls, meta, name)
        raw = self.world.class_attribute(cls, name)
        if raw is not ABSENT:
            return self._from_descriptor(raw, None, cls, name)
        if above is not ABSENT:
            return self._from_descriptor(above, cls, meta, name)
        return self._fall_back(meta, cls, name) if meta is not type else ABSENT

    def _of_super(self, value: Any, name: str) -> Any:
        if name == "__class__":
            return super
        start, owner, cls = value.__thisclass__, value.__self__, value.__self_class__
        mro = cls.__mro__
        self.world.guards.bases(cls)
        for base in mro[mro.index(start) + 1:]:
            raw = self.world.guards.class_entry(base, name)
            if raw is not ABSENT:
                self.world.check_state(raw, f"{base.__name__}.{name}")
                instance = None if owner is cls else owner
                return self._from_descriptor(raw, instance, cls, name)
        return ABSENT

    def _of_tensor(self, value: Tensor, name: str) -> Any:
        cls = type(value)
        if id(value) in self.world.numbers:
            raise Decline(f"it reads {name} of a number that depends on a tensor")
        raw = self.world.class_attribute(cls, name)
        if type(raw) in _FUNCTIONS:
            return types.MethodType(raw, value)
        if name == "__class__":
            return cls
        if name == "__dict__":
            raise Decline("it reads the dictionary of a tensor")
        if isinstance(raw, property):
            return self._or_absent(lambda: self.call(raw.fget, [value], {}))
        if isinstance(raw, (staticmethod, classmethod)):
            return self._from_descriptor(raw, value, cls, name)
        if isinstance(raw, types.GetSetDescriptorType):
            return self._property_of_tensor(value, name)
        if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return raw.__get__(value, cls)
        if self.world.is_input(value):
            if raw is not ABSENT:
                return raw
            raise Decline(f"it reads the attribute {name} of a tensor argument")
        own = value.__dict__ if hasattr(value, "__dict__") else {}
        if not self.world.is_fresh(value) and not _C.is_symbolic(value):
            found = self.world.entry(own, name, f"the attribute {name} of a tensor")
        else:
            found = own.get(name, ABSENT)
        return raw if found is ABSENT else found

    def _property_of_tensor(self, value: Tensor, name: str) -> Any:
        if name in known.TENSOR_VALUES:
            raise Decline(f"it reads {name} of a tensor")
        outside = not self.world.is_fresh(value) and not _C.is_symbolic(value)
        if name not in known.TENSOR_PROPERTIES:
            raise Decline(f"it reads {name} of a tensor")
        if self.world.is_input(value) and name in known.NOT_OF_INPUTS:
            raise Decline(f"it reads {name} of a tensor argument")
        if name == "stop_gradient" and id(value) in self.world.asking:
            raise Decline("only a branch tells whether a tensor asks for its gradient")
        if name in ("stop_gradient", "is_leaf", "grad"):
            self.world.check_effect(f"it reads {name} of a tensor", own_code=True)
        found = self.on_tensors(lambda: getattr(value, name))
        if isinstance(found, TensorSize):
            found = int(found)
        if outside and name not in ("grad", "data", "T", "mT", "real", "imag"):
            self.world.guards.tensor(value, f"a tensor's {name}")
            if name in ("name", "persistable", "need_clip"):
                self.world.guards.value(value, name, found, f"a tensor's {name}")
        return self.world.new_deep(found)

    def _of_native(self, value: Any, name: str) -> Any:
        """Methods and members of Python's own types."""
        cls = type(value)
        if isinstance(value, types.FunctionType):
            return self._of_function(value, name)
        if isinstance(value, types.MethodType):
            if name in ("__self__", "__func__"):
                return getattr(value, name)
            return self.find_attribute(value.__func__, name)
        if cls is property or cls in (staticmethod, classmethod):
            if name in ("fget", "fset", "fdel", "__func__", "__wrapped__"):
                return getattr(value, name)
        if isinstance(value, BaseException):
            return self._of_exception(value, name)
        raw = self.world.class_attribute(cls, name)
        if raw is ABSENT:
            own = getattr(value, "__dict__", None)
            if isinstance(own, dict) and not isinstance(value, known.STATELESS):
                return self.world.entry(own, name, f"{cls.__name__}.{name}")
            return ABSENT if known.is_plain_type(cls) else self._refuse(cls, name)
        if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)):
            return getattr(value, name)
        if cls in known.MEMBERS and name in known.MEMBERS[cls]:
            return getattr(value, name)
        if cls is types.CellType and name == "cell_contents":
            return self._of_cell(value)
        if known.is_plain_type(cls) and isinstance(raw, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            return getattr(value, name)
        if is_array(value) and name in known.ARRAY_MEMBERS:
            self.world.settled(value, "an array")
            return self.native(lambda: getattr(value, name))
        if isinstance(value, known.STATELESS):
            return self.native(lambda: getattr(value, name))
        if isinstance(raw, staticmethod):
            return raw.__func__
        return self._refuse(cls, name)

    def _of_cell(self, cell: types.CellType) -> Any:
        found = self.world.cell(cell, "a variable of an enclosing function")
        if found is ABSENT:
            raise Raised(ValueError("Cell is empty"))
        return found

    def _refuse(self, cls: type, name: str) -> Any:
        raise Decline(f"it reads the attribute {name} of a {cls.__name__}")

    def _of_exception(self, value: BaseException, name: str) -> Any:
        raw = self.world.class_attribute(type(value), name)
        if isinstance(raw, types.FunctionType):
            return types.MethodType(raw, value)
        if not self.world.is_fresh(value) or name in ("__traceback__", "with_traceback"):
            raise Decline(f"it reads the attribute {name} of an exception")
        return getattr(value, name, ABSENT)

    def _of_function(self, value: types.FunctionType, name: str) -> Any:
        fresh = self.world.is_fresh(value)
        if name in _OF_FUNCTIONS and name not in ("__dict__", "__wrapped__"):
            found = getattr(value, name)
            if not fresh:
                self.world.guards.value(value, name, found, f"{value.__name__}.{name}")
            return found
        if name == "__get__":
            return value.__get__
        if not fresh:
            return self.world.entry(value.__dict__, name, f"{value.__name__}.{name}")
        return value.__dict__.get(name, ABSENT)

    def native(self, read: Any) -> Any:
        """Runs native code; what it raises is the function's exception."""
        raise NotImplementedError

    def on_tensors(self, run: Any, *inputs: Any) -> Any:
        """Runs native code on tensors; an error ends the capture."""
        raise NotImplementedError

    # writing -------------------------------------------------------------------------------------

    def store_attribute(self, value: Any, name: str, new: Any) -> None:
        """``setattr``, or ``delattr`` where ``new`` is ``ABSENT``."""
        cls = type(value)
        if isinstance(value, (type, types.ModuleType)) and not self.world.is_fresh(value):
            raise Decline(f"it sets {name} of {value.__name__}")
        if isinstance(value, Tensor):
            return self._store_to_tensor(value, name, new)
        method = "__delattr__" if new is ABSENT else "__setattr__"
        setter = self.world.class_attribute(cls, method)
        if isinstance(setter, types.FunctionType):
            self.call(setter, [value, name] if new is ABSENT else [value, name, new], {})
            return None
        if isinstance(value, types.FunctionType) and self.world.is_fresh(value):
            setattr(value, name, new)
            return None
        if setter not in known.GENERIC_SETTERS:
            raise Decline(f"it sets the attribute {name} of a {cls.__name__}")
        return self.generic_store(value, name, new)

    def generic_store(self, value: Any, name: str, new: Any) -> None:
        """What ``object.__setattr__`` does."""
        cls = type(value)
        raw = self.world.class_attribute(cls, name)
        if raw is not ABSENT and self._is_data_descriptor(raw):
            return self._store_to_descriptor(raw, value, cls, name, new)
        own = self.world.own_dict(value)
        if own is None or name in ("__class__", "__dict__"):
            raise Decline(f"it sets the attribute {name} of a {cls.__name__}")
        if new is ABSENT:
            if self.world.entry(own, name, f"{cls.__name__}.{name}") is ABSENT:
                raise Raised(AttributeError(name))
            self.world.delete_entry(own, name)
        else:
            self.world.set_entry(own, name, new)
        return None

    def _store_to_descriptor(self, raw: Any, value: Any, cls: type, name: str, new: Any) -> None:
        if isinstance(raw, types.MemberDescriptorType):
            return self.world.set_slot(value, raw, new)
        if isinstance(raw, property):
            function = raw.fdel if new is ABSENT else raw.fset
            if function is None:
                what = "deleter" if new is ABSENT else "setter"
                raise Raised(AttributeError(f"property '{name}' of '{cls.__name__}' object has no {what}"))
            self.call(function, [value] if new is ABSENT else [value, new], {})
            return None
        setter = self.world.class_attribute(type(raw), "__delete__" if new is ABSENT else "__set__")
        if not isinstance(setter, types.FunctionType):
            raise Decline(f"it sets the attribute {name} of a {cls.__name__}")
        self.call(setter, [raw, value] if new is ABSENT else [raw, value, new], {})
        return None

    def _store_to_tensor(self, value: Tensor, name: str, new: Any) -> None:
        self.world.check_effect(f"it sets {name} of a tensor")
        inside = self.world.is_fresh(value) or _C.is_symbolic(value)
        if self.world.is_input(value) or new is ABSENT:
            raise Decline(f"it sets {name} of a tensor argument")
        if not inside and name != "grad":
            raise Decline(f"it sets {name} of a tensor outside")
        if name == "stop_gradient" and not new and value.stop_gradient:
            raise Decline("it makes a tensor require a gradient")
        if name == "stop_gradient":
            self.world.asking.pop(id(value), None)
        raw = self.world.class_attribute(type(value), name)
        if isinstance(raw, property):
            if raw.fset is None:
                raise Raised(AttributeError(f"{name} of a tensor cannot be set"))
            self.call(raw.fset, [value, new], {})
            return
        self.on_tensors(lambda: setattr(value, name, new))
