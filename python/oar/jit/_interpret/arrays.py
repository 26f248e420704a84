"""NumPy: its functions of plain values and arrays are pure, but for those that write, draw or read files."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.jit._interpret.world import Decline, is_array

__all__ = ["call"]

# Functions whose results follow from their arguments. Universal functions do too, but for ``out``.
_FUNCTIONS = frozenset("""
all allclose amax amin any arange argmax argmin argsort around array array_equal array_split atleast_1d atleast_2d
average broadcast_to clip column_stack concatenate convolve copy cross cumprod cumsum diag diff dot einsum expand_dims
eye flip fliplr flipud full full_like hstack identity inner interp isclose isscalar kron linspace logspace matmul max
mean median meshgrid min moveaxis nanmax nanmean nanmin nansum ndim nonzero ones ones_like outer pad percentile prod
ptp quantile ravel repeat reshape result_type roll rot90 round searchsorted shape size sort split squeeze stack std sum
swapaxes take tensordot tile trace transpose tri tril triu unique var vstack where zeros zeros_like
""".split())
_METHODS = frozenset("""
all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot flatten item max mean min nonzero prod ptp
ravel repeat reshape round squeeze std sum swapaxes take tobytes tolist trace transpose var __getitem__
""".split())


def _is_known(function: Any, name: str, args: list) -> bool:
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    if is_array(getattr(function, "__self__", None)):
        return name in _METHODS
    if type(function).__name__ == "ufunc" and module.partition(".")[0] == "numpy":
        return True
    if isinstance(function, type):
        return name not in ("datetime64", "timedelta64", "memmap") and hasattr(function, "dtype")
    if name == "asarray" and not any(map(is_array, args)):
        return True
    return name in _FUNCTIONS and "random" not in module


def _writes(function: Any, name: str, args: list) -> bool:
    """Whether one of the arguments may be the array that takes the result: it comes after those that are read."""
    read = getattr(function, "nin", 1 if is_array(getattr(function, "__self__", None)) else 2)
    return name not in ("where", "clip", "interp", "pad") and any(map(is_array, args[read:]))


def call(machine: Any, function: Any, args: list, kwargs: dict) -> Any:
    """Calls it if its result follows from its arguments alone."""
    name = getattr(function, "__name__", type(function).__name__)
    if not _is_known(function, name, args) or "out" in kwargs or _writes(function, name, args):
        raise Decline(f"it calls {name} of NumPy")
    owner = getattr(function, "__self__", None)
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
