"""What the processes of test_sharded_checkpoints.py save and load."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import oar
from group_work import started
from oar import distributed as dist
from oar.distributed import ShardedWeight

DTYPES = ("float32", "float64", "bfloat16", "int64", "bool", "complex64")
SHAPE = (7, 3, 4)


def content(dtype: str, shape: tuple[int, ...] = SHAPE, more: int = 0) -> oar.Tensor:
    values = (np.arange(int(np.prod(shape))) * 7 + more) % 101
    return oar.to_tensor(values.reshape(shape).astype("float32")).astype(dtype)


def pieces_of(key: str, whole: oar.Tensor, cut: str, rank: int, size: int) -> ShardedWeight | oar.Tensor | None:
    """The piece of a tensor that a process has; None if there is no such piece."""
    shape = tuple(whole.shape)
    if cut == "whole":
        return whole.clone()
    if cut == "run":
        flat, count = whole.flatten(), whole.numel().item()
        begin, end = rank * count // size, (rank + 1) * count // size
        return ShardedWeight(key, flat[begin:end].clone(), shape, shape, (0,) * len(shape), True, slice(begin, end))
    axis = int(cut)
    begin, end = rank * shape[axis] // size, (rank + 1) * shape[axis] // size
    if begin == end:
        return None
    where = tuple(slice(begin, end) if i == axis else slice(None) for i in range(len(shape)))
    part = whole[where].clone()
    return ShardedWeight(key, part, tuple(part.shape), shape, tuple(begin if i == axis else 0 for i in range(len(shape))))


def state_of(cut: str, rank: int, size: int, blank: bool, more: int = 0) -> dict[str, Any]:
    state: dict[str, Any] = {"net": {}, "step": 0 if blank else 7 + more, "rates": [] if blank else [0.5, more], "name": "" if blank else "run"}
    for dtype in DTYPES:
        whole = oar.zeros(SHAPE, dtype) if blank else content(dtype, more=more)
        piece = pieces_of(f"net.{dtype}", whole, cut, rank, size)
        if piece is not None:
            state["net"][dtype] = piece
    state["number"] = oar.zeros([]) if blank else oar.to_tensor(2.5)
    state["empty"] = oar.zeros([0, 3])
    return state


def values(tensor: oar.Tensor) -> np.ndarray:
    return tensor.astype("float32").numpy() if tensor.dtype == oar.bfloat16 else tensor.numpy()


def check(state: dict[str, Any], cut: str, rank: int, size: int, more: int = 0) -> None:
    wanted = state_of(cut, rank, size, False, more)
    assert {key: state[key] for key in ("step", "rates", "name")} == {key: wanted[key] for key in ("step", "rates", "name")}
    assert state["number"].item() == 2.5
    for dtype, piece in wanted["net"].items():
        own, other = (getattr(p, "local_tensor", p) for p in (state["net"][dtype], piece))
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(values(own), values(other), err_msg=f"{cut} {dtype}")


CUTS = ("whole", "0", "2", "run")


def save(folder: str) -> None:
    rank, size = started()
    for cut in CUTS:
        dist.save_state_dict(state_of(cut, rank, size, False), os.path.join(folder, f"{cut}_{size}"))


def load(folder: str) -> None:
    """What other numbers of processes have saved, with all cuts by all cuts."""
    rank, size = started()
    for other in sorted(os.listdir(folder)):
        for cut in CUTS:
            state = state_of(cut, rank, size, True)
            dist.load_state_dict(state, os.path.join(folder, other))
            check(state, cut, rank, size)


def several(folder: str) -> None:
    """Several checkpoints in a folder, written in a thread; and mistakes, which all processes hear of."""
    rank, size = started()
    for more in range(4):
        state = state_of("run", rank, size, False, more)
        dist.save_state_dict(state, folder, async_save=True, keep=2)
        for piece in state["net"].values():
            piece.local_tensor.zero_()  # what is saved was copied
    oar.clear_async_save_task_queue()
    dist.barrier()
    assert sorted(file for file in os.listdir(folder) if file.endswith("metadata")) == ["2.metadata", "3.metadata"]
    assert len(os.listdir(folder)) == 2 * (size + 1)
    for number in (None, 3, 2):
        state = state_of("0", rank, size, True)
        dist.load_state_dict(state, folder, unique_id=number)
        check(state, "0", rank, size, 3 if number is None else number)
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"a": oar.ones([rank + 1])}, "in one process and"),
        ({"a": ShardedWeight("a", oar.ones([2]), (2,), (9,), (2 * rank,))}, "elements of a"),
        ({"a": ShardedWeight("a", oar.ones([2]), (2,), (size + 1,), (rank,))}, "pieces of a overlap"),
        ({"a": object() if rank else 1}, "cannot be saved"),
    ]
    for state, text in mistakes:
        try:
            dist.save_state_dict(state, folder)
        except (RuntimeError, TypeError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    group = dist.new_group([0])
    if rank == 0:
        dist.save_state_dict({"own": oar.ones([2])}, os.path.join(folder, "own"), process_group=group)
    dist.barrier()


ROWS = 20_000


def big(step: int, rank: int, size: int) -> dict[str, Any]:
    rows = np.arange(rank * ROWS // size, (rank + 1) * ROWS // size)
    table = oar.to_tensor((rows[:, None] * 31 + np.arange(8) + step).astype("float32"))
    return {"step": step, "table": ShardedWeight("table", table, tuple(table.shape), (ROWS, 8), (int(rows[0]), 0)),
            "bias": oar.full([1000], step, "float64")}


def saves_until_killed(folder: str, log: str, first: int, victim: int, seconds: float, in_thread: bool) -> None:
    """Saves over and over; one process is killed after a while. The last step that has been saved is noted."""
    rank, size = started()
    dist.barrier()
    if rank == victim:
        def kill() -> None:
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
    try:
        for step in range(first, first + 100_000):
            dist.save_state_dict(big(step, rank, size), folder, async_save=in_thread, keep=2)
            if rank != victim:
                Path(log).write_text(str(step - in_thread))  # in a thread, the one before has been completed
    except RuntimeError as error:
        assert "rank" in str(error) or "group" in str(error), error
        os._exit(0)


def newest(folder: str) -> int:
    """The step of the newest checkpoint, after its content has been compared; -1 if there is none."""
    if not any(name.endswith(".metadata") for name in os.listdir(folder)):
        return -1
    state = {**big(0, 0, 1), "step": 0}
    dist.load_state_dict(state, folder)
    wanted = big(state["step"], 0, 1)
    assert np.array_equal(state["table"].local_tensor.numpy(), wanted["table"].local_tensor.numpy())
    assert np.array_equal(state["bias"].numpy(), wanted["bias"].numpy())
    return state["step"]


def kill_often(folder: str, count: int) -> None:
    """Kills a process at random moments while it saves."""
    rng = random.Random(11)
    checkpoints, log = os.path.join(folder, "checkpoints"), os.path.join(folder, "log")
    os.makedirs(checkpoints, exist_ok=True)
    step = 0
    for number in range(count):
        Path(log).write_text("-1")
        arguments = (checkpoints, log, step, number % 2, rng.uniform(0.02, 0.5), number % 3 == 2)
        try:
            dist.spawn(saves_until_killed, args=arguments, nprocs=2, start_method="fork")
        except RuntimeError as error:
            assert "code -9" in str(error), error
        found = newest(checkpoints)
        assert found >= int(Path(log).read_text()) and found >= step - 1, (number, found, Path(log).read_text(), step)
        step = found + 1
    assert step > count, step
