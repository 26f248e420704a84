"""Layers on sequences of different lengths, whose rows are concatenated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar._C import Tensor, ops
from oar.static.nn.maker import LayerMaker
from oar.static.program import default_main_program, program_of
from oar.static.sequences import divide, lengths_of, levels_of

__all__ = [
    "sequence_conv",
    "sequence_expand",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pool",
    "sequence_softmax",
]

_NO_ROW = 2**62


def _checked(op: str, argument: str, x: Tensor, dtypes: tuple[str, ...] = ("float32", "float64")) -> Tensor:
    """The lengths of x, which has one of these dtypes."""
    lengths = lengths_of(op, argument, x)
    if x.dtype.name not in dtypes:
        raise TypeError(f"[{op}] {argument} should be {' or '.join(dtypes)}, but is {x.dtype.name}.")
    return lengths


def _ends(lengths: Tensor) -> Tensor:
    return ops.cumsum_along(lengths, 0)


def _counted(size: Any) -> Tensor:
    """1, 2, … up to a size that may be open."""
    return ops.cumsum_along(ops.ones([size], "int64"), 0)


def _sequence_of_each(lengths: Tensor, size: Any) -> Tensor:
    """For each of ``size`` rows the number of the sequence it is in."""
    return ops.searchsorted(_ends(lengths), _counted(size))


def _column(row: Tensor, like: Tensor) -> Tensor:
    """A number for each row, with axes to broadcast over the rest of ``like``."""
    return ops.reshape(row, [row.shape[0]] + [1] * (like.ndim - 1))


def _after(row_value: float, x: Tensor) -> Tensor:
    """x after one row of a constant: the rows are counted from 1, and 0 is the constant."""
    return ops.concat([ops.full([1, *x.shape[1:]], row_value, x.dtype), x], 0)


def _sum(x: Tensor, lengths: Tensor) -> Tensor:
    return ops.segment_rows(x, _sequence_of_each(lengths, x.shape[0]), lengths.shape[0], "sum")


def _scaled_sum(scale: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, float], Tensor]:
    def pool(x: Tensor, lengths: Tensor, pad_value: float) -> Tensor:
        total = _sum(x, lengths)
        divisor = scale(ops.cast(ops.maximum(lengths, ops.ones_like(lengths)), x.dtype))
        pad = ops.full(total.shape, pad_value, x.dtype)
        return ops.where(_column(lengths, x) > 0, total / _column(divisor, x), pad)

    return pool


def _max(x: Tensor, lengths: Tensor, pad_value: float) -> Tensor:
    # By position, so that of equal rows the first alone gets the gradient.
    place, fixed = _sequence_of_each(lengths, x.shape[0]), x.detach()
    highest = ops.gather(ops.segment_rows(fixed, place, lengths.shape[0], "max"), place, 0)
    hit = ops.logical_or(fixed == highest, ops.isnan(fixed))
    row = ops.broadcast_to(_column(_counted(x.shape[0]), x), x.shape)
    first = ops.segment_rows(ops.where(hit, row, ops.full_like(row, _NO_ROW)), place, lengths.shape[0], "min")
    return ops.take_along_axis(_after(pad_value, x), first, 0, False)


def _first(x: Tensor, lengths: Tensor, pad_value: float) -> Tensor:
    row = _ends(lengths) - lengths + 1
    return ops.gather(_after(pad_value, x), ops.where(lengths > 0, row, ops.zeros_like(row)), 0)


def _last(x: Tensor, lengths: Tensor, pad_value: float) -> Tensor:
    row = _ends(lengths)
    return ops.gather(_after(pad_value, x), ops.where(lengths > 0, row, ops.zeros_like(row)), 0)


_POOLS = {
    "average": _scaled_sum(lambda count: count),
    "first": _first,
    "last": _last,
    "max": _max,
    "sqrt": _scaled_sum(ops.sqrt),
    "sum": _scaled_sum(ops.ones_like),
}


def sequence_pool(input: Tensor, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Tensor:
    """One row for each sequence.

    Args:
        input: rows with lengths.
        pool_type: ``'sum'``, ``'average'``, ``'sqrt'`` (the sum over the root of the length), ``'max'``, ``'first'`` or
            ``'last'``.
        pad_value: what an empty sequence gives.
        is_test: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 2], lod_level=1)
        ...     y = oar.static.nn.sequence_pool(x, 'sum')
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.arange(10, dtype='float32').reshape([5, 2]), [[2, 3]], oar.CPUPlace())
        >>> executor.run(main, feed={'x': rows}, fetch_list=[y])[0].shape
        (2, 2)
        >>> oar.disable_static()
    """
    lengths = _checked("sequence_pool", "input", input)
    pool = _POOLS.get(pool_type.lower()) if isinstance(pool_type, str) else None
    if pool is None:
        raise ValueError(f"[sequence_pool] pool_type is {pool_type!r}; it can be {', '.join(map(repr, _POOLS))}.")
    return pool(input, lengths, float(pad_value))


def sequence_first_step(input: Tensor) -> Tensor:
    """The first row of each sequence; zeros for an empty one.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 2], lod_level=1)
        ...     y = oar.static.nn.sequence_first_step(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.arange(10, dtype='float32').reshape([5, 2]), [[2, 3]], oar.CPUPlace())
        >>> executor.run(main, feed={'x': rows}, fetch_list=[y])[0].shape
        (2, 2)
        >>> oar.disable_static()
    """
    return sequence_pool(input, "first")


def sequence_last_step(input: Tensor) -> Tensor:
    """The last row of each sequence; zeros for an empty one.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 2], lod_level=1)
        ...     y = oar.static.nn.sequence_last_step(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.arange(10, dtype='float32').reshape([5, 2]), [[2, 3]], oar.CPUPlace())
        >>> executor.run(main, feed={'x': rows}, fetch_list=[y])[0].shape
        (2, 2)
        >>> oar.disable_static()
    """
    return sequence_pool(input, "last")


def sequence_softmax(input: Tensor, use_cudnn: bool = False, name: str | None = None) -> Tensor:
    """The softmax within each sequence of an input of shape ``[N]`` or ``[N, 1]``.

    Args:
        input: the input.
        use_cudnn: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 1], lod_level=1)
        ...     y = oar.static.nn.sequence_softmax(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.ones([5, 1], 'float32'), [[2, 3]], oar.CPUPlace())
        >>> executor.run(main, feed={'x': rows}, fetch_list=[y])[0].flatten().tolist()
        [0.5, 0.5, 0.3333333432674408, 0.3333333432674408, 0.3333333432674408]
        >>> oar.disable_static()
    """
    lengths = _checked("sequence_softmax", "input", input)
    if input.ndim > 2 or input.ndim == 2 and str(input.shape[1]) != "1":
        raise ValueError(f"[sequence_softmax] input should have shape [N] or [N, 1], but has {list(input.shape)}.")
    place = _sequence_of_each(lengths, input.shape[0])
    highest = ops.segment_rows(input.detach(), place, lengths.shape[0], "max")
    weight = ops.exp(input - ops.gather(highest, place, 0))
    return weight / ops.gather(ops.segment_rows(weight, place, lengths.shape[0], "sum"), place, 0)


def _windows(x: Tensor, lengths: Tensor, start: int, size: int) -> Tensor:
    """For each row the ``size`` rows from ``start`` further on, side by side; zeros beyond its sequence."""
    place, row = _sequence_of_each(lengths, x.shape[0]), _counted(x.shape[0])
    ends = _ends(lengths)
    before, last = ops.gather(ends - lengths, place, 0), ops.gather(ends, place, 0)
    rows = _after(0.0, x)
    parts = []
    for offset in range(start, start + size):
        other = row + offset
        inside = ops.logical_and(other > before, other <= last)
        parts.append(ops.gather(rows, ops.where(inside, other, ops.zeros_like(other)), 0))
    return ops.concat(parts, 1)


def sequence_conv(input: Tensor, num_filters: int, filter_size: int = 3, filter_stride: int = 1, padding: bool = True,
                  padding_start: int | None = None, bias_attr: Any = None, param_attr: Any = None,
                  act: str | None = None, name: str | None = None) -> Tensor:
    """A convolution over the rows of each sequence, which keeps their number.

    Args:
        input: rows ``[N, width]`` with lengths.
        num_filters: the width of the result.
        filter_size: how many rows a filter sees.
        filter_stride: 1.
        padding: accepted for compatibility; sequences are always padded with zeros.
        padding_start: the offset of the first of these rows from the current one; ``-(filter_size // 2)`` if None.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        act: the name of an activation, or None.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 2], lod_level=1)
        ...     y = oar.static.nn.sequence_conv(x, num_filters=4)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.arange(10, dtype='float32').reshape([5, 2]), [[2, 3]], oar.CPUPlace())
        >>> executor.run(main, feed={'x': rows}, fetch_list=[y])[0].shape
        (5, 4)
        >>> oar.disable_static()
    """
    lengths = _checked("sequence_conv", "input", input)
    if input.ndim != 2:
        raise ValueError(f"[sequence_conv] input should have shape [N, width], but has {list(input.shape)}.")
    if len(levels_of(input)) != 1:
        raise ValueError(f"[sequence_conv] input has {len(levels_of(input))} levels of lengths; one is expected.")
    if filter_stride != 1 or filter_size < 1:
        raise ValueError(
            f"[sequence_conv] filter_stride is {filter_stride} and filter_size {filter_size}; the stride can be 1, the "
            f"size 1 or more."
        )
    maker = LayerMaker("sequence_conv", name, input.dtype)
    weight = maker.parameter([filter_size * input.shape[1], num_filters], param_attr)
    start = -(filter_size // 2) if padding_start is None else int(padding_start)
    made = ops.matmul(_windows(input, lengths, start, filter_size), weight, False, False)
    bias = maker.parameter([num_filters], bias_attr, is_bias=True)
    return maker.activated(made if bias is None else made + bias, act)


def sequence_expand(x: Tensor, y: Tensor, ref_level: int = -1, name: str | None = None) -> Tensor:
    """Each row of ``x``, or each sequence if it has lengths, repeated by the lengths of ``y``.

    Args:
        x: rows, with one level of lengths or none.
        y: a variable with lengths; its content does not matter.
        ref_level: which level of these lengths; -1 is the last.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 1])
        ...     y = oar.static.data('y', [None, 1], lod_level=1)
        ...     z = oar.static.nn.sequence_expand(x, y)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> rows = oar.base.create_lod_tensor(np.ones([5, 1], 'float32'), [[2, 3]], oar.CPUPlace())
        >>> feed = {'x': np.array([[1.0], [2.0]], 'float32'), 'y': rows}
        >>> executor.run(main, feed=feed, fetch_list=[z])[0].flatten().tolist()
        [1.0, 1.0, 2.0, 2.0, 2.0]
        >>> oar.disable_static()
    """
    _checked("sequence_expand", "y", y, (y.dtype.name,) if isinstance(y, Tensor) else ())
    levels = levels_of(y)
    if not isinstance(x, Tensor) or x.ndim < 1:
        raise TypeError(f"[sequence_expand] x should be a variable with rows, but received {x!r}.")
    own = levels_of(x) and [*levels_of(x)[:-1], lengths_of("sequence_expand", "x", x)]
    if not -1 <= ref_level < len(levels):
        raise ValueError(f"[sequence_expand] ref_level is {ref_level}, but y has {len(levels)} levels of lengths.")
    ref_level %= len(levels)
    if len(own) > 1:
        raise ValueError(f"[sequence_expand] x has {len(own)} levels of lengths; it can have one or none.")
    repeats = levels[ref_level]
    size = levels[ref_level + 1].shape[0] if ref_level + 1 < len(levels) else y.shape[0]
    count = own[0].shape[0] if own else x.shape[0]
    if isinstance(count, int) or count != repeats.shape[0]:
        raise ValueError(
            f"[sequence_expand] x has {count} {'sequences' if own else 'rows'}, but y has {repeats.shape[0]} lengths at level "
            f"{ref_level}. hint: leave the first size of x open, and feed as many as there are lengths."
        )
    return _expanded_sequences(x, own[0], repeats) if own else ops.gather(x, _sequence_of_each(repeats, size), 0)


def _expanded_sequences(x: Tensor, lengths: Tensor, repeats: Tensor) -> Tensor:
    """Each sequence of x several times in a row, as separate sequences."""
    source = ops.repeat_positions(repeats)
    new = ops.gather(lengths, source, 0)
    place = ops.repeat_positions(new)
    shift = ops.gather(_ends(lengths) - lengths, source, 0) - (_ends(new) - new)
    rows = _counted(place.shape[0]) - 1 + ops.gather(shift, place, 0)
    divide(program_of(x) or default_main_program(), place.shape[0], new)
    return ops.gather(x, rows, 0)
