"""Python code as part of a program: it is called when the program runs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor, ops
from oar._lazy import np
from oar.static.nn.maker import static_only

__all__ = ["Assert", "Print", "py_func", "static_pylayer"]

_numbers = itertools.count()
# Such a call is never removed, doubled or merged with another: it may have effects. And it runs
# as it is, at the sizes of the run.
_TRAITS = _C.trait_bits()["random"] | _C.trait_bits()["data_dependent"]


def _listed(value: Any) -> list[Tensor]:
    return [] if value is None else [value] if isinstance(value, Tensor) else list(value)


def _sizes(variable: Tensor, like: Sequence[Tensor]) -> list[Any]:
    """Open sizes of a result are those of the first operand along the same axis."""
    source = list(like[0].shape) if like else []
    return [
        source[axis] if not isinstance(size, int) and axis < len(source) else size
        for axis, size in enumerate(variable.shape)
    ]


def _inference(operands: list[Tensor], shapes: list[list[Any]], dtypes: list[Any]) -> Callable:
    """The shapes, with open sizes read from the operands of a call: in a program of known sizes they are known."""
    places = [(number, axis, size) for number, x in enumerate(operands) for axis, size in enumerate(x.shape)
              if not isinstance(size, int)]

    def size_in(x: list[Tensor], size: Any) -> Any:
        if not isinstance(size, int):
            for number, axis, open_size in places:
                if str(open_size) == str(size):
                    return x[number].shape[axis]
        return size

    return lambda x: [([size_in(x, size) for size in shape], dtype) for shape, dtype in zip(shapes, dtypes)]


def _host_op(function: Callable, operands: list[Tensor], shapes: list[list[Any]], dtypes: list[Any],
             vjp: Callable | None = None) -> list[Tensor]:
    """Calls ``function(*tensors)`` at every run; its results have these shapes and dtypes."""
    name = f"host_call_{next(_numbers)}"
    results = ", ".join(f"Tensor out{i}" for i in range(len(shapes)))
    schema = f"{name}(Tensor[] x) -> {'Tensor' if len(shapes) == 1 else f'({results})'}"

    def compute(x: list[Tensor]) -> list[Tensor]:
        made = function(*x)
        listed = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(listed) != len(dtypes):
            raise ValueError(f"[py_func] the function returned {len(listed)} results; {len(dtypes)} are expected.")
        return [r if isinstance(r, Tensor) else oar.to_tensor(np.asarray(r), d) for r, d in zip(listed, dtypes)]

    def refuse(*_: Any) -> Any:
        raise RuntimeError("[py_func] a gradient is requested, but there is no backward function for it.")

    # A rule in any case: an op without one is expanded into its parts, and Python code has none.
    op = _C.register_op(schema, "Python code called at every run.", compute, _inference(operands, shapes, dtypes),
                        vjp or refuse, "x out" if vjp else "", None, None,
                        _TRAITS)
    made = op(operands)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def py_func(func: Callable, x: Any, out: Any, backward_func: Callable | None = None,
            skip_vars_in_backward_input: Any = None) -> Any:
    """Call a Python function at every run.

    Args:
        func: takes the values of ``x``, gives those of ``out``: arrays or tensors.
        x: a variable or several.
        out: variables for the results, for example from ``create_var``; they give shapes and dtypes.
        backward_func: takes the values of ``x``, of ``out`` and the gradients of ``out``; gives the gradients of ``x``.
        skip_vars_in_backward_input: variables that ``backward_func`` does not take.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = main.global_block().create_var(name='y', dtype='float32', shape=[-1, 3])
        ...     y = oar.static.py_func(lambda rows: np.asarray(rows) * 2, x, y)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    static_only("py_func")
    operands, results = _listed(x), _listed(out)
    skipped = {id(v) for v in _listed(skip_vars_in_backward_input)}
    shapes, dtypes = [_sizes(v, operands) for v in results], [v.dtype for v in results]

    def without_results(*values: Tensor) -> Tensor:
        func(*values)
        return oar.zeros([1])

    def pull(x: list[Tensor], outputs: list[Tensor], cotangents: list[Tensor]) -> list[Any]:
        kept = [v for v, o in zip(x, operands) if id(o) not in skipped]
        kept += [v for v, o in zip(outputs, results) if id(o) not in skipped]
        wide = [list(v.shape) for v in x]
        assert backward_func is not None
        return _host_op(backward_func, [*kept, *cotangents], wide, [v.dtype for v in x])

    if not results:
        _host_op(without_results, operands, [[1]], ["float32"])
        return None
    made = _host_op(func, operands, shapes, dtypes, pull if backward_func else None)
    for variable, value in zip(results, made):
        if list(variable.shape) == list(value.shape):
            ops.copy_into(variable, value)
        else:
            variable._become(value)
    return out


