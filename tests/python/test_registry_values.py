"""Values, shapes and dtypes of every op, in every dtype, against its record's NumPy expression."""

import numpy as np
import pytest

import oar
from registry.compare import SMALLEST, TOLERANCE, check_close, expected_dtypes, reference, values
from registry.records import BY_NAME, RECORDS, SAMPLED, Trait, category, describe, each
from registry.tally import Tally

# Ops that take a dtype only with the attribute `dtype`, into which they cast it.
ONLY_WITH_DTYPE = {"softmax": "bool int", "log_softmax": "bool int"}


def test_registry_is_valid():
    # Other tests register ops too; those are not checked here.
    assert [line for line in oar._C.validate_registry() if line.split(":")[0] in BY_NAME] == []


def test_only_ops_with_programs_have_no_samples():
    assert {r.name for r in RECORDS} - {r.name for r in SAMPLED} == \
        {"fused", "scan", "switch_case", "while_loop", "with_derivative"}


@each(SAMPLED)
def test_reference_and_samples_exist(record):
    assert record.samples("float32"), "no samples"
    assert record.numpy or record.has(Trait.RANDOM) or record.written is not None, "no NumPy reference"


def _fits(wanted: np.ndarray, dtype: str) -> np.ndarray:
    """Large numbers in a narrow float: infinity."""
    if dtype != "float16" or wanted.dtype.kind != "f":
        return wanted
    with np.errstate(all="ignore"):
        return np.where(np.isinf(wanted.astype(np.float16)), np.sign(wanted) * np.inf, wanted)


@each(r for r in RECORDS if r.numpy and r.written is None)
def test_values(record):
    tally = Tally(record)
    for dtype in record.allowed():
        for number, args in enumerate(record.samples(dtype)):
            what = f"[{dtype}] {describe(record, number, args)}"
            stated = any(isinstance(a, oar.dtype) for a in args)
            if record.name in ONLY_WITH_DTYPE and not stated and category(dtype) in ONLY_WITH_DTYPE[record.name]:
                continue
            with tally.sample(what):
                wanted = reference(record, args)
                dtypes = expected_dtypes(record, args, dtype)
                results = record.call(args)
                assert len(results) == len(wanted), f"{what}: {len(results)} results, expected {len(wanted)}"
                for i, (result, want) in enumerate(zip(results, wanted)):
                    part = what if len(results) == 1 else f"{what}, result {i}"
                    tolerance = TOLERANCE.get(result.dtype.name, 0.0)
                    tally.add(check_close(values(result), _fits(want, result.dtype.name), tolerance, part,
                                          SMALLEST.get(result.dtype.name, 0.0)))
                    assert result.dtype.name in dtypes[i], \
                        f"{part}: dtype {result.dtype.name}, expected {' or '.join(dtypes[i])}"
    tally.close()


@each(r for r in RECORDS if r.written is not None)
def test_inplace(record):
    """The same tensor comes back, written, its version raised, with the values of the functional op."""
    tally = Tally(record)
    for dtype in record.allowed():
        for number, args in enumerate(record.samples(dtype)):
            what = f"[{dtype}] {describe(record, number, args)}"
            target = args[record.written]
            before, place = target.inplace_version, target.data_ptr()
            functional = None
            wanted = reference(record, args)[0] if record.numpy and not record.inplace_of else None
            if record.inplace_of:
                functional = BY_NAME[record.inplace_of].call(record.samples(dtype)[number])[0]
            try:
                result = record.function(*args)
            except (ValueError, TypeError) as error:
                # Right only if the result does not fit into the written operand; and the error names the op.
                assert functional is not None, f"{what}: {error}"
                assert functional.shape != target.shape or functional.dtype != target.dtype, f"{what}: {error}"
                assert f"[{record.name}]" in str(error), f"{what}: the error does not name the op: {error}"
                continue
            assert result is target, f"{what}: another object came back"
            assert target.data_ptr() == place, f"{what}: the memory moved"
            assert target.inplace_version > before or target.size == 0, f"{what}: the version did not change"
            if functional is not None:
                cast = functional if functional.dtype == target.dtype else oar._C.ops.cast(functional, target.dtype)
                wanted = values(cast)
            if wanted is not None:
                tally.add(check_close(values(target), wanted, TOLERANCE.get(dtype, 0.0), what))
    tally.close()


@each(r for r in RECORDS if r.has(Trait.RANDOM) and not r.numpy)
def test_random_shape_and_dtype(record):
    tally = Tally(record)
    for number, args in enumerate(record.samples("float32")):
        oar.seed(7)
        first = record.call(args)
        oar.seed(7)
        second = record.call(record.samples("float32")[number])
        for a, b in zip(first, second):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(values(a), values(b), err_msg=describe(record, number, args))
            tally.add(a.size)
    tally.close()


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_samples_are_the_same_every_time(dtype):
    a, b = (oar._C.op_samples("add", dtype)[0][0].numpy() for _ in range(2))
    np.testing.assert_array_equal(a, b)
