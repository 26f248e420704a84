"""Calls at the edges: NaN, infinities, signed zeros, ties, 0-d, empty, all dtypes, mixed dtypes, negative axes.

Each is an expression of Paddle's public functions. We run it with `paddle` standing for Oar, the peer with its own.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass

import ml_dtypes  # noqa: F401 - registers bfloat16 with NumPy
import numpy as np

import oar
from peers.paddle_table import OURS
from registry.records import COMPLEX, FLOATS, INTS, RECORDS, Trait

NAN, INF = float("nan"), float("inf")
ALL = ("bool", *INTS, *FLOATS, *COMPLEX)
NUMBERS = {
    "float": [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 20.0, -20.0, 30000.0],
    "int": [0, 1, 2, 3, 7, 100],
    "negative": [-1, -2, -7],
    "bool": [False, True, True],
    "complex": [0j, 1 + 0j, -1 + 0j, 1j, -1j, 1 + 2j, -3 - 0.5j],
}
SPECIAL = {"float": [NAN, INF, -INF], "complex": [complex(INF, 1), complex(NAN, 0)]}
FEW = [0.0, -0.0, 1.0, -1.0, 2.0, -2.5]
GRADIENTS = ("float32", "float64")


def kind_of(dtype: str) -> str:
    return "float" if "float" in dtype else "complex" if "complex" in dtype else "bool" if dtype == "bool" else "int"


def numbers(dtype: str) -> list:
    """The numbers to try in a dtype."""
    found = NUMBERS[kind_of(dtype)]
    return found + NUMBERS["negative"] if kind_of(dtype) == "int" and dtype != "uint8" else found


def specials(dtype: str) -> list:
    return SPECIAL.get(kind_of(dtype), [])


def tensor(values, dtype: str) -> oar.Tensor:
    if dtype == "bfloat16":
        return oar.to_tensor(np.asarray(values, np.float64).astype(np.float32), dtype="float32").astype("bfloat16")
    return oar.to_tensor(np.asarray(values).astype(dtype), dtype=dtype)


@dataclass
class Edge:
    """One call: the op for the table of reasons, the dtype that the tests name it by, the call and its arguments."""

    name: str
    dtype: str
    call: str
    arguments: dict
    gradients: bool = False


def _path(record) -> str | None:
    if record.name in OURS:
        return None
    places = [place for place in record.python.split() if place != "Tensor"]
    return f"{places[0].replace('oar', 'paddle', 1)}.{record.name}" if places else None


def _required(record) -> list[str]:
    return [p.name for p in inspect.signature(record.function).parameters.values() if p.default is p.empty]


def _elementwise(count: int) -> list:
    """Public elementwise ops of so many operands, all of them tensors."""
    return [r for r in RECORDS if r.has(Trait.ELEMENTWISE) and _path(r) and r.inplace_of is None
            and not r.has(Trait.RANDOM) and len(_required(r)) == count
            and all(t == "Tensor" for t in r.types[:count])]


def _operands(dtype: str) -> list[oar.Tensor]:
    """A vector of plain numbers, a 0-d tensor, an empty one, and NaN and infinities on their own."""
    plain = numbers(dtype)
    found = [tensor(plain, dtype), tensor(plain[1], dtype), tensor([], dtype).reshape([0, 1])]
    return found + ([tensor(specials(dtype), dtype)] if specials(dtype) else [])


def unary() -> dict[str, list[Edge]]:
    found = {}
    for record in _elementwise(1):
        (name,) = _required(record)
        call = f"{_path(record)}({name})"
        found[record.name] = [
            Edge(record.name, dtype, call, {name: x}, dtype in GRADIENTS and not record.has(Trait.NO_GRAD))
            for dtype in ALL
            for x in _operands(dtype)]
    return found


def binary() -> dict[str, list[Edge]]:
    found = {}
    for record in _elementwise(2):
        names = _required(record)
        call = f"{_path(record)}({', '.join(names)})"

        def edge(dtype, *operands, gradients=False, record=record, names=names, call=call):
            differentiable = gradients and not record.has(Trait.NO_GRAD)
            return Edge(record.name, dtype, call, dict(zip(names, operands)), differentiable)

        edges = []
        for dtype in ALL:
            values = FEW if kind_of(dtype) == "float" else numbers(dtype)
            if record.name in DIVIDING and kind_of(dtype) == "int":
                values = [v for v in values if v]
            odd = [] if record.name in ENDLESS else specials(dtype)
            pairs = [list(itertools.product(values, values)),
                     [*itertools.product(odd, odd), *itertools.product(odd, values), *itertools.product(values, odd)]]
            edges += [edge(dtype, *(tensor(side, dtype) for side in zip(*some)), gradients=dtype in GRADIENTS)
                      for some in pairs if some]
            edges += [edge(dtype, tensor(values, dtype), tensor(values[-1], dtype)),
                      edge(dtype, tensor(values[-1], dtype), tensor(values[-1], dtype)),
                      edge(dtype, tensor([], dtype).reshape([0, 1]), tensor(values, dtype))]
        if record.name in ENDLESS:
            found[record.name] = edges
            continue
        one = {"bool": [True, True], "int": [3, 2], "float": [1.5, 2.0], "complex": [1 + 1j, 2.0]}
        edges += [edge(f"{a}, {b}", tensor(one[kind_of(a)], a), tensor(one[kind_of(b)], b))
                  for a, b in itertools.permutations(ALL, 2)]
        for a, b in itertools.permutations(ALL, 2):
            vector, scalar = tensor(one[kind_of(a)], a), tensor(one[kind_of(b)][0], b)
            edges += [edge(f"{a}, 0-d {b}", vector, scalar), edge(f"0-d {b}, {a}", scalar, vector)]
        found[record.name] = edges
    return found


ENDLESS = ("gcd", "lcm")  # with infinities and with integers of two sizes Paddle does not return
DIVIDING = ("floor_divide", "remainder", "mod", "floor_mod", "divide")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "<", ">=", "&", "|", "^")
_SCALARS = ("True", "2", "2.5", "-1.0", "(1+2j)")


def scalars() -> dict[str, list[Edge]]:
    """Operators with a Python number on either side: which dtype comes out."""
    found = {}
    for operator in _OPERATORS:
        edges = []
        for dtype, scalar in itertools.product(ALL, _SCALARS):
            x = tensor([1, 2, 3] if dtype != "bool" else [True, True], dtype)
            at = x[0]
            edges += [Edge(operator, dtype, call, {"x": t}) for t in (x, at)
                      for call in (f"x {operator} {scalar}", f"{scalar} {operator} x")]
        found[operator] = edges
    return found


def _rows(dtype: str) -> list[oar.Tensor]:
    """Matrices with ties, NaN and infinities in some rows, and plain ones."""
    if kind_of(dtype) == "float":
        return [tensor(rows, dtype) for rows in (
            [[1.0, 3.0, 3.0, 2.0], [-1.0, -1.0, 0.5, -2.0], [2.0, 2.0, 2.0, 2.0]],
            [[NAN, 3.0, 1.0, NAN], [INF, -INF, 0.0, 1.0], [-0.0, 0.0, -0.0, 0.0], [1.0, NAN, 5.0, 5.0], [NAN] * 4])]
    if kind_of(dtype) == "complex":
        return [tensor([[1 + 1j, 2 - 1j, 0j], [1j, -1j, 3 + 0j]], dtype)]
    if dtype == "bool":
        return [tensor([[True, False, True], [False, False, False], [True, True, True]], dtype)]
    return [tensor([[1, 3, 3, 2], [0, 0, 5, 1], [7, 7, 7, 7]], dtype)]


def _axes(record) -> list[dict]:
    parameters = inspect.signature(record.function).parameters
    if "axis" not in parameters:
        return [{}]
    several = "[]" in str(parameters["axis"].annotation)
    calls = [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}]
    calls += [{"axis": [0, 1]}, {"axis": [-1, 0]}, {"axis": []}] if several else []
    if "keepdim" in parameters:
        calls += [{**c, "keepdim": True} for c in calls]
    return calls


def along() -> dict[str, list[Edge]]:
    """Everything that works along an axis: reductions, scans, sorting."""
    found = {}
    for record in RECORDS:
        parameters = inspect.signature(record.function).parameters if _path(record) else {}
        wanted = record.has(Trait.REDUCTION) or "axis" in parameters
        fits = wanted and _required(record) == [record.parameters[0]] and record.types[0] == "Tensor"
        if not fits or record.inplace_of or record.has(Trait.RANDOM):
            continue
        found[record.name] = list(_along(record.name, _path(record), record.parameters[0], _axes(record),
                                         not record.has(Trait.NO_GRAD)))
    axes = [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}]
    kept = axes + [{**a, "keepdim": True} for a in axes]
    for name, given in (("median", kept), ("nanmedian", kept), ("mode", kept[1:]), ("sort", axes[1:]),
                        ("argsort", axes[1:]), ("unique", [{}]), ("quantile", [{**a, "q": 0.3} for a in kept]),
                        ("nanquantile", [{**a, "q": 0.3} for a in kept]), ("topk", [{**a, "k": 2} for a in axes]),
                        ("topk", [{**a, "k": 2, "largest": False} for a in axes]),
                        ("kthvalue", [{**a, "k": 2} for a in kept]), ("nonzero", [{}]), ("count_nonzero", kept),
                        ("sort", [{**a, "descending": True} for a in axes[1:]]),
                        ("argsort", [{**a, "descending": True} for a in axes[1:]])):
        found.setdefault(name, [])
        found[name] += list(_along(name, f"paddle.{name}", "x", given, name not in ("argsort", "unique", "nonzero")))
    return found


def _along(name: str, path: str, operand: str, choices: list[dict], gradients: bool):
    for dtype, given in itertools.product(ALL, choices):
        call = f"{path}({', '.join([operand, *(f'{key}={value}' for key, value in given.items())])})"
        for x in _rows(dtype):
            yield Edge(name, dtype, call, {operand: x}, gradients and dtype in GRADIENTS)
        if dtype in ("float32", "int64", "bool"):
            for shape in ([0, 3], [3, 0], []):
                yield Edge(name, f"{dtype}{shape}", call, {operand: oar.ones(shape, dtype=dtype)})
