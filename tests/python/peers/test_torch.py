"""Values and gradients of the registry's ops against PyTorch's, on the registry's own samples."""

from __future__ import annotations

import os

import numpy as np
import pytest

import oar
from peers.counts import count
from peers.torch_process import Call
from peers.torch_table import CONSTANT, DIFFERENT, OURS, TORCH
from registry.compare import TOLERANCE, check_close, values
from registry.derivatives import direction, is_differentiable
from registry.records import BY_NAME, RECORDS, Trait, describe, each, replaced, tensors_of

if not os.access(os.environ.get("OAR_TORCH", ""), os.X_OK):
    pytest.skip("needs OAR_TORCH, a Python that has PyTorch: `make bench-peers`, then `make test-torch`",
                allow_module_level=True)

DTYPES = ("bool", "int64", "float32", "float64", "complex128")
GRADIENT_TOLERANCE = 1e-9


class Sample:
    """One call of an op: ours with its gradients, and the request to PyTorch."""

    def __init__(self, record, number: int, dtype: str):
        self.record = record
        args = record.samples(dtype)[number]
        self.what = f"[{dtype}] {describe(record, number, args)}"
        with_gradients = dtype in ("float64", "complex128") and not record.has(Trait.NO_GRAD)
        tensors = tensors_of(args)
        constants = CONSTANT.get(record.name, ())
        variable = tensors_of([a for name, a in zip(record.parameters, args) if name not in constants])
        self.leaves = [t for t in variable if is_differentiable(t)] if with_gradients else []
        self.empty = any(t.size == 0 for t in tensors)
        before = [t.detach().clone() for t in tensors]
        for leaf in self.leaves:
            leaf.stop_gradient = False
        self.outputs = record.call(args)
        rng = np.random.default_rng(number)
        self.cotangents = [direction(rng, out) if is_differentiable(out) else None for out in self.outputs]
        arguments = dict(zip(record.parameters, replaced(args, before)))
        self.call = Call(TORCH[record.name], arguments, self.cotangents if self.leaves else [], constants)

    def gradients(self, given: list) -> list[np.ndarray]:
        """Ours, by the results that PyTorch has too."""
        pairs = [(out, c) for out, c, theirs in zip(self.outputs, self.cotangents, given)
                 if c is not None and theirs is not None and not out.stop_gradient]
        if not pairs:
            return [np.zeros(x.shape, x.dtype.name) for x in self.leaves]
        found = oar.grad([out for out, _ in pairs], self.leaves, [c for _, c in pairs], allow_unused=True)
        return [np.zeros(x.shape, x.dtype.name) if g is None else g.numpy() for x, g in zip(self.leaves, found)]

    def differs(self) -> str:
        """What is not compared: "values" (and so nothing), "gradients", or ""."""
        what, where, _ = DIFFERENT.get(self.record.name, ("", "", ""))
        names = {**self.call.arguments, "np": np}
        return what if where and eval(where, names) else ""  # the tables are ours


def compare(sample: Sample, answer) -> None:
    differs = sample.differs()
    if differs == "values":
        return count("samples that differ by definition")
    if answer.missing or (answer.error and sample.empty) or (answer.values and all(v is None for v in answer.values)):
        return count("samples of cases that PyTorch lacks")
    assert not answer.error, f"{sample.what}: PyTorch says {answer.error}"
    assert len(answer.values) == len(sample.outputs), \
        f"{sample.what}: {len(sample.outputs)} results, PyTorch has {len(answer.values)}"
    for i, (ours, theirs) in enumerate(zip(sample.outputs, answer.values)):
        if theirs is not None:
            check_close(values(ours), theirs, TOLERANCE.get(ours.dtype.name, 0.0), f"{sample.what}, result {i}")
            count("values")
    if differs == "gradients" or not sample.leaves:
        return None
    assert not answer.gradient_error or sample.empty, f"{sample.what}: PyTorch says {answer.gradient_error}"
    if answer.gradients is None:
        return count("samples of which PyTorch lacks the gradient")
    for i, (ours, theirs) in enumerate(zip(sample.gradients(answer.values), answer.gradients)):
        check_close(ours, theirs, GRADIENT_TOLERANCE, f"{sample.what}, gradient of operand {i}")
        count("gradients")
    return None


@each(r for r in RECORDS if r.name in TORCH)
def test_agrees(record, torch):
    samples = [Sample(record, number, dtype) for dtype in DTYPES if dtype in record.allowed()
               for number in range(len(record.samples(dtype)))]
    failures = []
    for sample, answer in zip(samples, torch.ask([s.call for s in samples])):
        try:
            compare(sample, answer)
        except AssertionError as error:
            failures.append(str(error))
    count("ops")
    assert not failures, f"{len(failures)} of {len(samples)} differ\n" + "\n".join(failures[:12])


def test_every_op_has_its_line(torch):
    """In a table, or in the list of those that PyTorch lacks."""
    ops = {r.name for r in RECORDS if r.written is None and not r.has(Trait.RANDOM) and not r.name.endswith("_")}
    assert not sorted(ops - set(TORCH) - OURS), "neither in torch_table nor in torch_table/ours.py"
    assert not sorted((set(TORCH) | OURS) - set(BY_NAME)), "no such op"
    assert not sorted(set(TORCH) & OURS), "both in a table and in torch_table/ours.py"
