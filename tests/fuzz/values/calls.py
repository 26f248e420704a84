"""Random calls: a sample of an op's record, with other shapes, dtypes, layouts, attributes and numbers."""

from __future__ import annotations

import bisect
import functools
import itertools
import zlib
from dataclasses import dataclass

import numpy as np

import oar
from registry.records import INTS, Record, Trait, is_rising, tensors_of

ops = oar._C.ops
NAN, INF = float("nan"), float("inf")
# Beside the plain ones; what a dtype cannot hold becomes what it rounds to.
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1e-310, -1e-310, 1e-42, 6e-8, 1e-6, -1e-6, 65504.0, 1e5, 1e10, -1e30, 3.4e38,
           -3.4e38, 1e300, 1.0, -1.0, 0.5, -0.5, 2.0, 88.8, -104.0, 710.0]
SIZES = [0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64]
WEIGHTS = {"float32": 6, "float64": 3, "float16": 2, "bfloat16": 2, "int64": 2, "int32": 2, "bool": 1, "complex64": 2,
           "complex128": 1}
MOST = 4000  # elements of an ordinary call
LARGE = 300_000  # of a large one
FLOATS = [0.0, 1.0, -1.0, 0.5, 0.1, 2.0, 3.0, 1e-5, -0.25, 10.0, 20.0, 1e-3, INF]


class NoCall(Exception):
    """There is no such call: the record has no sample in the dtype."""


@dataclass
class Part:
    """A tensor argument: numbers in the widest dtype of their kind, the dtype to cast them to, and a layout."""

    numbers: np.ndarray
    dtype: str
    free: bool  # its dtype follows that of the call: data, not indices or labels
    kept: bool  # the numbers belong together: the places where rows begin
    matrix: str = ""  # "matrix" of full rank, "hermitian matrix"
    layout: str = "plain"

    def tensor(self) -> oar.Tensor:
        with np.errstate(all="ignore"):
            if self.dtype == "bfloat16":
                made = ops.cast(oar.to_tensor(self.numbers.astype(np.float32), dtype="float32"), "bfloat16")
            else:
                made = oar.to_tensor(np.ascontiguousarray(self.numbers.astype(self.dtype)).reshape(self.numbers.shape),
                                     dtype=self.dtype)
        return LAYOUTS[self.layout](made)


def _transposed(t):
    axes = list(range(t.ndim))[::-1]
    return ops.transpose(ops.assign(ops.transpose(t, axes)).contiguous(), axes)


def _strided(t):
    if t.ndim == 0:
        return ops.stack([ops.zeros_like(t), t], 0)[1]
    view = ops.zeros([2 * n + 1 for n in t.shape], t.dtype)[tuple(slice(1, None, 2) for _ in t.shape)]
    ops.copy_into(view, t)
    return view


def _reversed(t):
    back = (slice(None, None, -1),) * t.ndim
    return ops.assign(t[back]).contiguous()[back] if t.ndim else t


LAYOUTS = {"plain": lambda t: t, "transposed": _transposed, "strided": _strided, "reversed": _reversed}


@dataclass
class FuzzCall:
    """One random call. `special` says whether NaN, infinities or extreme numbers may be among its operands."""

    record: Record
    number: int
    dtype: str
    args: list
    special: bool
    mixed: bool
    wild: bool = False  # large and small numbers

    @property
    def what(self) -> str:
        return f"{self.record.name} #{self.number}"

    def shown(self) -> str:
        """The call as Python, if its tensors are small."""
        return f"oar._C.ops.{self.record.name}({', '.join(_shown(a) for a in self.args)})"


def _shown(value) -> str:
    if isinstance(value, oar.Tensor):
        dtype = value.dtype.name
        if value.size > 24:
            return f"<{dtype}{list(value.shape)}>"
        numbers = value.astype("float32") if dtype == "bfloat16" else value
        empty = f".reshape({list(value.shape)})" if value.size == 0 else ""
        return f"oar.to_tensor({numbers.tolist()}, dtype='{dtype}'){empty}"
    if isinstance(value, oar.dtype):
        return f"'{value.name}'"
    return f"[{', '.join(_shown(v) for v in value)}]" if isinstance(value, (list, tuple)) else repr(value)


