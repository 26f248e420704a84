"""The forms of a call that PyTorch's users write: ``x.sum(dim=1)``, ``x.reshape(2, 3)``, ``oar.add(x, y, out=z)``.

A call that fits the signature of a function never comes here. ``call`` gets the others. The names of arguments are in
one table, ``_C.spellings``; ops look them up without this module.
"""

from __future__ import annotations

import builtins
import functools

from oar import _C
from oar._C import Dim, SpelledFunction, Tensor, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_VAR_POSITIONAL, _VAR_KEYWORD = 4, 8
_OF_CREATION = ("device", "requires_grad", "pin_memory")
# Functions whose PyTorch counterpart returns something else; oar.compat has it.
_DIFFERENT = frozenset({"max", "min", "sort", "split"})
_creators: set[Any] = set()
_methods: set[Any] = set()


def spelled(function: Function) -> Function:
    """A function that takes PyTorch's names of its arguments, ``out`` and sizes one by one, beside its signature.

    A call that fits the signature costs nothing more.

    Args:
        function: the function.

    Returns:
        the function, as an object of the extension.
    """
    code = function.__code__
    named = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    keywords = None if code.co_flags & _VAR_KEYWORD else frozenset(named)
    positions = -1 if code.co_flags & _VAR_POSITIONAL else code.co_argcount
    sizes = -1 if function in _methods else _place_of_sizes(named)
    return SpelledFunction(function, keywords, positions, sizes)  # type: ignore[return-value]


def creator(function: Function) -> Function:
    """``spelled`` for a function that creates tensors: it takes ``device``, ``requires_grad`` and ``pin_memory``, too.

    Args:
        function: the function.

    Returns:
        the function, as an object of the extension.
    """
    _creators.add(function)
    return spelled(function)


def respelled(function: Function) -> Function:
    """``spelled`` for methods and constructors: names of arguments only.

    Args:
        function: the method.

    Returns:
        the method, as an object of the extension.
    """
    _methods.add(function)
    return spelled(function)


def respell_constructors(classes: Any) -> None:
    """Lets the constructors of classes take PyTorch's names of arguments.

    Args:
        classes: the classes.
    """
    for cls in classes:
        init = vars(cls).get("__init__")
        if hasattr(init, "__code__") and not isinstance(init, SpelledFunction) and _has_second_names(init.__code__.co_varnames):
            cls.__init__ = respelled(init)


@functools.lru_cache(maxsize=None)
def _has_second_names(names: tuple[str, ...]) -> bool:
    return not _MEANT.isdisjoint(names)


_MEANT = frozenset(name for meant in _C.spellings.values() for name in meant)


