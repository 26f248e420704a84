"""Skins of searching, counting and order statistics, whose results depend on flags."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._lazy import np
from oar._spelling import spelled

__all__ = ["histogram", "histogram_bin_edges", "histogramdd", "median", "mode", "nanmedian", "nanquantile", "quantile",
           "unique", "unique_consecutive"]
TENSOR_METHODS = __all__


def _one_or_all(results: list):
    return results[0] if len(results) == 1 else tuple(results)


def _places(t: Tensor, dtype) -> Tensor:
    if _C.dtype(dtype).name not in ("int32", "int64"):
        raise TypeError(f"[unique] dtype is {dtype}; positions are int32 or int64.")
    return t if t.dtype == _C.dtype(dtype) else ops.cast(t, dtype)


@spelled
def unique(x: Tensor, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, dtype="int64", sorted: bool = True, name: str | None = None):
    """The different elements of x (with an axis: the different slices along it) in order; and on request where each
    first occurs, which of them every element is, and how often each occurs.

    Args:
        x: the input.
        return_index: whether to return where each first occurs in x.
        return_inverse: whether to return which result each element of x is.
        return_counts: whether to return how often each occurs.
        axis: the axis to work along; a negative one counts from the end.
        dtype: the dtype of the returned places: 'int32' or 'int64'.
        sorted: accepted for compatibility: the elements are always in order.

    Examples:
        >>> import oar
        >>> oar.unique(oar.to_tensor([3, 1, 3, 2]))
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 2, 3])
        >>> values, counts = oar.unique(oar.to_tensor([3, 1, 3, 2]), return_counts=True)
        >>> counts
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 1, 2])
    """
    if axis is None:
        out, index, inverse, counts = ops.unique_flat(x, return_index, return_inverse, return_counts)
    else:
        index, inverse, counts = _different_slices(x, axis, consecutive=False)
        out = ops.index_select(x, index, axis)
    extra = [t for t, wanted in ((index, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return _one_or_all([out] + [_places(t, dtype) for t in extra])


@spelled
def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None,
                       dtype="int64", name: str | None = None):
    """x without the elements (with an axis: slices) that equal the one before; and on request which of the remaining
    ones every element is, and how long each run was.

    Args:
        x: the input.
        return_inverse: whether to return which result each element of x is.
        return_counts: whether to return how often each occurs.
        axis: the axis to work along; a negative one counts from the end.
        dtype: the dtype of the returned places: 'int32' or 'int64'.

    Examples:
        >>> import oar
        >>> oar.unique_consecutive(oar.to_tensor([1, 1, 2, 1]))
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 2, 1])
    """
    line, along = (ops.reshape(x, [-1]), 0) if axis is None else (x, axis)
    index, inverse, counts = _different_slices(line, along, consecutive=True)
    extra = [t for t, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    return _one_or_all([ops.index_select(line, index, along)] + [_places(t, dtype) for t in extra])


def _different_slices(x: Tensor, axis: int, consecutive: bool):
    first = ops.moveaxis(x, [axis], [0])
    width = 1
    for n in first.shape[1:]:
        width *= n
    return ops.unique_rows(ops.reshape(first, [first.shape[0], width]), consecutive)


@spelled
def mode(x: Tensor, axis: int = -1, keepdim: bool = False, name: str | None = None):
    """The most frequent element along an axis, and its index.

    Args:
        x: the input.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.

    Examples:
        >>> import oar
        >>> values, indices = oar.mode(oar.to_tensor([1, 2, 2, 3]))
        >>> values.item(), indices.item()
        (2, 2)
    """
    values, indices = ops.mode_along(x, axis)
    if keepdim and x.ndim:
        values, indices = ops.unsqueeze(values, [axis]), ops.unsqueeze(indices, [axis])
    return values, indices


def _as_line(x: Tensor, axis) -> tuple[Tensor, list[int]]:
    """x with the axes to reduce as its last one, and x's shape with those axes of size 1."""
    rank = x.ndim
    given = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    for a in given:
        if not -max(rank, 1) <= a < max(rank, 1):
            raise ValueError(f"axis {a} is out of range for a tensor of rank {rank}.")
    axes = sorted({a % rank for a in given}) if rank else []
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    rest = [i for i in range(rank) if i not in axes]
    line = ops.transpose(x, rest + axes) if axes != list(range(rank - len(axes), rank)) else x
    return ops.reshape(line, [x.shape[i] for i in rest] + [-1 if x.size else 0]), kept


