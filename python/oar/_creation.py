"""Making tensors: what a schema cannot say, such as Paddle's optional leading arguments."""

from __future__ import annotations

import builtins

from oar import _C
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode


def to_tensor(data, dtype=None, place=None, stop_gradient: builtins.bool = True) -> Tensor:
    """A tensor from numbers, nested lists, a NumPy array or a tensor. The data is copied."""
    t = _C.make_tensor(data, dtype)
    if place is not None and not _is_cpu(place):
        t = t.to(place)
    if not in_dynamic_mode():
        t = ops.assign(t)
    if not stop_gradient:
        t.stop_gradient = False
    return t


def _is_cpu(place) -> builtins.bool:
    return place == "cpu" or getattr(place, "is_cpu_place", lambda: False)()


def arange(start=0, end=None, step=1, dtype=None, name=None) -> Tensor:
    """start, start + step, … below end; ``arange(n)`` counts from 0."""
    if end is None:
        start, end = 0, start
    values = [v.item() if isinstance(v, Tensor) else v for v in (start, end, step)]
    if dtype is None:
        kinds = [v.dtype for v in (start, end, step) if isinstance(v, Tensor)]
        floating = builtins.any(isinstance(v, float) for v in values)
        dtype = kinds[0] if kinds else (_C.get_default_dtype() if floating else "int64")
    return ops.range(*values, dtype)


def linspace(start, stop, num, dtype=None, name=None) -> Tensor:
    """num numbers from start to stop, both included, evenly spaced."""
    start, stop, num = (v.item() if isinstance(v, Tensor) else v for v in (start, stop, num))
    if num < 0:
        raise ValueError(f"[linspace] num must not be negative, but is {num}.")
    dtype = _C.dtype(dtype or _C.get_default_dtype())
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    steps = ops.range(0, int(num), 1, "float64")
    return ops.cast(steps * step + float(start), dtype)


def logspace(start, stop, num, base=10.0, dtype=None, name=None) -> Tensor:
    """num powers of base, whose exponents go evenly from start to stop, both included."""
    start, stop, num, base = (v.item() if isinstance(v, Tensor) else v for v in (start, stop, num, base))
    if num < 1:
        raise ValueError(f"[logspace] num must be at least 1, not {num}.")
    exponents = linspace(start, stop, num, "float64")
    return ops.cast(ops.pow(ops.full_like(exponents, float(base)), exponents), dtype or _C.get_default_dtype())


def eye(num_rows: int, num_columns: int | None = None, dtype=None, name=None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    columns = num_rows if num_columns is None else num_columns
    if num_rows < 0 or columns < 0:
        raise ValueError(f"[eye] sizes must not be negative, not {num_rows} and {columns}.")
    rows = ops.reshape(ops.range(0, num_rows, 1, "int64"), [num_rows, 1])
    return ops.cast(ops.equal(rows, ops.range(0, columns, 1, "int64")), dtype or _C.get_default_dtype())


def empty(shape, dtype=None, name=None) -> Tensor:
    """A tensor whose values are up to you; they start as zeros."""
    return ops.zeros(shape, dtype)


def empty_like(x: Tensor, dtype=None, name=None) -> Tensor:
    """As ``empty``, with the shape and dtype of x."""
    return ops.zeros(list(x.shape), x.dtype if dtype is None else dtype)


def randint(low=0, high=None, shape=(1,), dtype=None, name=None) -> Tensor:
    """Integers from low up to but without high."""
    if high is None:
        low, high = 0, low
    return ops.randint(low, high, list(shape) if not isinstance(shape, Tensor) else shape, dtype or "int64")


def normal(mean=0.0, std=1.0, shape=None, name=None) -> Tensor:
    """Normally distributed numbers; mean and std may be tensors."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean if isinstance(mean, Tensor) else std
        other = std if isinstance(mean, Tensor) else mean
        sizes = (like + other).shape if isinstance(other, Tensor) else like.shape
        return ops.gaussian(sizes, 0.0, 1.0, 0, like.dtype) * std + mean
    if shape is None:
        shape = [1]
    return ops.gaussian(shape, float(mean), float(std), 0, None)


def to_dlpack(x: Tensor):
    """A DLPack capsule on the memory of x."""
    return x.__dlpack__()


def from_dlpack(dlpack) -> Tensor:
    """A tensor on the memory of a DLPack capsule, or of an object that exports one."""
    if hasattr(dlpack, "__dlpack__"):
        try:
            dlpack = dlpack.__dlpack__(max_version=(1, 0))
        except TypeError:
            dlpack = dlpack.__dlpack__()
    return _C.from_dlpack_capsule(dlpack)