def keywords_of(function: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the names that a function of Python has for them.

    Args:
        function: the function.
        kwargs: the arguments by name.

    Returns:
        the arguments by the function's names.
    """
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & _VAR_KEYWORD:
        return kwargs
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    if builtins.all(keyword in names for keyword in kwargs):
        return kwargs
    return _respelled(function, _Form(names, -1, False, 0), kwargs)


def _place_of_sizes(names: tuple[str, ...]) -> int:
    for name in ("shape", "shape_or_dtype"):
        if name in names[:2]:
            return names.index(name)
    return -1


class _Form:
    """What ``call`` must know of a function."""

    def __init__(self, names: tuple[str, ...], sizes: int, creates: bool, results: int) -> None:
        self.names, self.sizes, self.creates, self.results = names, sizes, creates, results


@functools.lru_cache(maxsize=None)
def _form_of(function: Any) -> _Form:
    if not isinstance(function, _C.OpFunction):
        code = function.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        if function in _methods:
            return _Form(names, -1, False, 0)
        return _Form(names, _place_of_sizes(names), function in _creators, 1)
    parameters = function.parameters
    names = tuple(p["name"] for p in parameters)
    sizes = next((i for i, p in enumerate(parameters) if p["default"] is None and (
        p["type"] == "shape" or (p["type"] == "int" and p["list"]))), -1)
    creates = "dtype" in names and (function.__name__.endswith("_like") or not builtins.any(
        p["type"] == "Tensor" for p in parameters))
    results = 0 if builtins.any(p["written"] for p in parameters) else len(function.results)
    return _Form(names, sizes, creates, results)


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, Dim)) or (isinstance(value, Tensor) and value.ndim == 0)


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function returns for arguments that do not fit its signature, or NotImplemented if no other form fits.

    Args:
        function: a function of Python or an op.
        args: the arguments by position.
        kwargs: the others.
    """
    special = _SPECIAL.get(function.__name__)
    if special is not None:
        made = special(args, kwargs)
        if made is not NotImplemented:
            return made
    fitting = arranged(function, args, kwargs)
    if fitting is None:
        return NotImplemented
    args, kwargs, wishes = fitting
    return finished(function(*args, **kwargs), function.__name__, **wishes)


def explain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> None:
    """Raises an error that names the argument, if a call failed because one that should be a tensor is something else.

    Args:
        function: a function of Python.
        args: the arguments by position.
        kwargs: the others.
        error: why the call failed.
    """
    code, expected = function.__code__, function.__annotations__
    for name, value in {**dict(zip(code.co_varnames[:code.co_argcount], args)), **kwargs}.items():
        if expected.get(name) == "Tensor" and not isinstance(value, Tensor):
            raise _C.ArgumentTypeError(
                f"[{function.__name__}] argument '{name}' must be a tensor, not {type(value).__name__}. "
                "Use oar.to_tensor to convert it."
            ) from error


def arranged(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]] | None:
    """The arguments as the signature has them.

    Args:
        function: a function of Python or an op.
        args: the arguments by position.
        kwargs: the others.

    Returns:
        the arguments by position, the others, and those that the result is finished with; None if they do not fit either.
    """
    form = _form_of(function)
    wishes = {name: value for name, value in kwargs.items() if _is_wish(name, form)}
    rest = {name: value for name, value in kwargs.items() if name not in wishes}
    fitted, named = _sizes_together(form, args), _respelled(function, form, rest)
    if fitted is args and named.keys() == rest.keys() and not wishes:
        return None
    return fitted, named, wishes


def _is_wish(name: str, form: _Form) -> bool:
    possible = form.results > 0 if name == "out" else form.creates and name in _OF_CREATION
    return possible and name not in form.names


def _sizes_together(form: _Form, args: tuple[Any, ...]) -> tuple[Any, ...]:
    at = form.sizes
    if at < 0 or len(args) <= at + 1 or not builtins.all(_is_size(a) for a in args[at:]):
        return args
    return (*args[:at], list(args[at:]))


def _respelled(function: Any, form: _Form, kwargs: dict[str, Any]) -> dict[str, Any]:
    named = {}
    for keyword, value in kwargs.items():
        if keyword not in form.names and keyword != "name":
            if function.__name__ in _DIFFERENT and keyword in _C.spellings:
                raise TypeError(f"[{function.__name__}] there is no argument '{keyword}'. hint: PyTorch's function of this name "
                                f"is oar.compat.{function.__name__}.")
            meant = [name for name in _C.spellings.get(keyword, ()) if name in form.names]
            if meant and meant[0] in kwargs:
                raise TypeError(f"[{function.__name__}] '{keyword}' is another name of '{meant[0]}'; pass one of them.")
            keyword = meant[0] if meant else keyword
        named[keyword] = value
    return named


def written(out: Tensor | None, made: Tensor) -> Tensor:
    """Writes a result into the tensor that was passed as ``out``, which takes its shape and dtype, too.

    Args:
        out: the tensor, or None.
        made: the result.

    Returns:
        ``out``; the result if there is none.
    """
    if out is None or out is made:
        return made
    if out.stop_gradient and out.shape == made.shape and out.dtype == made.dtype:
        return ops.copy_into(out, made)
    out._become(made)
    return out


