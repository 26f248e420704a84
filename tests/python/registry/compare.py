"""Tensors as NumPy arrays, references, and comparisons that say where."""

from __future__ import annotations

import functools
import math

import ml_dtypes  # noqa: F401  (teaches NumPy the name bfloat16)
import numpy as np
import scipy.special as sp

import oar
from registry.records import Record, Trait, replaced, tensors_of

# Relative to the size of the numbers; a few rounding errors of the dtype.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 3e-5,
             "complex128": 1e-10}
# Below it a float16 has no digits left.
SMALLEST = {"float16": 6e-8}


def values(t: oar.Tensor) -> np.ndarray:
    """The numbers, exactly: 16-bit floats as float64, the rest in their own dtype."""
    a = t.detach().numpy()
    if t.dtype.name == "bfloat16":
        return np.asarray(a.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return a


def wide(t: oar.Tensor) -> np.ndarray:
    """The same numbers in the widest dtype of their kind."""
    a = values(t)
    kind = {"f": np.float64, "c": np.complex128, "i": np.int64, "u": np.int64, "b": np.bool_}[a.dtype.kind]
    return a.astype(kind)


def _attribute(value):
    return value.name if isinstance(value, oar.dtype) else value


@functools.cache
def _compiled(expression: str):
    return compile(expression.strip(), "<numpy>", "eval")


def reference(record: Record, args, convert=wide) -> list[np.ndarray]:
    """The record's NumPy expression on the arguments."""
    if record.has(Trait.FLOAT_MATH):
        inner = convert

        def convert(t):  # integers become floats first, as in the op
            a = inner(t)
            return a.astype(np.float64) if a.dtype.kind in "iub" else a
    names = {}
    for name, a in zip(record.parameters, args):
        if isinstance(a, oar.Tensor):
            names[name] = convert(a)
        elif isinstance(a, list):
            names[name] = [convert(t) if isinstance(t, oar.Tensor) else _attribute(t) for t in a]
        else:
            names[name] = _attribute(a)
    with np.errstate(all="ignore"):
        result = eval(_compiled(record.numpy), {"np": np, "sp": sp, "math": math, **names})  # the record is ours
    return [np.asarray(r) for r in (result if isinstance(result, (list, tuple)) else [result])]


def expected_dtypes(record: Record, args, dtype: str) -> list[tuple[str, ...]]:
    """The dtypes each result may have, by the reference run on the op's own dtype; at least one."""
    stated = [a.name for a in args if isinstance(a, oar.dtype)]
    narrow = dtype in ("float16", "bfloat16") and any(t.dtype.name == dtype for t in tensors_of(args))
    if narrow:  # NumPy has no bfloat16, SciPy no float16: use float32
        args = replaced(args, [oar._C.ops.cast(t, "float32") if t.dtype.name == dtype else t for t in tensors_of(args)])
    given = dtype in ("float64", "complex128") or any(t.dtype.name == "float64" for t in tensors_of(args))

    def expected(found: str, number: int) -> tuple[str, ...]:
        if found in stated:
            return (found,)
        if found == "uint64":  # which we do not have
            return ("int64",)
        if found == "float64" and not given:  # NumPy widened; we do not
            found = "float32"
        if narrow and found == "float32":
            return (dtype,) if number == 0 else (dtype, "float32")  # statistics of narrow floats may be kept wide
        return (found,)

    return [expected(result.dtype.name, i) for i, result in enumerate(reference(record, args, values))]


def check_close(actual: np.ndarray, wanted: np.ndarray, tolerance: float, what: str, smallest: float = 0.0) -> int:
    """Equal within a tolerance relative to the largest number; reports where it is not. Returns how many were compared."""
    assert tuple(actual.shape) == tuple(wanted.shape), f"{what}: shape {actual.shape}, expected {wanted.shape}"
    if actual.size == 0:
        return 0
    if actual.dtype.kind in "iub" and wanted.dtype.kind in "iub":
        with np.errstate(all="ignore"):
            wrong = actual != wanted.astype(actual.dtype)  # integers wrap around in the same way
        difference = np.where(wrong, np.abs(actual.astype(np.float64) - wanted.astype(np.float64)), 0)
    else:
        kind = np.complex128 if "c" in (actual.dtype.kind, wanted.dtype.kind) else np.float64
        a, w = actual.astype(kind), wanted.astype(kind)
        finite = np.isfinite(w)
        size = float(np.max(np.abs(w[finite]), initial=0.0))
        with np.errstate(all="ignore"):
            difference = np.abs(a - w)
            near = difference <= tolerance * (np.abs(w) + min(size, 1.0) + 1e-3 * size) + smallest
            same = (a == w) | (np.isnan(a) & np.isnan(w))
            if kind is np.complex128:  # which part of a complex number is infinite is unspecified
                same |= ~np.isfinite(a) & ~np.isfinite(w)
        wrong = ~(same | (near & finite))
    if wrong.any():
        shown = np.where(wrong, np.where(np.isfinite(difference), difference, np.inf), -1)
        at = np.unravel_index(int(np.argmax(shown)), actual.shape)
        at = tuple(int(i) for i in at)
        raise AssertionError(f"{what}: {int(wrong.sum())} of {actual.size} elements differ; worst at {list(at)}: "
                             f"{actual[at]!r}, expected {wanted[at]!r}, difference {difference[at]!r}")
    return actual.size
