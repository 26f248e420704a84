"""Values, gradients and dtypes of the registry's ops against Paddle's, on the registry's own samples."""

from __future__ import annotations

import os

import pytest

from peers.counts import COMPARED, count
from peers.paddle_calls import expression
from peers.paddle_table import CONSTANT, DIFFERENT, OURS, PADDLE, SINGLE
from peers.samples import Tables, compare_all, of_record
from registry.records import BY_NAME, RECORDS, Trait, each

if not os.access(os.environ.get("OAR_PADDLE", ""), os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)

DTYPES = ("bool", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def is_compared(record) -> bool:
    plain = record.written is None and not record.writes_aside and not record.has(Trait.RANDOM)
    return plain and (record.name in PADDLE or bool(record.python)) and record.name not in OURS


TABLES = Tables("Paddle", expression, DIFFERENT, CONSTANT, errors_lack=True, single=SINGLE)


def _compared() -> int:
    return COMPARED.get("values", 0) + COMPARED.get("samples that differ by definition", 0)


OPS = [r for r in RECORDS if is_compared(r)]
SEEN = []


@each(OPS)
def test_agrees(record, paddle):
    samples = [of_record(record, dtype, number, TABLES, gradients=dtype in ("float64", "complex128"))
               for dtype in DTYPES if dtype in record.allowed() for number in range(len(record.samples(dtype)))]
    count("ops")
    SEEN.append(record.name)
    before = _compared()
    compare_all(samples, paddle, TABLES)
    assert _compared() > before, "Paddle lacks every case: see paddle_table/ours.py"


def test_the_tables_fit(paddle):
    """Every op of a table is one of ours, and every reason is still needed."""
    assert not sorted((set(PADDLE) | OURS | set(DIFFERENT)) - set(BY_NAME)), "no such op"
    if len(SEEN) == len(OPS):
        unused = "\n".join(TABLES.unused())
        assert not unused, f"no longer needed:\n{unused}"
