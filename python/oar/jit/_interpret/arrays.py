"""NumPy: its functions of plain values and arrays are pure, but for those that write, draw or read files."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.jit._interpret.world import Decline, is_array

__all__ = ["call"]

_IMPURE = frozenset({
    "copyto", "put", "place", "putmask", "fill", "sort", "partition", "itemset", "resize", "setfield", "setflags", "byteswap",
    "tofile", "dump", "dumps", "load", "save", "savez", "savetxt", "loadtxt", "genfromtxt", "fromfile", "memmap", "empty",
    "empty_like", "frombuffer", "fromiter", "vectorize", "apply_along_axis", "apply_over_axes", "piecewise", "frompyfunc",
    "seterr", "setbufsize", "set_printoptions", "fill_diagonal", "put_along_axis", "shuffle", "nditer", "__setitem__",
    "__iadd__", "__isub__", "__imul__", "__itruediv__", "at", "asarray", "require", "fromfunction",
})


def call(machine: Any, function: Any, args: list, kwargs: dict) -> Any:
    """Calls it if its result follows from its arguments alone."""
    name = getattr(function, "__name__", type(function).__name__)
    module = getattr(function, "__module__", "") or ""
    if name in _IMPURE and not (name == "asarray" and not any(map(is_array, args))) or "random" in str(module) or "out" in kwargs:
        raise Decline(f"it calls {name} of NumPy")
    owner = getattr(function, "__self__", None)
    if owner is not None and "RandomState" in type(owner).__name__ or "Generator" in type(owner).__name__:
        raise Decline("it draws from NumPy's random numbers")
    if any(isinstance(a, Tensor) for a in [*args, *kwargs.values()]):
        raise Decline(f"NumPy's {name} reads a tensor")
    if is_array(owner):
        machine.world.settled(owner, name)
    args = [machine.world.settled(a, name, tensors=False) for a in args]
    kwargs = {k: machine.world.settled(v, name, tensors=False) for k, v in kwargs.items()}
    made = machine.native(lambda: function(*args, **kwargs))
    if not any(made is a for a in [owner, *args]):
        note(machine.world, made)
    return made


def note(world: Any, made: Any) -> None:
    """New memory is the function's own. A view of an array is not: its content is guarded when it is read."""
    if is_array(made):
        if made.base is None or world.is_fresh(made.base):
            world.new(made)
    elif isinstance(made, (tuple, list)):
        world.new_deep(made)
        for item in made:
            note(world, item)
