"""What the processes of test_sharded_tensors.py do: every op on tensors whose pieces they hold, against the whole call.

Run alone, it goes through all samples: python tests/python/shard_work.py --processes 3 [--op matmul] [--samples 99]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

import oar
from oar import distributed as dist
from oar.distributed import Partial, ReduceType, Replicate, Shard
from registry.compare import TOLERANCE, check_close, values
from registry.records import SAMPLED, Record, Trait, describe, replaced, tensors_of

WIDEST = ("float64", "int64", "complex128", "bool")
# They are about processes themselves.
OTHERS = Trait.EXCHANGES


def started(axes: int = 1) -> dist.ProcessMesh:
    """The grid of all processes."""
    dist.init_parallel_env()
    count = dist.get_world_size()
    shape = [count] if axes == 1 else [count // 2, 2]
    return dist.ProcessMesh(np.arange(count).reshape(shape), dim_names=["x", "y"][: len(shape)])


def layouts(tensors: list[oar.Tensor], axes: int) -> Iterator[list]:
    """For each tensor its placements, or None for a plain one."""
    plain: list = [None] * len(tensors)

    def alone(i: int, *placements: object) -> list:
        return [*plain[:i], [*placements, *[Replicate()] * (axes - len(placements))], *plain[i + 1:]]

    for i, t in enumerate(tensors):
        for axis in range(t.ndim):
            yield alone(i, Shard(axis))
            if axes > 1:
                yield alone(i, Replicate(), Shard(axis))
                yield alone(i, Shard(axis), Shard((axis + 1) % t.ndim))
        yield alone(i, Replicate())
        if t.dtype.name in ("float64", "complex128", "int64"):
            yield alone(i, Partial())
        if t.dtype.name == "float64":
            yield alone(i, Partial(ReduceType.kRedMax))
    if len(tensors) > 1:
        for last in (False, True):
            yield [[Shard(t.ndim - 1 if last else 0), *[Replicate()] * (axes - 1)] if t.ndim else None for t in tensors]
        yield [[Partial(), *[Replicate()] * (axes - 1)] if t.dtype.name == "float64" else None for t in tensors]


def laid_out(t: oar.Tensor, mesh: dist.ProcessMesh, placements: list | None) -> oar.Tensor:
    if placements is None:
        twin = t.clone()
    else:
        twin = dist.shard_tensor(t, mesh, placements)
    if hasattr(t, "fixed"):
        twin.fixed = t.fixed
    return twin


def is_differentiable(t: oar.Tensor) -> bool:
    return t.dtype.name in ("float64", "complex128") and not getattr(t, "fixed", False)


class Run:
    """A call, and what it wrote."""

    def __init__(self, record: Record, args: list, gradients: bool) -> None:
        tensors = tensors_of(args)
        wanted = [t for t in tensors if is_differentiable(t)] if gradients else []
        for t in wanted:
            t.stop_gradient = False
        oar.seed(7)
        self.results = [r for r in record.call(args) if isinstance(r, oar.Tensor)]
        self.written = [] if gradients else tensors
        outputs = [r for r in self.results if not r.stop_gradient]
        self.grads: list = []
        if outputs and wanted:
            rng = np.random.default_rng(3)
            weights = [oar.to_tensor(rng.standard_normal(r.shape), dtype=r.dtype) for r in outputs]
            self.grads = [g for g in oar.grad(outputs, wanted, weights, allow_unused=True)]

    def all(self) -> list:
        return [*self.results, *self.written, *self.grads]


def compare(what: str, sharded: Run, whole: Run) -> int:
    count = 0
    assert len(sharded.all()) == len(whole.all()), f"{what}: {len(sharded.all())} tensors instead of {len(whole.all())}"
    for i, (got, wanted) in enumerate(zip(sharded.all(), whole.all())):
        if wanted is None or got is None:
            assert got is wanted, f"{what}: gradient {i} is {got}, not {wanted}"
            continue
        tolerance = TOLERANCE.get(wanted.dtype.name, 0.0)
        assert got.dtype == wanted.dtype, f"{what}: tensor {i} is {got.dtype}, not {wanted.dtype}"
        assert tuple(got.shape) == tuple(wanted.shape), f"{what}: tensor {i} is {got.shape}, not {wanted.shape}"
        count += max(check_close(values(got), values(wanted), tolerance, f"{what}, tensor {i}"), 1)
    return count


def is_cut(results: list[oar.Tensor]) -> bool:
    """Whether the call ran on pieces: a result of one that was gathered is replicated."""
    return any(r.is_dist() and not all(p.is_replicated() for p in r.placements) for r in results)


def check_op(record: Record, mesh: dist.ProcessMesh, most: int, failures: list[str]) -> list[int]:
    """How many numbers were compared of forward calls and with gradients, and how many forward calls were cut."""
    dtype = next(d for d in WIDEST if d in record.allowed())
    counts = [0, 0, 0]
    for number, args in enumerate(record.samples(dtype)[:most]):
        tensors = tensors_of(args)
        if not tensors or not any(isinstance(t, oar.Tensor) and t._kind == "dense" for t in tensors):
            continue
        for with_gradients in (False, True):
            if with_gradients and (record.has(Trait.NO_GRAD) or any("!" in t for t in record.types)
                                   or not any(is_differentiable(t) for t in tensors)):
                continue
            try:
                whole = Run(record, replaced(args, [laid_out(t, mesh, None) for t in tensors]), with_gradients)
            except Exception:  # noqa: BLE001  (a sample that the op refuses, or without a derivative)
                continue
            for placements in layouts(tensors, mesh.ndim):
                what = f"{describe(record, number, args)} as {placements}{' with gradients' * with_gradients}"
                try:
                    own = replaced(args, [laid_out(t, mesh, p) for t, p in zip(tensors, placements)])
                    sharded = Run(record, own, with_gradients)
                    counts[with_gradients] += compare(what, sharded, whole)
                    counts[2] += not with_gradients and is_cut(sharded.results)
                except AssertionError as error:
                    failures.append(str(error))
                except Exception as error:  # noqa: BLE001
                    failures.append(f"{what}: {error!r}")
                    if "has waited" in str(error) or "closed" in str(error):
                        return counts
    return counts


def every_op(most: int, axes: int = 1, part: int = 0, parts: int = 1, only: str = "", loud: bool = False) -> None:
    mesh = started(axes)
    failures: list[str] = []
    totals, ops, cut_ops = np.zeros(3, int), 0, 0
    for i, record in enumerate(SAMPLED):
        if record.traits & OTHERS or i % parts != part or (only and record.name not in only.split(",")):
            continue
        if loud and dist.get_rank() == 0:
            print(record.name, flush=True)
        begin = time.monotonic()
        found = check_op(record, mesh, most, failures)
        totals, ops, cut_ops = totals + found, ops + (found[0] > 0), cut_ops + (found[2] > 0)
        if loud and time.monotonic() - begin > 10 and dist.get_rank() == 0:
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
        if failures and any("has waited" in f or "closed" in f for f in failures[-1:]):
            break
    if dist.get_rank() == 0:
        print(f"{ops} ops, {cut_ops} of them cut, in {totals[2]} calls: {totals[0]} numbers compared, {totals[1]} more with gradients, "
              f"{len(failures)} failures", flush=True)
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures[:40])
    assert totals[0] > 0 and (only or (totals.all() and cut_ops > ops / 2)), "too little was compared"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Every op on sharded tensors, by real processes, against the whole call.")
    parser.add_argument("--processes", type=int, default=2, help="how many processes hold pieces (default: 2)")
    parser.add_argument("--axes", type=int, default=1, choices=(1, 2), help="the axes of their grid; 2 needs an even number of processes")
    parser.add_argument("--samples", type=int, default=99, help="at most so many samples of each op")
    parser.add_argument("--op", default="", help="only these ops, separated by commas")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
    sys.exit(dist.spawn(every_op, args=(given.samples, given.axes, 0, 1, given.op, True), nprocs=given.processes) and 0)
