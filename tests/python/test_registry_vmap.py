"""vmap over every op equals a loop."""

import numpy as np

import oar
from registry.compare import TOLERANCE, check_close, values
from registry.records import SAMPLED, Trait, describe, each, fits, is_rising, replaced, tensors_of
from registry.tally import Tally

BATCH = 3
NOTHING_TO_BATCH = {"embedding_renorm_": "it writes by its own schema and has no functional form"}


def turned(t, by):
    """The same values in another order: other data that is as legal as the sample's own. Matrices are scaled instead."""
    if hasattr(t, "structure"):
        return oar.to_tensor(t.numpy() * (1 + by), dtype=t.dtype)
    if is_rising(t):
        return t
    flat = np.roll(t.numpy().ravel(), by).reshape(t.shape)
    return oar.to_tensor(flat, dtype=t.dtype)


def batches(args):
    """For each tensor argument a stack of three variants; and the inputs of a loop."""
    tensors = tensors_of(args)
    variants = [[turned(t, i) for i in range(BATCH)] for t in tensors]
    stacked = [oar._C.ops.stack(v, 0) for v in variants]
    return tensors, variants, stacked


def check(record, args, chosen, what):
    """Gives how many numbers were compared."""
    tensors, variants, stacked = batches(args)
    inputs = [s if i in chosen else t for i, (s, t) in enumerate(zip(stacked, tensors))]
    axes = [0 if i in chosen else None for i in range(len(tensors))]

    def function(*given):
        results = record.call(replaced(args, list(given)))
        return tuple(results)

    found = oar.func.vmap(function, in_axes=axes)(*inputs)
    wanted = []
    for b in range(BATCH):
        given = [oar._C.ops.assign(v[b] if i in chosen else t)
                 for i, (v, t) in enumerate(zip(variants, tensors))]
        wanted.append(record.call(replaced(args, given)))
    assert len(found) == len(wanted[0]), f"{what}: {len(found)} results, a loop gives {len(wanted[0])}"
    compared = 0
    for k, result in enumerate(found):
        loop = np.stack([values(w[k]) for w in wanted])
        assert result.dtype == wanted[0][k].dtype, f"{what}: {result.dtype}, a loop gives {wanted[0][k].dtype}"
        compared += check_close(values(result), loop, TOLERANCE.get(result.dtype.name, 0.0), f"{what}, result {k}")
    return compared


@each(r for r in SAMPLED if r.takes_tensors and not r.traits & (Trait.RANDOM | Trait.DATA_DEPENDENT)
      and not r.writes_aside)
def test_vmap(record):
    tally = Tally(record, NOTHING_TO_BATCH)
    dtype = next(d for d in ("float32", "complex64", "int64", "bool") if d in record.allowed())
    for number, args in enumerate(record.samples(dtype)):
        count = len(tensors_of(args))
        written = record.written is not None
        for chosen in sorted({tuple(range(count)), (0,), (count - 1,)} - {()}):
            if count == 0 or not fits(record, dtype, number) or (written and record.written not in chosen):
                continue
            what = f"[{dtype}] {describe(record, number, args)}, batched {list(chosen)}"
            with tally.sample(what):
                try:
                    tally.add(check(record, record.samples(dtype)[number], chosen, what))
                except NotImplementedError as error:
                    # A write by its own schema may say that it has no functional form; a derived `name_` may not.
                    if not (written and record.inplace_of is None and "no functional form" in str(error)):
                        raise
    tally.close()
