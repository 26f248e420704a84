"""One call of an op on both sides, and their comparison."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import oar
from peers.counts import count
from peers.process import Answer, Call
from registry.compare import TOLERANCE, check_close, values
from registry.records import Trait, describe, tensors_of

DIFFERENTIABLE = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SHOWN = int(os.environ.get("OAR_SHOWN", "12"))  # differences of one op
SINGLE = 2e-6
GRADIENT_TOLERANCE = {**TOLERANCE, "float64": 1e-9, "complex128": 1e-9}


@dataclass
class Tables:
    """What a peer calls our ops, and where it differs.

    `expression` builds the peer's call from a record and its arguments. `different` lists (what, where, why) for an op,
    or for "*", any op. What is "values" (nothing agrees), "gradients", "dtype" or "refused" (we raise an error where
    the peer does not). Where is an expression of the arguments, `dtype`, `call` and `special` (NaN or infinity among
    the operands)."""

    peer: str
    expression: Callable
    different: dict[str, list[tuple[str, str, str]]]
    constant: dict[str, tuple[str, ...]] = field(default_factory=dict)
    with_dtypes: bool = True
    errors_lack: bool = False  # an error of the peer means that it lacks the case
    single: frozenset[str] = frozenset()  # ops that the peer computes, or whose numbers it keeps, in float32
    used: set = field(default_factory=set)

    def unused(self) -> list[str]:
        """Reasons that no difference needed, after a whole run."""
        return [f"{name}: {entry[2]} ({entry[0]} where {entry[1]})" for name, entries in self.different.items()
                for entry in entries if (name, entry) not in self.used]

    def reason(self, name: str, arguments: dict, what: str) -> bool:
        """Whether a difference of that kind is a known one."""
        names = {**arguments, "np": np, "special": _is_special(arguments)}
        for key in (name, "*"):
            for entry in self.different.get(key, ()):
                kind, where, _ = entry
                if kind in (what, "values") and eval(where, names):  # the tables are ours
                    self.used.add((key, entry))
                    return True
        return False


def _is_special(arguments: dict) -> bool:
    """Whether NaN or infinity is among the operands."""
    tensors = tensors_of(list(arguments.values()))
    return any(not np.isfinite(values(t)).all() for t in tensors if t.dtype.name in DIFFERENTIABLE)


class Difference(AssertionError):
    """What differs: "values", "gradients", "dtype" or "refused"."""

    def __init__(self, what: str, text: str):
        super().__init__(text)
        self.what = what


class Sample:
    """One call: ours with its gradients, and the request to the peer. `run` computes our results from the arguments."""

    def __init__(self, name: str, dtype: str, what: str, arguments: dict, run, expression: str, *,
                 gradients: bool, constants: tuple = (), seed: int = 0):
        self.name, self.dtype, self.what = name, dtype, f"[{dtype}] {what}"
        tensors = tensors_of(list(arguments.values()))
        variable = tensors_of([a for key, a in arguments.items() if key not in constants])
        self.leaves = [t for t in variable if t.dtype.name in DIFFERENTIABLE] if gradients else []
        self.empty = any(t.size == 0 for t in tensors)
        before = {key: _copied(value) for key, value in arguments.items()}
        for leaf in self.leaves:
            leaf.stop_gradient = False
        self.outputs, self.cotangents, self.error = [], [], None
        try:
            self.outputs = run(arguments)
        except Exception as error:  # noqa: BLE001  (compared with what the peer says)
            self.error = error
        rng = np.random.default_rng(seed)
        self.cotangents = [None if out.stop_gradient else direction(rng, out) for out in self.outputs]
        self.call = Call(expression, before, self.cotangents if self.leaves else [], constants)

    def gradients(self, given: list) -> list[np.ndarray]:
        """Ours, by the results that the peer has too."""
        pairs = [(out, c) for out, c, theirs in zip(self.outputs, self.cotangents, given)
                 if c is not None and theirs is not None]
        if not pairs:
            return [values(oar.zeros_like(x)) for x in self.leaves]
        found = oar.grad([out for out, _ in pairs], self.leaves, [c for _, c in pairs], allow_unused=True)
        return [values(oar.zeros_like(x) if g is None else g) for x, g in zip(self.leaves, found)]


def direction(rng: np.random.Generator, like: oar.Tensor) -> oar.Tensor:
    """Random numbers of the shape and dtype of a tensor."""
    numbers = rng.standard_normal(like.shape)
    if "complex" in like.dtype.name:
        numbers = numbers + 1j * rng.standard_normal(like.shape)
    return oar.to_tensor(np.asarray(numbers), dtype=like.dtype)


def _copied(value):
    if isinstance(value, oar.Tensor):
        return value.detach().clone()
    return [_copied(v) for v in value] if isinstance(value, (list, tuple)) else value


def compare(sample: Sample, answer: Answer, tables: Tables) -> None:
    """Raises AssertionError unless both agree, or differ for a reason that a table states."""
    try:
        _compare(sample, answer, tables)
    except Difference as difference:
        known = {"dtype": sample.dtype, "call": sample.call.expression, **sample.call.arguments}
        if not tables.reason(sample.name, known, difference.what):
            raise
        count("samples that differ by definition")


def _compare(sample: Sample, answer: Answer, tables: Tables) -> None:
    lacks = answer.missing or (answer.values and all(v is None for v in answer.values))
    if lacks or (answer.error and (sample.empty or sample.error or tables.errors_lack)):
        return count(f"samples of cases that {tables.peer} lacks")
    if sample.error:
        raise Difference("refused", f"{sample.what}: we say {type(sample.error).__name__}: {sample.error}")
    if answer.error:
        raise Difference("values", f"{sample.what}: {tables.peer} says {answer.error}")
    _compare_values(sample, answer, tables)
    return _compare_gradients(sample, answer, tables)


def _compare_values(sample: Sample, answer: Answer, tables: Tables) -> None:
    if len(answer.values) != len(sample.outputs):
        raise Difference("values", f"{sample.what}: {len(sample.outputs)} results, "
                                   f"{tables.peer} has {len(answer.values)}")
    for i, (ours, theirs, dtype) in enumerate(zip(sample.outputs, answer.values, answer.dtypes)):
        if theirs is None:
            continue
        what = f"{sample.what}, result {i}"
        single = sample.name in tables.single
        tolerance = SINGLE if single and ours.dtype.name in TOLERANCE else TOLERANCE.get(ours.dtype.name, 0.0)
        _check("values", values(ours), theirs, max(tolerance, TOLERANCE.get(ours.dtype.name, 0.0)), what)
        if tables.with_dtypes and ours.dtype.name != dtype:
            raise Difference("dtype", f"{what}: dtype {ours.dtype.name}, {tables.peer} has {dtype}")
        count("values")


def _compare_gradients(sample: Sample, answer: Answer, tables: Tables) -> None:
    if not sample.leaves:
        return None
    try:
        found = sample.gradients(answer.values)
    except RuntimeError as error:
        if answer.gradients is None:
            return count("gradients that both refuse")
        raise Difference("refused", f"{sample.what}: the gradient: {error}") from None
    if answer.gradient_error and not sample.empty and not tables.errors_lack:
        raise Difference("gradients", f"{sample.what}: {tables.peer} says {answer.gradient_error}")
    if answer.gradients is None:
        return count(f"samples of which {tables.peer} lacks the gradient")
    for i, (ours, theirs) in enumerate(zip(found, answer.gradients)):
        tolerance = max(GRADIENT_TOLERANCE[sample.leaves[i].dtype.name],
                        SINGLE if sample.name in tables.single else 0.0)
        _check("gradients", ours, theirs, tolerance, f"{sample.what}, gradient of operand {i}")
        count("gradients")
    return None


def _check(kind: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float, what: str) -> None:
    try:
        check_close(ours, theirs, tolerance, what)
    except AssertionError as error:
        raise Difference(kind, str(error)) from None


def compare_all(samples: list[Sample], peer, tables: Tables) -> None:
    """Fails with the first differences of a list of samples."""
    failures = []
    for sample, answer in zip(samples, peer.ask([s.call for s in samples])):
        try:
            compare(sample, answer, tables)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, f"{len(failures)} of {len(samples)} differ\n" + "\n".join(failures[:SHOWN])


def of_record(record, dtype: str, number: int, tables: Tables, gradients: bool) -> Sample:
    """A sample of the registry."""
    args = record.samples(dtype)[number]
    arguments = dict(zip(record.parameters, args))
    return Sample(record.name, dtype, describe(record, number, args), arguments,
                  lambda given: record.call(list(given.values())), tables.expression(record, arguments),
                  gradients=gradients and not record.has(Trait.NO_GRAD),
                  constants=tables.constant.get(record.name, ()), seed=number)