def static_pylayer(forward_fn: Callable, inputs: Sequence[Tensor], backward_fn: Callable | None = None,
                   name: str | None = None) -> Any:
    """The results of ``forward_fn``; ``backward_fn`` computes the gradients of the inputs from those of the results.

    Args:
        forward_fn: the function.
        inputs: the variables that forward_fn takes.
        backward_fn: computes gradients of the inputs from those of the results.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.static_pylayer(lambda v: v * 2, [x], lambda grad: grad * 2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    static_only("static_pylayer")
    if not callable(forward_fn):
        raise ValueError(f"[static_pylayer] forward_fn should be a function, but received {type(forward_fn).__name__}.")
    shape: list[Any] = []

    def forward(values: list[Tensor]) -> list[Tensor]:
        made = forward_fn(*values)
        shape.append(made)
        return [v for v in _listed(made) if v is not None]

    def backward(cotangents: list[Tensor]) -> list[Any]:
        if backward_fn is None:
            raise ValueError("[static_pylayer] a gradient is requested, but there is no backward_fn.")
        return _listed(backward_fn(*cotangents))

    made = _C.custom_function(list(inputs), forward, backward, name or "static_pylayer")
    return None if shape[0] is None else made[0] if isinstance(shape[0], Tensor) else type(shape[0])(made)


def Print(  # noqa: N802
    input: Tensor,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Tensor:
    """The same variable, shown on the error stream at every run.

    Args:
        first_n: at that many runs only; always when negative.
        message: shown in front.
        summarize: that many elements; all when negative.
        print_phase: 'forward', 'backward' (its gradient) or 'both'.
        input: the variable.
        print_tensor_name: whether to show the name.
        print_tensor_type: whether to show the dtype.
        print_tensor_shape: whether to show the shape.
        print_tensor_layout: whether to show the layout.
        print_tensor_lod: whether to show the lengths of sequences.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.Print(x * 2, message='y')  # shown on the error stream
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    static_only("Print")
    if print_phase not in ("forward", "backward", "both"):
        raise ValueError(f"[Print] print_phase is {print_phase!r}; it can be 'forward', 'backward' or 'both'.")
    name, left = input.name, {"forward": first_n, "backward": first_n}

    def shown(phase: str) -> Callable[[Tensor], Tensor]:
        def show(value: Tensor) -> Tensor:
            if left[phase] != 0 and print_phase in (phase, "both"):
                left[phase] -= 1
                lines = [message] if message else []
                lines += [f"Variable: {name}{'@GRAD' if phase == 'backward' else ''}"] if print_tensor_name else []
                lines += [f"  - shape: {list(value.shape)}"] if print_tensor_shape else []
                lines += [f"  - dtype: {value.dtype.name}"] if print_tensor_type else []
                flat = value.numpy().ravel()
                lines.append(f"  - data: {flat[: summarize if summarize >= 0 else None].tolist()}")
                sys.stderr.write("\n".join(lines) + "\n")
            return value.clone()

        return show

    def pull(x: list[Tensor], outputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor]:
        return _host_op(shown("backward"), cotangents, [list(cotangents[0].shape)], [cotangents[0].dtype])

    return _host_op(shown("forward"), [input], [list(input.shape)], [input.dtype], pull)[0]


def Assert(cond: Tensor, data: Sequence[Tensor] | None = None, summarize: int = 20, name: str | None = None) -> None:  # noqa: N802
    """An error at every run in which ``cond`` is false, which shows ``data``.

    Args:
        cond: a bool tensor of one element.
        data: the tensors to show.
        summarize: how many elements to show.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     oar.static.nn.control_flow.Assert((x > 0).all(), [x])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"[Assert] cond should be a tensor, but received {type(cond).__name__}.")
    if cond.size != 1:
        raise ValueError(f"[Assert] cond should have one element, but has shape {cond.shape}. Reduce it with all().")
    listed = _listed(data)
    names = [v.name for v in listed]

    def check(value: Tensor, *shown: Tensor) -> Tensor:
        if not bool(value):
            most = summarize if summarize >= 0 else None
            parts = [f"{n} = {v.numpy().ravel()[:most].tolist()}" for n, v in zip(names, shown)]
            raise ValueError(f"[Assert] {name or 'a condition'} does not hold. {'; '.join(parts)}".rstrip())
        return value

    if oar.in_dynamic_mode():
        check(cond, *listed)
    else:
        _host_op(check, [cond, *listed], [list(cond.shape)], [cond.dtype])
