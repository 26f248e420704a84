"""Branches and loops that are captured whole.

Eagerly the functions are simply called. Inside a capture, each becomes a region of one instruction, so that the
program chooses by the values of a run. A function may be called more than once for that: until it is known
which sizes change, and once more for inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.framework.unique_name import same_names
from oar.static.nn.host import Assert, Print

__all__ = ["Assert", "Print", "case", "cond", "scan", "switch_case", "while_loop"]

_NUMBERS = (bool, int, float)


class _Leaf:
    """The position of a tensor in the result of a branch, and the number that was there, if any."""

    __slots__ = ("index", "number")

    def __init__(self, index: int, number: Any = None) -> None:
        self.index, self.number = index, number


def _take_apart(value: Any, tensors: list[Tensor]) -> Any:
    """The structure with leaves in the places of tensors and numbers, which are appended to ``tensors``."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Leaf(len(tensors) - 1)
    if isinstance(value, _NUMBERS):
        tensors.append(oar.to_tensor(value))
        return _Leaf(len(tensors) - 1, value)
    if isinstance(value, dict):
        return {key: _take_apart(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _like(value, [_take_apart(item, tensors) for item in value])
    return value


def _like(value: Any, items: list) -> Any:
    kind = type(value)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def _join(shapes: list[Any], made: list[Tensor], where: str) -> Any:
    """One result from the structures that all branches returned, with the tensors of the call.

    Of a loop: a variable before and after the body.
    """
    first = shapes[0]
    if any(type(shape) is not type(first) for shape in shapes):
        if where in ("while_loop", "scan"):
            raise ValueError(f"[{where}] a variable is {_describe(first)} and becomes {_describe(shapes[1])}.")
        raise ValueError(f"[{where}] the branches return {' and '.join(_describe(s) for s in shapes)}.")
    if isinstance(first, _Leaf):
        number = first.number
        if number is not None and all(type(s.number) is type(number) and s.number == number for s in shapes):
            return number
        return made[first.index]
    if isinstance(first, dict):
        if any(list(shape) != list(first) for shape in shapes):
            raise ValueError(f"[{where}] the branches return dictionaries with different keys.")
        return {key: _join([shape[key] for shape in shapes], made, where) for key in first}
    if isinstance(first, (list, tuple)):
        if any(len(shape) != len(first) for shape in shapes):
            counts = " and ".join(str(len(shape)) for shape in shapes)
            raise ValueError(f"[{where}] the branches return sequences of {counts} items.")
        return _like(first, [_join(list(items), made, where) for items in zip(*shapes)])
    if any(shape != first for shape in shapes):
        raise ValueError(f"[{where}] the branches return {' and '.join(_describe(s) for s in shapes)}.")
    return first


def _describe(shape: Any) -> str:
    return "a tensor" if isinstance(shape, _Leaf) else "None" if shape is None else f"a {type(shape).__name__}"


def _captured(where: str, functions: list[Callable], call: Callable[[list[Callable]], list[Tensor]]) -> Any:
    shapes: list[Any] = [None] * len(functions)

    def region(i: int, function: Callable) -> Callable[[], list[Tensor]]:
        def run() -> list[Tensor]:
            tensors: list[Tensor] = []
            shapes[i] = _take_apart(function(), tensors)
            if i == len(functions) - 1:
                _join(shapes, tensors, where)  # a difference in structure is reported before one in counts
            return tensors

        return same_names(run)

    made = call([region(i, function) for i, function in enumerate(functions)])
    return _join(shapes, made, where)


def _nothing() -> None:
    return None


def _check_callable(function: Any, name: str, where: str) -> None:
    if not callable(function):
        raise TypeError(f"[{where}] {name} must be callable, not {type(function).__name__}.")


def _check_one(value: Any, name: str, where: str, error: type[Exception] = ValueError) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"[{where}] {name} must be a Tensor, not {type(value).__name__}.")
    count = 1
    for size in value.shape:
        count = count * size
    if count != 1:
        raise error(f"[{where}] {name} must have one element; its shape is {list(value.shape)}.")


def cond(
    pred: Tensor,
    true_fn: Callable | None = None,
    false_fn: Callable | None = None,
    name: str | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """The result of ``true_fn()`` if ``pred`` is true, otherwise that of ``false_fn()``.

    In a capture both become part of the program; they must return the same structure of tensors, equal in dtype
    and number of axes. Tensors outside that one of them writes are written by the run that takes it.

    Args:
        pred: a bool, or a bool tensor of one element.
        true_fn: the function that is called where pred is true.
        false_fn: the function that is called where pred is false.
        return_names: accepted for compatibility.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor(3.0, stop_gradient=False)
        >>> y = oar.static.nn.cond(x > 0, lambda: x * 2, lambda: -x)
        >>> y.item()
        6.0
    """
    _check_one(pred, "pred", "cond")
    for function, label in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if function is not None:
            _check_callable(function, label, "cond")
    if not _C.is_capturing():
        chosen = true_fn if _C.choice_of(pred) else false_fn
        return None if chosen is None else chosen()
    functions = [false_fn or _nothing, true_fn or _nothing]
    return _captured("cond", functions, lambda regions: _C.cond(pred, regions[1], regions[0]))


def case(pred_fn_pairs: Sequence[tuple[Tensor, Callable]], default: Callable | None = None, name: str | None = None):
    """The result of the function of the first true predicate; of ``default()`` or of the last function if none is true.

    Args:
        pred_fn_pairs: ``(predicate, function)`` pairs.
        default: the function that is called if none fits.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor(3.0)
        >>> oar.static.nn.case([(x < 0, lambda: -x), (x < 5, lambda: x * 2)], default=lambda: x).item()
        6.0
    """
    if not isinstance(pred_fn_pairs, (list, tuple)):
        raise TypeError(f"[case] pred_fn_pairs must be a list or tuple, not {type(pred_fn_pairs).__name__}.")
    if not pred_fn_pairs:
        raise ValueError("[case] pred_fn_pairs is empty.")
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"[case] pred_fn_pairs must consist of tuples (predicate, function), not {pair!r}.")
        _check_one(pair[0], "the predicate", "case")
        _check_callable(pair[1], "the function", "case")
    if default is None:
        *pred_fn_pairs, (_, default) = pred_fn_pairs
    _check_callable(default, "default", "case")
    chosen = default
    for pred, function in reversed(pred_fn_pairs):
        chosen = _either(pred, function, chosen)
    return chosen()


def _either(pred: Tensor, function: Callable, otherwise: Callable) -> Callable[[], Any]:
    return lambda: cond(pred, function, otherwise)


def switch_case(branch_index: Tensor, branch_fns: Any, default: Callable | None = None, name: str | None = None) -> Any:
    """The result of the function with the number ``branch_index``, or of ``default()`` if there is none.

    ``branch_fns`` is a dictionary, a list of pairs or a list of functions. Without ``default`` the function with the
    largest index takes its place.

    Args:
        branch_index: which branch, an integer tensor.
        branch_fns: the functions: a dict by number, a list, or ``(number, function)`` pairs.
        default: the function that is called if none fits.

    Examples:
        >>> import oar
        >>> oar.static.nn.switch_case(oar.to_tensor(1), {0: lambda: oar.zeros([2]), 1: lambda: oar.ones([2])})
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 1.])
    """
    _check_one(branch_index, "branch_index", "switch_case")
    if branch_index.dtype not in (oar.uint8, oar.int32, oar.int64):
        raise TypeError(f"[switch_case] branch_index must be uint8, int32 or int64, not {branch_index.dtype}.")
    functions = _by_index(branch_fns)
    if default is None:
        default = functions[max(functions)]
    _check_callable(default, "default", "switch_case")
    keys = sorted(functions)
    if not _C.is_capturing():
        return functions.get(_C.choice_of(branch_index), default)()
    place = branch_index
    if keys != list(range(len(keys))):
        place = oar.full_like(branch_index, len(keys), dtype="int64")
        for i, key in enumerate(keys):
            place = oar.where(branch_index == key, oar.full_like(place, i), place)
    branches = [functions[key] for key in keys] + [default]
    return _captured("switch_case", branches, lambda regions: _C.switch_case(place, regions))


def _by_index(branch_fns: Any) -> dict[int, Callable]:
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, (list, tuple)):
        raise TypeError(f"[switch_case] branch_fns must be a dict, list or tuple, not {type(branch_fns).__name__}.")
    functions: dict[int, Callable] = {}
    for i, entry in enumerate(branch_fns):
        key, function = entry if isinstance(entry, tuple) and len(entry) == 2 else (i, entry)
        if not isinstance(key, int):
            raise TypeError(f"[switch_case] the index of a branch must be an int, not {type(key).__name__}.")
        if key in functions:
            raise ValueError(f"[switch_case] the index {key} is there twice.")
        _check_callable(function, f"the function of branch {key}", "switch_case")
        functions[key] = function
    if not functions:
        raise ValueError("[switch_case] there is no branch.")
    return functions


