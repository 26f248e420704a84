"""What the processes of test_distributed.py do. Each knows what all of them have, so each checks the results by NumPy alone."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import oar
from oar import distributed as dist

REDUCED = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8", "uint8", "bool", "complex64", "complex128")
MOVED = (*REDUCED, "float8_e4m3fn")


def started() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    dist.init_parallel_env()
    return dist.get_rank(), dist.get_world_size()


def numbers(rank: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """What the process ``rank`` has: small whole numbers, whose sums are exact in every dtype."""
    whole = np.random.default_rng(rank + 17).integers(0 if dtype in ("uint8", "bool") else -3, 4, shape)
    if dtype.startswith("complex"):
        return whole + 1j * np.random.default_rng(rank + 99).integers(-3, 4, shape)
    return whole.astype("float64")


def tensor(rank: int, shape: tuple[int, ...], dtype: str) -> oar.Tensor:
    return oar.to_tensor(numbers(rank, shape, dtype)).astype(dtype)


def values(x: oar.Tensor) -> np.ndarray:
    return x.astype("complex128" if x.is_complex() else "float64").numpy()


def expected(rank: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return values(tensor(rank, shape, dtype))


def same(x: oar.Tensor, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(values(x), wanted)


def collectives(dtypes: tuple[str, ...] = MOVED) -> None:
    rank, size = started()
    for dtype in dtypes:
        for shape in ((3, 2), (), (0, 2)):
            everything = [expected(r, shape, dtype) for r in range(size)]
            parts: list[oar.Tensor] = []
            dist.all_gather(parts, tensor(rank, shape, dtype))
            for part, wanted in zip(parts, everything, strict=True):
                same(part, wanted)
            for root in range(size):
                x = tensor(rank, shape, dtype)
                dist.broadcast(x, root)
                same(x, everything[root])
                gathered: list[oar.Tensor] = []
                dist.gather(tensor(rank, shape, dtype), gathered, root)
                assert len(gathered) == (size if rank == root else 0)
                for part, wanted in zip(gathered, everything):
                    same(part, wanted)
                x = oar.zeros(shape, dtype)
                dist.scatter(x, [tensor(10 * root + r, shape, dtype) for r in range(size)] if rank == root else None, root)
                same(x, expected(10 * root + rank, shape, dtype))
            received: list[oar.Tensor] = []
            dist.alltoall(received, [tensor(10 * rank + r, shape, dtype) for r in range(size)])
            for r, part in enumerate(received):
                same(part, expected(10 * r + rank, shape, dtype))
        exchange(rank, size, dtype)
    for dtype in REDUCED:
        reductions(rank, size, dtype)


def exchange(rank: int, size: int, dtype: str) -> None:
    """Rank r sends rank p as many rows as r + p."""
    sent = [tensor(10 * rank + p, (rank + p, 2), dtype) for p in range(size)]
    out = oar.zeros([sum(rank + p for p in range(size)), 2], dtype)
    splits = [rank + p for p in range(size)]
    dist.alltoall_single(out, oar.concat(sent), splits, splits)
    same(out, np.concatenate([expected(10 * p + rank, (rank + p, 2), dtype) for p in range(size)]))
    whole, out = tensor(rank, (2 * size, 3), dtype), oar.zeros([2 * size, 3], dtype)
    dist.alltoall_single(out, whole)
    same(out, np.concatenate([expected(p, (2 * size, 3), dtype)[2 * rank : 2 * rank + 2] for p in range(size)]))


def combined(op: int, everything: list[np.ndarray], dtype: str) -> np.ndarray:
    if dtype == "bool":
        everything = [x.astype(bool) for x in everything]
    fold = {dist.ReduceOp.SUM: np.add, dist.ReduceOp.AVG: np.add, dist.ReduceOp.MAX: np.maximum, dist.ReduceOp.MIN: np.minimum,
            dist.ReduceOp.PROD: np.multiply}[op]
    total = everything[0]
    for x in everything[1:]:
        total = fold(total, x)
    return total / len(everything) if op == dist.ReduceOp.AVG else total


def reductions(rank: int, size: int, dtype: str) -> None:
    shape = (3, 5)
    everything = [expected(r, shape, dtype) for r in range(size)]
    parts = [[expected(10 * r + p, shape, dtype) for r in range(size)] for p in range(size)]
    for op in range(5):
        if op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN) and dtype.startswith("complex"):
            continue
        if op == dist.ReduceOp.AVG and (size == 3 or not dtype.startswith(("float", "bfloat", "complex"))):
            continue
        wanted = combined(op, everything, dtype)
        if dtype == "uint8":
            wanted = wanted % 256
        elif dtype == "int8":
            wanted = (wanted + 128) % 256 - 128
        x = tensor(rank, shape, dtype)
        dist.all_reduce(x, op)
        same(x, wanted)
        x = tensor(rank, shape, dtype)
        dist.reduce(x, size - 1, op)
        same(x, wanted if rank == size - 1 else everything[rank])
        x = oar.zeros(shape, dtype)
        dist.reduce_scatter(x, [tensor(10 * rank + p, shape, dtype) for p in range(size)], op)
        own = combined(op, parts[rank], dtype)
        same(x, own % 256 if dtype == "uint8" else (own + 128) % 256 - 128 if dtype == "int8" else own)


def streams() -> None:
    rank, size = started()
    stream = dist.stream
    whole = oar.zeros([size * 2, 3])
    stream.all_gather(whole, tensor(rank, (2, 3), "float32"), use_calc_stream=True)
    same(whole, np.concatenate([expected(r, (2, 3), "float32") for r in range(size)]))
    part = oar.zeros([2, 3])
    stream.reduce_scatter(part, whole)
    same(part, size * expected(rank, (2, 3), "float32"))
    stream.scatter(part, whole if rank == 1 else None, src=1)
    same(part, expected(rank, (2, 3), "float32"))
    out = oar.zeros([size * 2, 3])
    stream.alltoall(out, whole)
    same(out, np.concatenate([expected(rank, (2, 3), "float32")] * size))
    # Tensors that are not contiguous, a list that is overwritten, tasks.
    column = oar.zeros([4, 2])[:, 1]
    column.set_value(oar.full([4], float(rank)))
    task = dist.all_reduce(column, sync_op=False)
    task.wait()
    assert task.is_completed() and column.tolist() == [size * (size - 1) / 2] * 4
    wanted = [oar.zeros([3]) for _ in range(size)]
    places = [x.data_ptr() for x in wanted]
    dist.all_gather(wanted, oar.full([3], float(rank)))
    assert [x.data_ptr() for x in wanted] == places and [x.tolist() for x in wanted] == [[r] * 3 for r in range(size)]
    tasks, sums = [], [oar.full([1000], float(rank + i)) for i in range(20)]
    for x in sums:
        tasks.append(dist.all_reduce(x, sync_op=False))
    for i, (task, x) in enumerate(zip(tasks, sums)):
        task.synchronize()
        assert x[0].item() == size * i + size * (size - 1) / 2


def messages() -> None:
    rank, size = started()
    after, before = (rank + 1) % size, (rank - 1) % size
    x, y = tensor(rank, (100, 3), "bfloat16"), oar.zeros([100, 3], "bfloat16")
    tasks = dist.batch_isend_irecv([dist.P2POp(dist.irecv, y, before), dist.P2POp(dist.isend, x, after)])
    for task in tasks:
        task.wait()
    same(y, expected(before, (100, 3), "bfloat16"))
    if rank == 0:
        dist.send(x, 1)
        dist.send_object_list([{"a": 1}, "two" * 1000], 1)
    elif rank == 1:
        dist.recv(y, 0)
        same(y, expected(0, (100, 3), "bfloat16"))
        given = [None, None]
        dist.recv_object_list(given, 0)
        assert given == [{"a": 1}, "two" * 1000]
    found: list[object] = []
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank * 100})
    assert found == [{"rank": r, "text": "x" * r * 100} for r in range(size)]
    pair = [f"from {rank}", rank]
    dist.broadcast_object_list(pair, src=size - 1)
    assert pair == [f"from {size - 1}", size - 1]
    one: list[object] = []
    dist.scatter_object_list(one, [(r, "x" * r) for r in range(size)] if rank == 0 else None, src=0)
    assert one == [(rank, "x" * rank)]
    dist.barrier()


def subgroups() -> None:
    rank, size = started()
    assert dist.get_backend() == "GLOO" and dist.is_initialized()
    odd = dist.new_group([r for r in range(size) if r % 2])
    even = dist.new_group([r for r in range(size) if r % 2 == 0])
    last_two = dist.new_group([size - 1, size - 2])
    own = odd if rank % 2 else even
    x = oar.full([2], float(rank))
    dist.all_reduce(x, group=own)
    assert x.tolist() == [sum(own.ranks)] * 2
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert dist.all_reduce(oar.ones([1]), group=even if rank % 2 else odd) is None
    assert any("is not in group" in str(w.message) for w in found)
    if rank >= size - 2:
        x = oar.full([2], float(rank))
        dist.broadcast(x, size - 1, last_two)
        assert x.tolist() == [size - 1] * 2
        assert last_two.get_group_rank(size - 1) == 1 and dist.get_world_size(last_two) == 2 and last_two.backend == "GLOO"
    dist.barrier()
    dist.shutdown_process_group(own)
    dist.restart_process_group(own)
    x = oar.full([2], float(rank))
    dist.all_reduce(x, group=own)
    assert x.tolist() == [sum(own.ranks)] * 2
    dist.gloo_init_parallel_env(rank, size, os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[0])
    dist.gloo_barrier()
    dist.gloo_release()
    dist.destroy_process_group(own)
    dist.destroy_process_group()
    assert not dist.is_initialized()


def same_bits(folder: str) -> None:
    rank, size = started()
    rng = np.random.default_rng(rank)
    x = oar.to_tensor(rng.standard_normal(300_001).astype("float32") * 10.0 ** rng.integers(-4, 5, 300_001).astype("float32"))
    sums = []
    for _ in range(3):
        y = x.clone()
        dist.all_reduce(y)
        sums.append(y.numpy().tobytes())
    assert len(set(sums)) == 1
    Path(folder, f"{rank}.bin").write_bytes(sums[0])


def ops_and_programs() -> None:
    """The collectives as ops: derivatives, programs, captured steps."""
    rank, size = started()
    ops = oar._C.ops
    x = tensor(rank, (4, 3), "float64")
    x.stop_gradient = False
    weights = tensor(rank + 50, (4, 3), "float64")
    all_weights = [expected(r + 50, (4, 3), "float64") for r in range(size)]

    def gradient(y: oar.Tensor, weight: oar.Tensor) -> np.ndarray:
        return values(oar.grad((y * weight).sum(), x)[0])

    np.testing.assert_allclose(gradient(ops.all_reduce(x, "sum", 0, size), weights), sum(all_weights))
    np.testing.assert_allclose(gradient(ops.all_reduce(x, "sum", 0, size, True), weights), all_weights[rank])
    np.testing.assert_allclose(gradient(ops.all_reduce(x, "avg", 0, size), weights), sum(all_weights) / size)
    np.testing.assert_allclose(gradient(ops.join_gradients(x, 0, size), weights), sum(all_weights))
    np.testing.assert_allclose(gradient(ops.broadcast_from(x, 1, 0, size), weights), sum(all_weights) * (rank == 1))
    np.testing.assert_allclose(gradient(ops.reduce_to(x, 1, "sum", 0, size), weights), all_weights[1])
    everything = [expected(r, (4, 3), "float64") for r in range(size)]
    most = np.max(everything, axis=0)
    ties = np.sum([e == most for e in everything], axis=0)
    np.testing.assert_allclose(gradient(ops.all_reduce(x, "max", 0, size), weights),
                               sum(all_weights) * (everything[rank] == most) / ties)
    wide = [expected(100 + r, (size, 4, 3), "float64") for r in range(size)]
    np.testing.assert_allclose(gradient(ops.all_gather(x, 0, size), oar.to_tensor(wide[rank])), sum(w[rank] for w in wide))
    np.testing.assert_allclose(gradient(ops.gather_to(x, 0, 0, size), oar.to_tensor(wide[rank])), wide[0][rank])
    parts = oar.to_tensor(wide[rank], stop_gradient=False)
    for name, wanted in (("reduce_scatter", np.stack(all_weights)), ("scatter_from", np.stack(all_weights) * (rank == 0))):
        y = ops.reduce_scatter(parts, "sum", 0, size) if name == "reduce_scatter" else ops.scatter_from(parts, 0, 0, size)
        np.testing.assert_allclose(values(oar.grad((y * weights).sum(), parts)[0]), wanted)
    y = ops.all_to_all(parts, 0, size)
    np.testing.assert_allclose(values(oar.grad((y * oar.to_tensor(wide[rank])).sum(), parts)[0]), np.stack([w[rank] for w in wide]))
    # Second derivatives.
    first = oar.grad((ops.all_reduce(x, "sum", 0, size) ** 3).sum(), x, create_graph=True)[0]
    second = oar.grad(first.sum(), x)[0]
    total = sum(everything)
    np.testing.assert_allclose(values(second), size * size * 6 * total)

    @oar.jit.to_static
    def step(a: oar.Tensor) -> oar.Tensor:
        b = a * 2
        dist.all_reduce(b)
        parts: list[oar.Tensor] = []
        dist.all_gather(parts, b + dist.get_rank())
        return oar.stack(parts)

    for _ in range(3):
        same(step(tensor(rank, (2, 2), "float32")),
             np.stack([2 * sum(expected(r, (2, 2), "float32") for r in range(size)) + r for r in range(size)]))

    def unused(a: oar.Tensor) -> oar.Tensor:
        ops.all_reduce(a, "sum", 0, size)  # its result is not read, but others wait for it
        return a + 1

    program = oar.jit.capture(unused, [oar.static.InputSpec([2], "float32")])
    assert "all_reduce" in str(program) and program(oar.ones([2])).tolist() == [2, 2]
    assert oar.func.vmap(lambda a: ops.all_gather(a, 0, size))(oar.full([3, 2], float(rank))).tolist() == [
        [[float(r)] * 2 for r in range(size)]] * 3


CALLS: dict[str, Callable[[int, int], object]] = {
    "all_reduce": lambda rank, size: dist.all_reduce(oar.ones([1000])),
    "broadcast": lambda rank, size: dist.broadcast(oar.ones([1000]), 1),
    "reduce": lambda rank, size: dist.reduce(oar.ones([1000]), 0),
    "all_gather": lambda rank, size: dist.all_gather([], oar.ones([1000])),
    "reduce_scatter": lambda rank, size: dist.reduce_scatter(oar.ones([10]), [oar.ones([10])] * size),
    "alltoall": lambda rank, size: dist.alltoall([], [oar.ones([10])] * size),
    "gather": lambda rank, size: dist.gather(oar.ones([10]), [], 0),
    "scatter": lambda rank, size: dist.scatter(oar.ones([10]), [oar.ones([10])] * size, 1),
    "barrier": lambda rank, size: dist.barrier(),
    "recv": lambda rank, size: dist.recv(oar.ones([10]), 1),
}


def killed(what: str, folder: str) -> None:
    """The process 1 is killed; the others write what they are told. Some calls need nothing of the others at first, so they are
    repeated."""
    rank, size = started()
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        for _ in range(1000):
            CALLS[what](rank, size)
    except RuntimeError as error:
        Path(folder, f"{what}.{rank}").write_text(f"{time.monotonic() - begin:.1f} {error}")


def absent(folder: str) -> None:
    """The process 1 does not make the call."""
    rank, size = started()
    dist.barrier()
    begin = time.monotonic()
    if rank == 1:
        time.sleep(6)
        return
    try:
        dist.all_reduce(oar.ones([10]))
    except RuntimeError as error:
        Path(folder, f"absent.{rank}").write_text(f"{time.monotonic() - begin:.1f} {error}")


def late(folder: str) -> None:
    """The process 1 does not even meet the others."""
    if os.environ["PADDLE_TRAINER_ID"] == "1":
        return
    try:
        dist.init_parallel_env()
    except RuntimeError as error:
        Path(folder, "late." + os.environ["PADDLE_TRAINER_ID"]).write_text(f"0 {error}")


def fails() -> None:
    rank, _ = started()
    if rank == 1:
        raise ValueError("this one is meant")
    dist.barrier()
