"""Results do not depend on the memory layout of an operand."""

import numpy as np
import pytest

import oar
from registry.compare import TOLERANCE, check_close, values
from registry.records import SAMPLED, Trait, describe, each, fits, is_rising, replaced, tensors_of
from registry.tally import Tally

ops = oar._C.ops
LAID_OUT = [r for r in SAMPLED if r.takes_tensors and not r.has(Trait.RANDOM) and not r.writes_aside
            and r.name != "as_strided"]


def transposed(t):
    """The same values with the axes' strides in reverse order."""
    axes = list(range(t.ndim))[::-1]
    return ops.transpose(ops.assign(ops.transpose(t, axes)).contiguous(), axes)


def strided(t):
    """Every second element of a larger tensor, along every axis."""
    if t.ndim == 0:
        return ops.stack([ops.zeros_like(t), t], 0)[1]
    large = ops.zeros([2 * n + 1 for n in t.shape], t.dtype)
    view = large[tuple(slice(1, None, 2) for _ in t.shape)]
    ops.copy_into(view, t)
    return view


def reversed_steps(t):
    """Stored backwards along every axis."""
    back = (slice(None, None, -1),) * t.ndim
    return ops.assign(t[back]).contiguous()[back] if t.ndim else t


def spread(t):
    """Its first slice, repeated n times without a copy: the result of a broadcast. Rows of a matrix are not repeated."""
    if hasattr(t, "structure") and t.ndim == 2:
        return t
    return ops.broadcast_to(t[:1], t.shape) if t.ndim and t.shape[0] and not is_rising(t) else t


LAYOUTS = {"transposed": transposed, "strided": strided, "reversed": reversed_steps}


def same(record, plain, laid_out, what):
    """Gives how many numbers were compared."""
    found, wanted = record.call(laid_out), record.call(plain)
    assert len(found) == len(wanted), f"{what}: {len(found)} results, expected {len(wanted)}"
    compared = 0
    for a, b in zip(found, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        compared += check_close(values(a), values(b), TOLERANCE.get(a.dtype.name, 0.0), what)
    return compared


def test_layouts_are_what_they_say():
    t = oar.to_tensor(np.arange(12.0).reshape(3, 4))
    for layout in LAYOUTS.values():
        assert not layout(t).is_contiguous()
        np.testing.assert_array_equal(layout(t).numpy(), t.numpy())
    assert spread(t).strides[0] == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@each(r for r in LAID_OUT)
def test_layout(record, layout):
    tally = Tally(record)
    for dtype in [d for d in ("float32", "complex64", "int64", "bool") if d in record.allowed()][:2]:
        for number, args in enumerate(record.samples(dtype)):
            what = f"[{dtype}] {layout} {describe(record, number, args)}"
            laid_out = replaced(args, [LAYOUTS[layout](t) for t in tensors_of(args)])
            if tensors_of(args) and fits(record, dtype, number):
                with tally.sample(what):
                    tally.add(same(record, args, laid_out, what))
    tally.close()


@each(r for r in LAID_OUT if r.written is None)
def test_broadcast_operands(record):
    tally = Tally(record)
    dtype = "float32" if "float32" in record.allowed() else record.allowed()[0]
    for number, args in enumerate(record.samples(dtype)):
        what = describe(record, number, args)
        shown = [spread(t) for t in tensors_of(args)]
        copies = [oar.to_tensor(t.numpy(), dtype=t.dtype) for t in shown]
        if shown:
            with tally.sample(what):
                tally.add(same(record, replaced(args, copies), replaced(args, shown), what))
    tally.close()