def while_loop(cond: Callable, body: Callable, loop_vars: Sequence, is_test: bool = False, name: str | None = None):
    """The variables after as many calls of ``body(*loop_vars)`` as ``cond(*loop_vars)`` allows.

    In a capture the variables keep their dtypes and numbers of axes from round to round; sizes may change.

    Args:
        cond: a function of the variables that returns whether to continue.
        body: a function of the variables that returns their next values.
        loop_vars: the variables to start with.
        is_test: whether to use the running statistics.

    Examples:
        >>> import oar
        >>> i, total = oar.to_tensor(0), oar.to_tensor(0)
        >>> i, total = oar.static.nn.while_loop(lambda i, total: i < 4, lambda i, total: (i + 1, total + i), [i, total])
        >>> total.item()
        6
    """
    _check_callable(cond, "cond", "while_loop")
    _check_callable(body, "body", "while_loop")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"[while_loop] loop_vars must be a list or tuple, not {type(loop_vars).__name__}.")
    if not loop_vars:
        raise ValueError("[while_loop] loop_vars is empty.")
    if not _C.is_capturing():
        return _eager_loop(cond, body, loop_vars)
    variables: list[Tensor] = []
    shape = _take_apart(list(loop_vars), variables)

    def test(given: list[Tensor]) -> list[Tensor]:
        answer = cond(*_fill(shape, given))
        _check_one(answer, "the result of cond", "while_loop", TypeError)
        return [answer]

    def step(given: list[Tensor]) -> list[Tensor]:
        tensors: list[Tensor] = []
        made = _as_list(body(*_fill(shape, given)), len(loop_vars))
        _join([shape, _take_apart(made, tensors)], given, "while_loop")
        return tensors

    return _fill(shape, _C.while_loop(same_names(test), same_names(step), variables))


