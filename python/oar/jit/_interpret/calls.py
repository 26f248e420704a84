"""Calls: Python functions are interpreted, known native code is run, everything else is declined."""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from oar import _C, _spelling
from oar._C import Tensor
from oar.framework import host_actions
from oar.jit._interpret import asking, grown, known
from oar.jit._interpret.attributes import Attributes
from oar.jit._interpret.iteration import Iteration
from oar.jit._interpret.methods import Methods
from oar.jit._interpret.world import ABSENT, Decline, Raised
from oar.nn import _path
from oar.nn.layer.layers import Layer

__all__ = ["Calls"]

_METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType)


def name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__


class Calls(Methods, Iteration, Attributes):
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
        if kind is _C.SpelledFunction:
            return self._call_spelled(function, args, kwargs)
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
            if not self.in_package():
                raise Decline("it follows a weak reference")  # a capture keeps alive what it refers to
            found = function()
            if found is None:
                raise Decline("it follows a dead weak reference")
            return found
        if hasattr(kind, "dygraph_function"):
            return self._call_static(function, args, kwargs)
        if is_numpy_function(function):
            return self._call_numpy(function, args, kwargs)
        called = self.world.class_attribute(kind, "__call__")
        if isinstance(called, (types.FunctionType, _C.OpFunction)):
            self.world.own_dict(function)
            if isinstance(function, Layer):
                with _path.inside(function):
                    return self.call(called, [function, *args], kwargs)
            return self.call(called, [function, *args], kwargs)
        raise Decline(f"it calls {name_of(function)}")

    def call_function(self, function: types.FunctionType, args: list, kwargs: dict) -> Any:
        raise NotImplementedError

    def _call_spelled(self, function: Any, args: list, kwargs: dict) -> Any:
        if not function.fits(tuple(args), tuple(kwargs)):
            if _spelling.has_special_form(function):
                raise Decline(f"it calls {name_of(function)} in another form")
            fitting = _spelling.arranged(function.__wrapped__, tuple(args), kwargs)
            if fitting is not None:
                args, kwargs, wishes = list(fitting[0]), fitting[1], fitting[2]
                if wishes:
                    raise Decline(f"it calls {name_of(function)} with {', '.join(wishes)}")
        return self.call(function.__wrapped__, args, kwargs)

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
        """Runs native code on tensors. An error may come from symbolic tensors only, so the function must not catch it."""
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
        """Whether the current instruction is in the user's code."""
        raise NotImplementedError

    def in_package(self) -> bool:
        """Whether it is in code of this package."""
        raise NotImplementedError

    def is_foreign(self, error: BaseException) -> bool:
        """Raised by Python code that is not interpreted: the handler of a signal."""
        raise NotImplementedError

    def _call_op(self, function: Any, args: list, kwargs: dict) -> Any:
        what = name_of(function)
        if what in ("stack", "concat") and args and grown.is_grown(self.world, args[0]):
            return grown.joined(self, what, args[0], *args[1:], **kwargs)
        if what.endswith("_") or what == "copy_into":
            self.world.check_write(args[0] if args else None)
        if "out" in kwargs:
            self.world.check_write(kwargs["out"])
        if what in known.random_ops():
            self.world.check_effect("it draws random numbers")
        args = [self.world.settled(a, what) for a in args]
        kwargs = {k: self.world.settled(v, what) for k, v in kwargs.items()}
        return self.world.new_deep(self.on_tensors(lambda: function(*args, **kwargs), args, kwargs))

    def run_pure(self, function: Any, args: list, kwargs: dict, tensors: bool = False) -> Any:
        what = name_of(function)
        args = [self.world.settled(a, what, tensors) for a in args]
        kwargs = {k: self.world.settled(v, what, tensors) for k, v in kwargs.items()}
        if not tensors:
            return self.world.new_deep(self.native(lambda: function(*args, **kwargs)), (args, kwargs))
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
            if args and self.world.has_python_method(type(args[0]), method):
                return self.call(self.world.class_attribute(type(args[0]), method), args, kwargs)
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

    def trampoline(self, function: Any, is_derivative: Callable[[], bool] = lambda: False) -> Any:
        """For native code: interprets the function when it is called, while the capture lasts."""
        def run(*args: Any) -> Any:
            later = self.has_returned or is_derivative()
            try:
                with self.world.derivative() if later else contextlib.nullcontext():
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
                raise Decline(f"it creates a {cls.__name__}")
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
        self.world.check_class(cls)
        if self.world.class_attribute(cls, "__del__") is not ABSENT:
            raise Decline(f"it creates a {cls.__name__}, whose __del__ is called when it is freed")
        if maker is object.__new__:
            python_init = self.world.has_python_method(cls, "__init__")
            if (args or kwargs) and not python_init:
                raise Raised(TypeError(f"{cls.__name__}() takes no arguments"))
            return self._noted(self.native(lambda: object.__new__(cls)))
        if issubclass(cls, BaseException):
            return self._noted(self.native(lambda: maker(cls, *args, **kwargs)))
        if issubclass(cls, known.CONTAINER_TYPES) and maker in (list.__new__, dict.__new__, set.__new__):
            return self._noted(self.native(lambda: maker(cls)))
        if issubclass(cls, tuple) and maker is tuple.__new__:
            return self._tuple_of(cls, args)
        raise Decline(f"it creates a {cls.__name__}")

    def _noted(self, made: Any) -> Any:
        self.world.new(made)
        own = getattr(made, "__dict__", None)
        if isinstance(own, dict):
            self.world.new(own)
        return made

    def _tuple_of(self, cls: type, args: list) -> Any:
        items = list(self.iterate(args[0])) if args else []
        return tuple.__new__(cls, items)


def is_numpy_function(function: Any) -> bool:
    """Whether it belongs to NumPy."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return isinstance(module, str) and module.partition(".")[0] == "numpy"


def native_home(owner: Any, name: str) -> type:
    """The class that defines a native method; classes of the user may have another one under the same name."""
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
    """An action on the host, after the run. What it changes must not be read afterwards."""
    action, owner = args
    for cell in action.__closure__ or ():
        if _holds_tensor(cell.cell_contents):
            raise Decline(f"a step of a {type(owner).__name__} reads a tensor")
    machine.defer(action, owner)
    return True


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_holds_tensor, value))
    if isinstance(value, dict):
        return any(map(_holds_tensor, value.values()))
    return isinstance(value, Tensor)


_FUNCTIONS[host_actions.defer] = host_action