def _check_axis(op: str, x: Tensor, axis) -> None:
    if not isinstance(axis, (list, tuple)):
        return
    if len(axis) == 0:
        raise ValueError(f"[{op}] axis is an empty list; pass None for all axes.")
    if len({a % max(x.ndim, 1) for a in axis}) < len(axis):
        raise ValueError(f"[{op}] axis {list(axis)} names an axis of a tensor of rank {x.ndim} twice.")


def _median(op: str, x: Tensor, axis, keepdim: bool, mode: str, ignore_nan: bool):
    if not isinstance(x, Tensor):
        raise TypeError(f"[{op}] x must be a tensor, not {type(x).__name__}.")
    if mode not in ("avg", "min"):
        raise ValueError(f"[{op}] mode is {mode!r}; it can be 'avg' or 'min'.")
    _check_axis(op, x, axis)
    line, kept = _as_line(x, axis)
    if line.shape[-1] == 0:  # without elements there is no middle
        line = ops.full([*line.shape[:-1], 1], float("nan"), x.dtype if "float" in x.dtype.name else "float32")
    exact = line if line.dtype.name.startswith(("float", "bfloat")) else ops.cast(line, "float64")
    values, indices = ops.median_along(exact, -1, mode == "avg", ignore_nan)
    if ignore_nan:  # if all are NaN, no element counts
        values = ops.where(ops.isnan(values), ops.full([], float("nan"), values.dtype), values)
    if mode == "avg" and not ignore_nan:
        dtype = x.dtype if x.dtype.name == "float64" else "float32"
    elif mode == "avg" and exact is not line:
        dtype = "float32"
    else:
        dtype = x.dtype
    shape = kept if keepdim else list(line.shape[:-1])
    values = ops.reshape(ops.cast(values, dtype), shape)
    if mode == "min" and isinstance(axis, int):
        return values, ops.reshape(indices, shape)
    return values


@spelled
def median(x: Tensor, axis: int | None = None, keepdim: bool = False, mode: str = "avg", name: str | None = None):
    """The middle element along an axis (of all, without one). Of two middle ones the average, or with mode 'min' the
    lower one, with its index if an axis is given. NaN if there is one.

    Args:
        x: the input.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        mode: 'avg' for the mean of two middle elements, 'min' for the smaller.

    Examples:
        >>> import oar
        >>> oar.median(oar.to_tensor([1.0, 5.0, 2.0, 4.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               3.)
    """
    if isinstance(axis, (list, tuple)):
        raise ValueError(f"[median] axis is {axis!r}; it must be None or an integer.")
    return _median("median", x, axis, keepdim, mode, ignore_nan=False)


@spelled
def nanmedian(x: Tensor, axis=None, keepdim: bool = False, mode: str = "avg", name: str | None = None):
    """median of the elements that are not NaN; over several axes too.

    Args:
        x: the input.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        mode: 'avg' for the mean of two middle elements, 'min' for the smaller.

    Examples:
        >>> import oar
        >>> oar.nanmedian(oar.to_tensor([1.0, float('nan'), 2.0, 9.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               2.)
    """
    return _median("nanmedian", x, axis, keepdim, mode, ignore_nan=True)