def _eager_loop(cond: Callable, body: Callable, loop_vars: Sequence) -> Any:
    answer = cond(*loop_vars)
    _check_one(answer, "the result of cond", "while_loop", TypeError)
    while _C.choice_of(answer):
        loop_vars = _as_list(body(*loop_vars), len(loop_vars))
        answer = cond(*loop_vars)
    return loop_vars


def _as_list(made: Any, count: int) -> Sequence:
    made = made if isinstance(made, (list, tuple)) else [made]
    if len(made) != count:
        raise ValueError(f"[while_loop] body returns {len(made)} values for {count} variables.")
    return list(made)


def _fill(shape: Any, tensors: list[Tensor]) -> Any:
    if isinstance(shape, _Leaf):
        return tensors[shape.index]
    if isinstance(shape, dict):
        return {key: _fill(item, tensors) for key, item in shape.items()}
    if isinstance(shape, (list, tuple)):
        return _like(shape, [_fill(item, tensors) for item in shape])
    return shape


def scan(body: Callable, carried: Any, sequences: Any, reverse: bool = False) -> tuple[Any, Any]:
    """Goes over the rows of ``sequences``: ``carried, row = body(carried, rows)`` for each of them.

    Gives back what is carried in the end, and the rows stacked. Both arguments may be nested structures of tensors.

    Args:
        body: a function of the carried values and of one row of each sequence.
        carried: the values to start with.
        sequences: the tensors to go over, row by row.
        reverse: whether to start with the last row.

    Examples:
        >>> import oar
        >>> from oar.static.nn.control_flow import scan
        >>> def step(carried, rows):
        ...     total = carried[0] + rows[0]
        ...     return [total], [total]
        ...
        >>> carried, sums = scan(step, [oar.to_tensor(0.0)], [oar.to_tensor([1.0, 2.0, 3.0])])
        >>> sums[0]
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 3., 6.])
    """
    _check_callable(body, "body", "scan")
    given: list[Tensor] = []
    carried_shape = _take_apart(carried, given)
    count = len(given)
    rows: list[Tensor] = []
    rows_shape = _take_apart(sequences, rows)
    result_shape: list[Any] = []

    def step(tensors: list[Tensor]) -> list[Tensor]:
        made = body(_fill(carried_shape, tensors[:count]), _fill(rows_shape, tensors[count:]))
        if not isinstance(made, tuple) or len(made) != 2:
            raise ValueError("[scan] body must return a tuple (carried, row).")
        carried_now: list[Tensor] = []
        _join([carried_shape, _take_apart(made[0], carried_now)], tensors, "scan")
        results: list[Tensor] = []
        result_shape[:] = [_take_apart(made[1], results)]
        return carried_now + results

    made = _C.scan(same_names(step) if _C.is_capturing() else step, given, rows, reverse)
    return _fill(carried_shape, made[:count]), _fill(result_shape[0], made[count:])
