"""What the tests read from an op's record."""

from __future__ import annotations

import enum
import functools
import inspect
from dataclasses import dataclass

import pytest

import oar

INTS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTS, *FLOATS, *COMPLEX)
_CATEGORIES = {"bool": ("bool",), "int": INTS, "float": FLOATS, "complex": COMPLEX}


def category(dtype: str) -> str:
    """Which of the words in a record's `dtypes` covers a dtype."""
    return next(word for word, names in _CATEGORIES.items() if dtype in names)


# The names and bits that the records themselves have: Trait.FLOAT_MATH, Trait.NO_GRAD.
Trait = enum.IntFlag("Trait", {name.upper(): bit for name, bit in oar._C.trait_bits().items()})


@dataclass(frozen=True)
class Record:
    """One op."""

    name: str
    family: str
    schema: str
    brief: str | None
    python: str
    traits: Trait
    numpy: str | None
    dtypes: str
    inplace_of: str | None
    has_vjp: bool
    has_decompose: bool

    @property
    def function(self):
        return getattr(oar._C.ops, self.name)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """The schema's names, without the `name` that every op takes last."""
        return tuple(inspect.signature(self.function).parameters)[:-1]

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """The schema's types, such as "Tensor", "Tensor(a!)", "int[]?"."""
        return tuple(p["text"] for p in self.function.parameters)

    @functools.cached_property
    def written(self) -> int | None:
        """The position of the argument that the op writes and gives back, if any."""
        if not any(r["written"] and not r["list"] for r in self.function.results):
            return None  # statistics that are written on the side, or lists of tensors
        return next((i for i, t in enumerate(self.types) if "!" in t), None)

    @property
    def takes_tensors(self) -> bool:
        return any(t.startswith("Tensor") for t in self.types)

    @property
    def writes_aside(self) -> bool:
        """Writes arguments that it does not return one by one: running statistics, lists of parameters."""
        return self.written is None and any("!" in t for t in self.types)

    def allowed(self) -> tuple[str, ...]:
        if not self.dtypes:
            return DTYPES
        return tuple(d for d in DTYPES if any(d in _CATEGORIES[c] for c in self.dtypes.split()))

    def samples(self, dtype: str) -> list[list]:
        return oar._C.op_samples(self.name, dtype)

    def has(self, trait: Trait) -> bool:
        return bool(self.traits & trait)

    def call(self, args) -> list:
        """The results as a list, whatever the op returns."""
        result = self.function(*args)
        return list(result) if isinstance(result, (list, tuple)) else [result]


def fits(record: Record, dtype: str, number: int) -> bool:
    """Whether a sample may be called at all: the result of an in-place op may not fit into its operand."""
    if record.written is None:
        return True
    try:
        record.call(record.samples(dtype)[number])
    except (TypeError, ValueError):
        return False
    return True


RECORDS = [Record(**{**r, "traits": Trait(r["traits"])}) for r in oar._C.op_records()
           if r["family"] not in ("user", "")]
BY_NAME = {r.name: r for r in RECORDS}
# A program cannot be written down in a record: the ops that take one are tested in test_control_flow.py.
SAMPLED = [r for r in RECORDS if "program" not in r.schema]


def each(records) -> pytest.MarkDecorator:
    """Parametrises a test by records, named family-op so that -k finds either."""
    records = list(records)
    return pytest.mark.parametrize("record", records, ids=[f"{r.family}-{r.name}" for r in records])


def tensors_of(args) -> list:
    """The tensors in an argument list, lists flattened."""
    found = []
    for a in args:
        if isinstance(a, oar.Tensor):
            found.append(a)
        elif isinstance(a, list):
            found += [t for t in a if isinstance(t, oar.Tensor)]
    return found


def is_rising(t) -> bool:
    """Whether it is a vector of integers that rises from 0, such as the places where rows begin: it has no other legal order."""
    if t.ndim != 1 or not t.dtype.name.startswith("int") or t.shape[0] < 2:
        return False
    numbers = t.tolist()
    return numbers[0] == 0 < numbers[-1] and numbers == sorted(numbers)


def replaced(args, tensors) -> list:
    """The argument list with its tensors replaced by others."""
    source = iter(tensors)
    return [next(source) if isinstance(a, oar.Tensor)
            else [next(source) if isinstance(t, oar.Tensor) else t for t in a] if isinstance(a, list) else a
            for a in args]


def describe(record: Record, number: int, args) -> str:
    shown = []
    for name, a in zip(record.parameters, args):
        if isinstance(a, oar.Tensor):
            shown.append(f"{name}: {a.dtype.name}{list(a.shape)}")
        elif isinstance(a, list) and any(isinstance(t, oar.Tensor) for t in a):
            parts = [f"{t.dtype.name}{list(t.shape)}" if isinstance(t, oar.Tensor) else "None" for t in a]
            shown.append(f"{name}: [{', '.join(parts)}]")
        else:
            shown.append(f"{name}={a!r}")
    return f"{record.name}, sample {number}: {', '.join(shown)}"