def _quantile(op: str, x: Tensor, q, axis, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    if isinstance(axis, (list, tuple)) and not axis:
        axis = None
    _check_axis(op, x, axis)
    shares = q if isinstance(q, Tensor) else _C.make_tensor(q, "float64")
    if shares.ndim > 1 or shares.size == 0:
        raise ValueError(f"[{op}] q of shape {list(shares.shape)} must be a number or a vector of them.")
    if not _C.is_symbolic(shares) and not bool(ops.all(ops.logical_and(shares >= 0, shares <= 1))):
        raise ValueError(f"[{op}] q holds {shares.tolist()}; it must be in [0, 1].")
    if not x.dtype.name.startswith(("float", "bfloat")):
        x = ops.cast(x, "float32")
    line, kept = _as_line(x, axis)
    several = shares.ndim == 1 and shares.shape[0] > 1
    out = ops.quantile_along(line, ops.reshape(shares, [-1]), interpolation, ignore_nan)
    shape = kept if keepdim else list(line.shape[:-1])
    return ops.reshape(out, ([shares.shape[0]] if several else []) + shape)


@spelled
def quantile(x: Tensor, q, axis=None, keepdim: bool = False, interpolation: str = "linear") -> Tensor:
    """The quantiles of x at the shares q along axes (of all, without one). NaN if there is one.

    Args:
        x: the input.
        q: the shares, between 0 and 1: a number, a list or a tensor.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        interpolation: between two elements: 'linear', 'lower', 'higher', 'midpoint' or 'nearest'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.quantile(oar.to_tensor([1.0, 2.0, 3.0, 4.0, 5.0]), 0.25)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               2.)
    """
    return _quantile("quantile", x, q, axis, keepdim, interpolation, ignore_nan=False)


@spelled
def nanquantile(x: Tensor, q, axis=None, keepdim: bool = False, interpolation: str = "linear") -> Tensor:
    """quantile of the elements that are not NaN.

    Args:
        x: the input.
        q: the shares, between 0 and 1: a number, a list or a tensor.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        interpolation: between two elements: 'linear', 'lower', 'higher', 'midpoint' or 'nearest'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.nanquantile(oar.to_tensor([1.0, float('nan'), 3.0]), 0.5)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               2.)
    """
    return _quantile("nanquantile", x, q, axis, keepdim, interpolation, ignore_nan=True)


def histogram(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, weight: Tensor | None = None,
              density: bool = False, name: str | None = None) -> Tensor:
    """How many elements fall into each of ``bins`` equal parts of [min, max] (of the elements' own range where both
    are 0); with a weight, the sums of it. As a density the bins' areas sum to 1.

    Args:
        input: the input.
        bins: the number of bins.
        min: the lower end; the smallest element if both ends are 0.
        max: the upper end; the largest element if both ends are 0.
        weight: a weight per element, or None.
        density: whether to return a density instead of counts.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.histogram(oar.to_tensor([1.0, 2.0, 2.5]), bins=2, min=1, max=3)
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 2])
    """
    counts = ops.histogram_counts(input, weight, bins, float(min), float(max))
    if not density:
        return counts
    edges = histogram_bin_edges(input, bins, min, max) if input.size else None
    width = (float(max) - float(min)) / bins if edges is None or min != max else (edges[-1] - edges[0]) / bins
    counts = ops.cast(counts, "float32")
    return counts / (ops.sum(counts) * width)


def histogram_bin_edges(input: Tensor, bins: int = 100, min: float = 0, max: float = 0,
                        name: str | None = None) -> Tensor:
    """The bounds of the bins that histogram counts in.

    Args:
        input: the input.
        bins: the number of bins.
        min: the lower end; the smallest element if both ends are 0.
        max: the upper end; the largest element if both ends are 0.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.histogram_bin_edges(oar.to_tensor([1.0, 3.0]), bins=2)
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2., 3.])
    """
    if max < min:
        raise ValueError(f"[histogram_bin_edges] min is {min} and max {max}; max must not be the smaller one.")
    from oar._creation import linspace
    low, high = _ends_of(input, float(min), float(max)) if input.size else _apart(float(min), float(max))
    return linspace(low, high, bins + 1)


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _ends_of(x: Tensor, low: float, high: float):
    """The ends of the bins of x: as given, or those of the elements where both are 0. A tensor stays one inside a program."""
    if low or high:
        return _apart(low, high)
    least, most = ops.min(x), ops.max(x)
    if not _C.is_symbolic(least):
        return _apart(float(least.item()), float(most.item()))
    least, most = ops.cast(least, "float64"), ops.cast(most, "float64")
    half = 0.5 * ops.cast(least == most, "float64")
    return least - half, most + half


def _edges_of(x: Tensor, bins, ranges) -> list[Tensor]:
    from oar._creation import linspace, to_tensor
    axes = x.shape[1]
    if isinstance(bins, (list, tuple)) and bins and isinstance(bins[0], (Tensor, np.ndarray)):
        return [ops.cast(b, x.dtype) if isinstance(b, Tensor) else to_tensor(b, x.dtype) for b in bins]
    counts = [bins] * axes if not isinstance(bins, (list, tuple)) else list(bins)
    if not all(isinstance(count, int) for count in counts):
        raise _C.ArgumentValueError(f"[histogramdd] bins is {bins!r}; it must be an integer, a list of them, or a list of tensors.")
    if len(counts) != axes:
        raise _C.ArgumentValueError(f"[histogramdd] bins has {len(counts)} entries for the {axes} columns of x.")
    edges = []
    for i, count in enumerate(counts):
        if ranges is not None:
            low, high = _apart(float(ranges[2 * i]), float(ranges[2 * i + 1]))
        else:
            low, high = _ends_of(x[:, i], 0.0, 0.0) if x.shape[0] else (0.0, 1.0)
        end = ops.reshape(ops.cast(high, x.dtype), [1]) if isinstance(high, Tensor) else ops.full([1], high, x.dtype)
        # The upper end is exact, so that the largest element is inside.
        edges.append(ops.concat([linspace(low, high, count + 1, x.dtype)[:-1], end]))
    return edges


@spelled
def histogramdd(x: Tensor, bins=10, ranges=None, density: bool = False, weights: Tensor | None = None,
                name: str | None = None):
    """How many rows of x [..., d] fall into each cell of a grid in d dimensions, and the grid's bounds.

    Args:
        x: the input.
        bins: the number of bins.
        ranges: the lower and upper bound of each dimension.
        density: whether to return a density instead of counts.
        weights: a weight per row, or None.

    Examples:
        >>> import oar
        >>> counts, edges = oar.histogramdd(oar.to_tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]]), bins=[2, 2])
        >>> counts
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 0.],
                [0., 2.]])
    """
    if not isinstance(density, bool):
        raise TypeError(f"[histogramdd] density must be a bool, not {type(density).__name__}.")
    if x.ndim < 2:
        raise _C.ArgumentValueError(f"[histogramdd] x of shape {list(x.shape)} must have at least two axes.")
    if isinstance(bins, (list, tuple)) and len(bins) != x.shape[-1]:
        raise _C.ArgumentValueError(f"[histogramdd] bins has {len(bins)} entries for {x.shape[-1]} columns.")
    if ranges is not None and len(ranges) != 2 * x.shape[-1]:
        raise _C.ArgumentValueError(f"[histogramdd] ranges has {len(ranges)} numbers; {2 * x.shape[-1]} are needed.")
    points = ops.reshape(x, [-1, x.shape[-1]])
    edges = _edges_of(points, bins, ranges)
    sizes = [e.shape[0] - 1 for e in edges]
    cell, inside = ops.zeros([points.shape[0]], "int64"), ops.ones([points.shape[0]], "bool")
    for i, (bounds, size) in enumerate(zip(edges, sizes)):
        column = ops.assign(points[:, i])
        place = ops.searchsorted(bounds, column, False, True) - 1
        place = ops.where(column == bounds[-1], ops.full_like(place, size - 1), place)  # the upper end belongs to it
        inside = ops.logical_and(inside, ops.logical_and(place >= 0, place < size))
        cell = cell * size + place
    total = 1
    for size in sizes:
        total *= size
    if weights is not None and list(weights.shape) != list(x.shape[:-1]):
        raise _C.ArgumentValueError(f"[histogramdd] weights of shape {list(weights.shape)} must have one number for each row of "
                         f"x: shape {list(x.shape[:-1])}.")
    share = ops.ones([points.shape[0]], x.dtype) if weights is None else ops.reshape(weights, [-1])
    # What is outside goes to a place after the last one.
    counts = ops.index_add(ops.zeros([total + 1], share.dtype), ops.where(inside, cell, ops.full_like(cell, total)), 0, share)
    counts = ops.reshape(counts[:total], sizes)
    if density:
        counts = counts / ops.sum(counts)
        for i, bounds in enumerate(edges):
            widths = bounds[1:] - bounds[:-1]
            counts = counts / ops.reshape(widths, [-1 if k == i else 1 for k in range(len(sizes))])
    return counts, edges