def finished(made: Any, name: str, out: Any = None, device: Any = None, requires_grad: bool | None = None,
             pin_memory: bool = False) -> Any:
    """A new tensor as PyTorch's keywords of functions that create tensors ask for.

    Args:
        made: the tensor, or several.
        name: the name of the function.
        out: a tensor to write to, or None; as many as there are results.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.
        pin_memory: for GPUs, which are not there; True is an error.

    Returns:
        the tensor.
    """
    if pin_memory:
        from oar._places import unavailable

        raise unavailable(name, "GPU to pin memory for")
    if isinstance(made, (tuple, list)):
        return made if out is None else type(made)(written(o, m) for o, m in zip(out, made, strict=True))
    if device is not None:
        made = made.to(device)
    if out is not None and name in _CREATE_IN_DTYPE and out.dtype != made.dtype:
        raise TypeError(f"[{name}] out is {out.dtype.name}, but the result is {made.dtype.name}. hint: pass dtype.")
    made = written(out, made)
    if requires_grad is not None:
        made.stop_gradient = not requires_grad
    return made


_CREATE_IN_DTYPE = frozenset({"empty", "eye", "full", "ones", "rand", "randn", "zeros"})


# ---- functions whose arguments PyTorch has in another order -----------------------------------------------------


def _in_order(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The arguments of PyTorch's function in its order; None if they are not its arguments."""
    if len(args) > len(names) or not builtins.all(k in names or k in ("input", "name") for k in kwargs):
        return None
    placed = dict(zip(names, args, strict=False))
    named = {("x" if k == "input" else k): v for k, v in kwargs.items() if k != "name"}
    if placed.keys() & named.keys() or placed.keys() | named.keys() != set(names):
        return None
    placed.update(named)
    return [placed[name] for name in names]


def _transpose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    other = {"axis0": "dim0", "axis1": "dim1"}
    found = _in_order(("x", "dim0", "dim1"), args, {other.get(k, k): v for k, v in kwargs.items()})
    return NotImplemented if found is None else ops.swapaxes(*found)


def _transpose_(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = _in_order(("x", "dim0", "dim1"), args, kwargs)
    return NotImplemented if found is None else found[0].transpose_(found[1], found[2])


def _sum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) < 3 or not isinstance(args[2], bool):
        return NotImplemented
    x, axis, keepdim, *dtype = args
    return ops.sum(x, axis=axis, keepdim=keepdim, **({"dtype": dtype[0]} if dtype else {}), **kwargs)


def _index_select(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = _in_order(("x", "dim", "index"), args, {k: v for k, v in kwargs.items() if k != "out"})
    if found is None or not isinstance(found[1], int):
        return NotImplemented
    return written(kwargs.get("out"), ops.index_select(found[0], found[2], found[1]))


def _index_add(args: tuple[Any, ...], kwargs: dict[str, Any], op: str = "index_add") -> Any:
    if len(args) == 4 and isinstance(args[2], int) and not kwargs:
        return NotImplemented  # in Paddle's order, so another argument is wrong
    rest = {k: v for k, v in kwargs.items() if k not in ("alpha", "out")}
    found = _in_order(("x", "dim", "index", "source"), args, rest)
    if found is None:
        names = ("x", "index", "axis", "value")
        found = _in_order(names, args, {{"dim": "axis", "source": "value"}.get(k, k): v for k, v in rest.items()})
        if found is None:
            return NotImplemented
        found = [found[0], found[2], found[1], found[3]]
    x, axis, index, value = found
    if not isinstance(axis, int):
        if not isinstance(index, int):
            return NotImplemented
        axis, index = index, axis
    alpha = kwargs.get("alpha", 1)
    made = getattr(ops, op)(x, index, axis, value if alpha == 1 else value * alpha)
    return written(kwargs.get("out"), made)


def _index_add_(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _index_add(args, kwargs, "index_add_")


def _gather(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = _in_order(("x", "dim", "index"), args, {k: v for k, v in kwargs.items() if k != "out"})
    if found is None or not isinstance(found[1], int):
        return NotImplemented
    return written(kwargs.get("out"), ops.take_along_axis(found[0], found[2], found[1], False))


def _scatter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    reduce = kwargs.get("reduce")
    rest = {("src" if k == "value" else k): v for k, v in kwargs.items() if k not in ("reduce", "out")}
    found = _in_order(("x", "dim", "index", "src"), args, rest)
    if found is None or not isinstance(found[1], int):
        return NotImplemented
    import oar

    x, axis, index, source = found
    made = oar.put_along_axis(x, index, source, axis, reduce or "assign", broadcast=False)
    return written(kwargs.get("out"), made)


def _scatter_(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = _scatter(args, kwargs)
    return made if made is NotImplemented else ops.copy_into(args[0] if args else kwargs["x"], made)


def _mean(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "dtype" not in kwargs:
        return NotImplemented
    rest = dict(kwargs)
    dtype = rest.pop("dtype")
    if not args:
        args = (rest.pop("x") if "x" in rest else rest.pop("input"),)
    return ops.mean(args[0] if dtype is None else ops.cast(args[0], dtype), *args[1:], **rest)


def _var(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "correction" not in kwargs:
        return NotImplemented
    rest = dict(kwargs)
    correction = rest.pop("correction")
    if correction in (0, 1):
        return ops.var(*args, unbiased=correction == 1, **rest)
    x: Any = args[0] if args else rest.get("x", rest.get("input"))
    spread = ops.var(*args, unbiased=False, **rest)
    count = x.size // builtins.max(spread.size, 1)
    return spread * (count / builtins.max(count - correction, 0)) if count > correction else spread * float("nan")


def _add(op: str) -> Callable[..., Any]:
    def scaled(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "alpha" not in kwargs:
            return NotImplemented
        rest = dict(kwargs)
        alpha = rest.pop("alpha")
        if len(args) > 1:
            args = (args[0], args[1] * alpha, *args[2:])
        else:
            key = "other" if "other" in rest else "y"
            rest[key] = rest[key] * alpha
        return getattr(ops, op)(*args, **rest)

    return scaled


def _divide(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "rounding_mode" not in kwargs:
        return NotImplemented
    import oar

    return oar.div(*args, **kwargs)


def _divide_(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = _divide(args, kwargs)
    return made if made is NotImplemented else ops.copy_into(args[0] if args else kwargs["x"], made)


def _bernoulli(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = dict(zip(("x", "p"), args, strict=False)) if len(args) < 3 else {}
    found.update({("x" if k == "input" else k): v for k, v in kwargs.items() if k != "name"})
    if found.keys() != {"x", "p"} or isinstance(found["p"], str):
        return NotImplemented
    return ops.bernoulli(found["x"] if found["p"] is None else ops.full_like(found["x"], found["p"]))


def _searchsorted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not kwargs.keys() & {"side", "sorter"}:
        return NotImplemented
    rest = dict(kwargs)
    side, sorter = rest.pop("side", None), rest.pop("sorter", None)
    if side not in (None, "left", "right"):
        raise ValueError(f"[searchsorted] side is {side!r}; it can be 'left' or 'right'.")
    if side == "left" and (rest.get("right") or (len(args) > 3 and args[3])):
        raise ValueError("[searchsorted] side is 'left', but right is True; pass one of them.")
    if sorter is not None:
        sequence = args[0] if args else rest.pop("sorted_sequence")
        args = (ops.take_along_axis(sequence, sorter, -1), *args[1:])
    if side == "right":
        args, rest["right"] = args[:3], True
    return ops.searchsorted(*args, **rest)


def _smooth_l1_loss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not isinstance(kwargs.get("is_huber"), bool):
        return NotImplemented
    rest = dict(kwargs)
    huber = rest.pop("is_huber")
    made = ops.smooth_l1_loss(*args, **rest)
    if huber:
        return made
    delta = args[3] if len(args) > 3 else rest.get("delta", rest.get("beta", 1.0))
    return made / delta  # PyTorch's form, whose straight line has the slope 1


def _block_diag(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) < 2 or not builtins.all(isinstance(a, Tensor) for a in args):
        return NotImplemented
    return ops.block_diag(list(args), **kwargs)


def _median(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "mode" in kwargs or not {"input", "dim"} & kwargs.keys():
        return NotImplemented
    import oar

    return oar.median(*args, **{**kwargs, "mode": "min"})  # as in PyTorch: the lower of the two in the middle


def _in_place(op: str) -> Callable[..., Any]:
    def written_over(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "inplace" not in kwargs:
            return NotImplemented
        rest = dict(kwargs)
        inplace = rest.pop("inplace")
        made = getattr(ops, op)(*args, **rest)
        return ops.copy_into(args[0] if args else rest.get("x", rest.get("input")), made) if inplace else made

    return written_over


def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = {**dict(zip(("shape", "fill_value"), args, strict=False)), **kwargs}.get("fill_value")
    if not isinstance(found, str):
        return NotImplemented
    try:
        value = float(found)
    except ValueError:
        return NotImplemented
    if len(args) > 1:
        return ops.full(args[0], value, *args[2:], **kwargs)
    return ops.full(*args, **{**kwargs, "fill_value": value})


def _concat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    # In a program of Paddle a list of tensors can be one variable.
    if not args or not isinstance(args[0], Tensor) or not _C.static_active():
        return NotImplemented
    return ops.concat([args[0]], *args[1:], **kwargs)


def _gelu(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = [*args, *(v for k, v in kwargs.items() if k == "approximate")]
    if len(found) < 2 or found[-1] not in ("tanh", "none"):
        return NotImplemented
    x = args[0] if args else kwargs.get("x", kwargs.get("input"))
    return ops.gelu(x, found[-1] == "tanh")


def _with_out(op: str, operands: int) -> Callable[..., Any]:
    """``op(x, y, out, name)``: in Paddle the result's place may stand right after the operands."""

    def placed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rest = args[operands:]
        if not 1 <= len(rest) <= 2 or kwargs.keys() & {"out"} or not (rest[0] is None or isinstance(rest[0], Tensor)):
            return NotImplemented
        return written(rest[0], getattr(ops, op)(*args[:operands], **{k: v for k, v in kwargs.items() if k != "name"}))

    return placed


_WITH_OUT = {
    "bitwise_and": 2, "bitwise_left_shift": 3, "bitwise_not": 1, "bitwise_or": 2, "bitwise_right_shift": 3, "bitwise_xor": 2,
    "logical_and": 2, "logical_not": 1, "logical_or": 2, "logical_xor": 2, "prod": 4,
}  # fmt: skip
_SPECIAL: dict[str, Callable[..., Any]] = {
    **{name: _with_out(name, operands) for name, operands in _WITH_OUT.items()},
    "concat": _concat,
    "add": _add("add"), "add_": _add("add_"), "bernoulli": _bernoulli, "block_diag": _block_diag, "divide": _divide,
    "divide_": _divide_, "searchsorted": _searchsorted, "smooth_l1_loss": _smooth_l1_loss, "dropout": _in_place("dropout"), "full": _full, "gather": _gather, "index_add": _index_add,
    "index_add_": _index_add_, "index_select": _index_select, "mean": _mean, "median": _median, "gelu": _gelu, "scatter": _scatter,
    "scatter_": _scatter_, "silu": _in_place("silu"), "subtract": _add("subtract"), "subtract_": _add("subtract_"), "sum": _sum,
    "transpose": _transpose, "transpose_": _transpose_, "var": _var,
}  # fmt: skip


def has_special_form(function: Any) -> bool:
    """Whether PyTorch's function of the name has other arguments, so that ``arranged`` is not enough.

    Args:
        function: the function.
    """
    return function.__name__ in _SPECIAL


_STRICT = ("gather", "index_add", "index_add_", "max", "min", "scatter", "scatter_", "sort")
for _name in _STRICT:  # there `dim` is no second name of `axis`
    getattr(ops, _name).strict = True
