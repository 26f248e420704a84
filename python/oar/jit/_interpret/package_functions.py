"""Functions of this package that the interpreter does in its own way."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

from oar import _C
from oar._grad_mode import is_grad_enabled
from oar.amp.amp_lists import own_names
from oar.framework import unique_name
from oar.jit._interpret import asking, calls, known
from oar.jit._interpret.calls import builtin
from oar.jit._interpret.machine import Machine
from oar.jit._interpret.world import ABSENT, Decline, Restart
from oar.nn.layer.layers import Layer
from oar.optimizer.optimizer import Optimizer


@builtin(_C.outside_capture)
def _outside_capture(m: Machine, args: list, kwargs: dict) -> Any:
    """Creates a lasting object now; then the function is interpreted again."""
    if m.forked or m.raised:
        raise Decline("a lasting object is created in a branch on a tensor")
    held = [cell.cell_contents for cell in args[0].__closure__ or ()]
    if any(m.world.pending.touches(value) for value in held):
        raise Decline("it changes what a lasting object is created from")
    _C.outside_capture(args[0])
    raise Restart


@builtin(_C.make_tensor)
def _make_tensor(m: Machine, args: list, kwargs: dict) -> Any:
    what = "to_tensor"
    args = [m.world.settled(a, what) for a in args]
    # A copy of the constant: writes to it are the program's, and must not last.
    return m.on_tensors(lambda: _C.ops.assign(_C.make_tensor(*args, **kwargs)))


@builtin(_C.op)
def _op(m: Machine, args: list, kwargs: dict) -> Any:
    return m.run_pure(_C.op, args, kwargs)


@builtin(_C.call_key)
def _call_key(m: Machine, args: list, kwargs: dict) -> Any:
    raise Decline("it calls a captured function in an unusual way")


def _derivative_of(function: Any) -> Any:
    def run(m: Machine, args: list, kwargs: dict) -> Any:
        args = [m.world.settled(a, function.__name__) for a in args]
        kwargs = {k: m.world.settled(v, function.__name__) for k, v in kwargs.items()}
        asking.check_backward(m.world, "it requests gradients")
        return m.world.new_deep(m.on_tensors(lambda: function(*args, **kwargs)))

    return run


builtin(_C.backward)(_derivative_of(_C.backward))
builtin(_C.grad)(_derivative_of(_C.grad))


@builtin(_C.is_grad_enabled)
def _is_grad_enabled(m: Machine, args: list, kwargs: dict) -> Any:
    if m.in_users_code() or m.frames[-1].code.raw is is_grad_enabled.__code__:
        m.world.check_effect("it asks for the gradient mode")
    return _C.is_grad_enabled()


@builtin(_C.custom_function)
def _custom_function(m: Machine, args: list, kwargs: dict) -> Any:
    inputs, forward, backward, name = args
    applied = False
    asking.check(m.world, "it calls a PyLayer")
    # A branch or loop takes the derivative into its program before anybody asks for gradients.
    later = m.trampoline(backward, is_derivative=lambda: not applied)
    made = m.on_tensors(lambda: _C.custom_function(m.world.content(inputs), m.trampoline(forward), later, name))
    applied = True
    return m.world.new_deep(made)


def _transform(function: Any) -> Any:
    """jvp, taylor or vmap: the function that it transforms is interpreted too."""

    def run(m: Machine, args: list, kwargs: dict) -> Any:
        transformed, *rest = args
        asking.check(m.world, f"it calls {function.__name__}")
        rest = [m.world.settled(a, function.__name__) for a in rest]
        return m.world.new_deep(m.on_tensors(lambda: function(m.trampoline(transformed), *rest)))

    return run


for _function in (_C.jvp, _C.taylor, _C.vmap):
    builtin(_function)(_transform(_function))


@builtin(_C.pack_saved)
def _pack_saved(m: Machine, args: list, kwargs: dict) -> Any:
    return None  # hooks do not see what programs save


def _switch_recomputed(function: Any) -> Any:
    return lambda m, args, kwargs: m.on_tensors(function)


for _function in (_C.begin_recomputed, _C.end_recomputed):
    builtin(_function)(_switch_recomputed(_function))


@builtin(_C.as_result)
def _as_result(m: Machine, args: list, kwargs: dict) -> Any:
    return m.on_tensors(lambda: _C.as_result(*args))


@builtin(inspect.isgeneratorfunction)
def _isgeneratorfunction(m: Machine, args: list, kwargs: dict) -> Any:
    function = args[0]
    if isinstance(function, types.FunctionType) and not m.world.is_fresh(function):
        m.world.guards.function(function)
    return inspect.isgeneratorfunction(function)


@builtin(functools.update_wrapper)
def _update_wrapper(m: Machine, args: list, kwargs: dict) -> Any:
    wrapper, wrapped = args[0], args[1]
    if not m.world.is_fresh(wrapper) or kwargs:
        raise Decline("it wraps a function that was created outside")
    for name in functools.WRAPPER_ASSIGNMENTS:
        found = m.find_attribute(wrapped, name)
        if found is not ABSENT:
            setattr(wrapper, name, found)
    wrapper.__wrapped__ = wrapped
    return wrapper


def _before_a_run(m: Machine, args: list, kwargs: dict) -> None:
    """The learning rate is a tensor that programs read: it is updated before every run."""
    optimizer = args[0]
    rate = optimizer.__dict__["_learning_rate"]  # no guard: it is read before every run
    if m.world.pending.touches(optimizer) or m.was_acted_on(rate) or m.world.pending.touches(rate):
        raise Decline("it changes the learning rate before a step")
    refresh = types.MethodType(Optimizer._refresh_lr, optimizer)
    if refresh not in m.before:
        m.before.append(refresh)
        _C.outside_capture(refresh)


calls._FUNCTIONS[Optimizer._refresh_lr] = _before_a_run


def _generate_name(m: Machine, args: list, kwargs: dict) -> Any:
    """The name of a layer that is created inside: the counter advances at every run, as it would without a program."""
    if m.frames[-1].code.raw is not Layer.__init__.__code__:
        raise Decline("it needs a unique name, which differs at every call")
    m.world.pending.calls.append((unique_name.generate, tuple(args), {}))
    return m.world.new(known.UniqueName())


def _own_names(m: Machine, args: list, kwargs: dict) -> Any:
    """Which ops the lists of ``auto_cast`` name: a table says it, which does not change."""
    return m.world.new(own_names(*args, **kwargs))


calls._FUNCTIONS[own_names] = _own_names


def _look_at_name(m: Machine, args: list, kwargs: dict) -> Any:
    raise Decline("it reads the name of a layer that it created, which differs at every call")


def _full_name(m: Machine, args: list, kwargs: dict) -> Any:
    if isinstance(vars(args[0]).get("_full_name"), known.UniqueName):
        _look_at_name(m, args, kwargs)
    return m.call_function(Layer.full_name, args, kwargs)  # type: ignore[arg-type]


calls._FUNCTIONS[known.UniqueName.__eq__] = _look_at_name
calls._FUNCTIONS[Layer.full_name] = _full_name
calls._FUNCTIONS[unique_name.generate] = _generate_name
calls._FUNCTIONS[unique_name.same_names] = lambda m, args, kwargs: args[0]