# choices: the generator's own `choice` makes an array of what it chooses from, which takes longer than the rest of a call


def _one_of(rng, found):
    return found[rng.integers(len(found))]


def _weighted(rng, found, upto: list[float]):
    """One of them; `upto` adds up their weights."""
    return found[bisect.bisect(upto, rng.random() * upto[-1])]


# shapes ------------------------------------------------------------------------------------------


def _size(rng) -> int:
    return _one_of(rng, SIZES)


def _fits(shape, most: int) -> bool:
    return np.prod([max(n, 1) for n in shape], dtype=float) <= most


def random_shape(rng, most: int) -> list[int]:
    shape: list[int] = []
    for _ in range(_one_of(rng, [0, 1, 1, 2, 2, 3, 3, 4, 5])):
        size = _size(rng)
        if _fits([*shape, size], most):
            shape.append(size)
    if most > MOST and shape:
        rest = int(np.prod([max(n, 1) for n in shape[1:]]))
        shape[0] = int(rng.integers(1, max(most // rest, 2)))
    return shape


def _broadcast_part(rng, shape: list[int]) -> list[int]:
    """A shape that broadcasts to the given one."""
    kept = [1 if rng.random() < 0.25 else n for n in shape]
    return kept[rng.integers(0, len(kept) + 1):] if rng.random() < 0.3 else kept


def _shapes_of_elementwise(rng, count: int, most: int) -> list[list[int]]:
    shape = random_shape(rng, most)
    if count == 1 or rng.random() < 0.4:
        return [shape] * count
    return [_broadcast_part(rng, shape) for _ in range(count)]


def _renamed(rng, shapes: list[list[int]], args: list, kinds, most: int):
    """Every axis of one size gets another size, wherever that size is: in shapes, and in attributes that are shapes."""
    sizes = sorted({n for shape in shapes for n in shape})
    mapping = {}
    for size in sizes:
        if rng.random() < 0.45:
            mapping[size] = _size(rng)
    changed = [[mapping.get(n, n) for n in shape] for shape in shapes]
    if not all(_fits(shape, most) for shape in changed):
        return shapes, args
    args = [[mapping.get(n, n) for n in a] if kind.startswith("shape") and isinstance(a, list) else a
            for a, kind in zip(args, kinds)]
    return changed, args


# numbers -----------------------------------------------------------------------------------------


def _random_floats(rng, shape, low: float, high: float, manner: str) -> np.ndarray:
    if manner == "ties":
        found = rng.integers(-3, 4, shape).astype(np.float64)
        return np.where((found == 0) & (rng.random(shape) < 0.3), -0.0, found)
    if manner == "wild":
        return rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5)
    if manner == "special":
        plain = rng.standard_normal(shape) * 3
        odd = rng.choice(SPECIAL, shape)
        return np.where(rng.random(shape) < _one_of(rng, [0.05, 0.3, 0.9]), odd, plain)
    if low >= 0 or high <= 1:  # the sample keeps to a domain
        return rng.uniform(low, high, shape) if high > low else np.full(shape, low, np.float64)
    return rng.standard_normal(shape) * _one_of(rng, [0.5, 1.0, 3.0])


def _random_integers(rng, shape, dtype: str, low: int, high: int, manner: str) -> np.ndarray:
    if manner in ("wild", "special"):
        limits = np.iinfo(dtype)
        found = rng.integers(limits.min, limits.max, shape, dtype=np.int64, endpoint=True)
        edge = rng.choice(np.array([limits.min, limits.max, 0, 1, limits.max - 1]), shape)
        return np.where(rng.random(shape) < 0.3, edge, found)
    least = 0 if dtype == "uint8" else -9
    if low >= 0:
        return rng.integers(low, high, shape, endpoint=True)
    return rng.integers(least, 10, shape)


def _resized(numbers: np.ndarray, shape) -> np.ndarray:
    if not numbers.size:
        return np.zeros(shape, numbers.dtype)
    return np.resize(numbers, shape)


def _refilled(rng, part: Part, shape, dtype: str, manner: str) -> np.ndarray:
    """Other numbers of the part's kind, in a shape."""
    old = part.numbers
    if part.matrix and len(shape) > 1:
        return _random_matrices(rng, shape, dtype, "hermitian" in part.matrix)
    if part.kept:
        return old if list(old.shape) == list(shape) else _resized(old, shape)
    if not part.free:
        return _other_indices(rng, part, shape)
    finite = old[np.isfinite(old)] if old.dtype.kind in "fc" else old
    low, high = (finite.real.min(), finite.real.max()) if finite.size else (-1, 1)
    if dtype == "bool":
        return rng.random(shape) < _one_of(rng, [0.1, 0.5, 0.9])
    if dtype in INTS:
        return _random_integers(rng, shape, dtype, int(low), int(high), manner)
    found = _random_floats(rng, shape, float(low), float(high), manner)
    if "complex" not in dtype:
        return found
    both = np.empty(shape, np.complex128)
    both.real, both.imag = found, _random_floats(rng, shape, float(low), float(high), manner)
    return both


def _random_matrices(rng, shape, dtype: str, hermitian: bool) -> np.ndarray:
    """Of full rank; Hermitian ones are positive definite."""
    found = rng.standard_normal(shape)
    if "complex" in dtype:
        found = found + 1j * rng.standard_normal(shape)
    found = found / max(shape[-1], 1) ** 0.5 + 2 * np.eye(*shape[-2:]) * _one_of(rng, [0.5, 1.0, 2.0])
    return found @ np.conj(np.swapaxes(found, -1, -2)) if hermitian and shape[-1] == shape[-2] else found


def _other_indices(rng, part: Part, shape) -> np.ndarray:
    """Indices, labels, lengths, masks: those of the sample, others inside their range, now and then around it."""
    old = part.numbers
    choice = rng.random()
    if old.dtype.kind == "b":
        return rng.random(shape) < _one_of(rng, [0.0, 0.2, 0.5, 0.8, 1.0]) if choice < 0.7 else _resized(old, shape)
    if old.dtype.kind in "fc" or not old.size or choice < 0.4:
        return _resized(old, shape)
    low, high = int(old.min()), int(old.max())
    if choice < 0.9:
        return rng.integers(low, high, shape, endpoint=True)
    reach = min(max(abs(low), abs(high)) + 2, 2**62)
    return rng.integers(-reach, reach, shape, endpoint=True)


# attributes --------------------------------------------------------------------------------------


def _other_number(rng, name: str, value, rank: int):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        if "ax" in name or name == "dim":
            return int(rng.integers(-rank - 1, rank + 1))
        return _one_of(rng, [value - 1, value + 1, 0, 1, 2, -1, 2 * value, value + 3])
    if isinstance(value, float):
        return _one_of(rng, [*FLOATS, value * 2, value / 3, -value])
    return value


def _other_attribute(rng, name: str, value, pool: list, rank: int):
    """The value of another sample, or one near to it."""
    if pool and rng.random() < 0.5:
        return pool[rng.integers(len(pool))]
    if isinstance(value, list) and value and not isinstance(value[0], oar.Tensor):
        if rng.random() < 0.2:
            return value[:-1] if rng.random() < 0.5 else [*value, value[-1]]
        at = int(rng.integers(len(value)))
        return [*value[:at], _other_number(rng, name, value[at], rank), *value[at + 1:]]
    return _other_number(rng, name, value, rank)


# the call ----------------------------------------------------------------------------------------


def _is_slow(record: Record) -> bool:
    """Whether the reference visits every element in Python."""
    return record.numpy is not None and (" for " in record.numpy or "apply_along" in record.numpy)


def _most(record: Record, large: bool) -> int:
    """How many elements an operand may have."""
    if record.numpy is not None and "itertools" in record.numpy:
        return 60  # the reference tries every path
    if _is_slow(record):
        return 400
    return (LARGE if record.has(Trait.ELEMENTWISE) else 20_000) if large else MOST


def _samples(record: Record, dtype: str) -> list[list]:
    source = record
    found = source.samples(dtype)
    if not found:
        raise NoCall
    return found


def _parts(record: Record, number: int, args: list, dtype: str) -> list[Part]:
    """What is known about each tensor of a sample. A dtype that stays when that of the test changes is fixed."""
    other = "float64" if dtype != "float64" else "float32"
    twins = tensors_of(record.samples(other)[number])
    parts = []
    for t, twin in zip(tensors_of(args), twins):
        name = t.dtype.name
        numbers = (ops.cast(t, "float32") if name == "bfloat16" else t).numpy()
        free = name == dtype and twin.dtype.name == other
        parts.append(Part(numbers, name, free, is_rising(t), getattr(t, "structure", "")))
    return parts


@functools.cache
def _dtypes(record: Record) -> tuple:
    allowed = record.allowed()
    return allowed, list(itertools.accumulate(WEIGHTS.get(d, 1) for d in allowed))


def _choose_dtype(rng, record: Record) -> str:
    return _weighted(rng, *_dtypes(record))


def _filled(args: list, tensors: list) -> list:
    source = iter(tensors)
    return [next(source) if isinstance(a, oar.Tensor) else
            [next(source) if isinstance(t, oar.Tensor) else t for t in a] if isinstance(a, list) else a for a in args]


def make(record: Record, number: int) -> FuzzCall:
    """The call of that number; the same one every time."""
    rng = np.random.default_rng([number, zlib.crc32(record.name.encode())])
    dtype = _choose_dtype(rng, record)
    samples = _samples(record, dtype)
    at = int(rng.integers(len(samples)))
    args = samples[at]
    parts = _parts(record, at, args, dtype)
    elementwise = record.has(Trait.ELEMENTWISE)
    most = _most(record, large=rng.random() < 0.01)
    shapes = [list(p.numbers.shape) for p in parts]
    if elementwise and rng.random() < 0.8 and parts:
        shapes = _shapes_of_elementwise(rng, len(parts), most)
    elif rng.random() < 0.6:
        shapes, args = _renamed(rng, shapes, args, record.types, most)
    args = _with_other_attributes(rng, record, args, samples, max((len(s) for s in shapes), default=0))
    manner = _weighted(rng, ["domain", "ties", "wild", "special"], [0.55, 0.67, 0.8, 1.0])
    mixed = record.has(Trait.PROMOTE) and len(parts) > 1 and rng.random() < 0.12
    tensors = []
    for part, shape in zip(parts, shapes):
        own = _choose_dtype(rng, record) if mixed and part.free else part.dtype
        numbers = _refilled(rng, part, shape, own, manner)
        layout = _weighted(rng, list(LAYOUTS), [0.7, 0.8, 0.9, 1.0]) if numbers.size < 50_000 else "plain"
        tensors.append(Part(numbers, own, part.free, part.kept, part.matrix, layout).tensor())
    return FuzzCall(record, number, dtype, _filled(args, tensors), manner == "special", mixed, manner == "wild")


def _with_other_attributes(rng, record: Record, args: list, samples: list, rank: int) -> list:
    if rng.random() < 0.4:
        return args
    found = list(args)
    for i, (name, kind, value) in enumerate(zip(record.parameters, record.types, args)):
        if not kind.startswith(("Tensor", "dtype")) and rng.random() < 0.4:
            found[i] = _other_attribute(rng, name, value, [s[i] for s in samples], rank)
    return found
