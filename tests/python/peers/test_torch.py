"""Values and gradients of the registry's ops against PyTorch's, on the registry's own samples."""

from __future__ import annotations

import os

import pytest

from peers.counts import count
from peers.samples import Tables, compare_all, of_record
from peers.torch_table import CONSTANT, DIFFERENT, OURS, TORCH
from registry.records import BY_NAME, RECORDS, Trait, each

if not os.access(os.environ.get("OAR_TORCH", ""), os.X_OK):
    pytest.skip("needs OAR_TORCH, a Python that has PyTorch: `make bench-peers`, then `make test-torch`",
                allow_module_level=True)

DTYPES = ("bool", "int64", "float32", "float64", "complex128")
TABLES = Tables("PyTorch", lambda record, _: TORCH[record.name], {name: [reason] for name, reason in DIFFERENT.items()},
                CONSTANT, with_dtypes=False)


@each(r for r in RECORDS if r.name in TORCH)
def test_agrees(record, torch):
    samples = [of_record(record, dtype, number, TABLES, gradients=dtype in ("float64", "complex128"))
               for dtype in DTYPES if dtype in record.allowed() for number in range(len(record.samples(dtype)))]
    count("ops")
    compare_all(samples, torch, TABLES)


def test_every_op_has_its_line(torch):
    """In a table, or in the list of those that PyTorch lacks."""
    ops = {r.name for r in RECORDS
           if r.written is None and not r.has(Trait.RANDOM) and not r.name.endswith("_") and r.family != "collective"}
    assert not sorted(ops - set(TORCH) - OURS), "neither in torch_table nor in torch_table/ours.py"
    assert not sorted((set(TORCH) | OURS) - set(BY_NAME)), "no such op"
    assert not sorted(set(TORCH) & OURS), "both in a table and in torch_table/ours.py"
