"""What the workers of test_rpc.py do and call."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import AuthenticationError, Client

import numpy as np
import oar
import pytest
from oar import distributed as dist
from oar.distributed import rpc


def scaled(x: oar.Tensor, factor: float = 1.0) -> oar.Tensor:
    return x * factor


def who() -> str:
    return rpc.get_current_worker_info().name


def nested(depth: int) -> list[str]:
    """Each worker asks the next one, so that calls wait for calls."""
    me = rpc.get_current_worker_info()
    workers = rpc.get_all_worker_infos()
    following = workers[(me.rank + 1) % len(workers)].name
    return [me.name, *(rpc.rpc_sync(following, nested, args=(depth - 1,)) if depth else [])]


def slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


class Unusual(Exception):
    def __init__(self, a: int, b: int) -> None:  # cannot be unpickled
        super().__init__(f"{a} and {b}")


def failing(kind: str) -> None:
    if kind == "unusual":
        raise Unusual(1, 2)
    raise KeyError(kind)


def ends() -> None:
    os._exit(3)


def unpicklable() -> object:
    return lambda: 0


def workers() -> None:
    rank = dist.ParallelEnv().rank
    for _ in range(2):  # a job may begin again
        rpc.init_rpc(f"worker{rank}")
        infos = rpc.get_all_worker_infos()
        assert [info.rank for info in infos] == [0, 1, 2] and rpc.get_worker_info("worker1") == infos[1]
        for info in infos:
            assert rpc.rpc_sync(info.name, who) == info.name
            result = rpc.rpc_sync(info.name, scaled, args=(oar.full([3, 2], rank),), kwargs={"factor": 2.5})
            np.testing.assert_array_equal(result.numpy(), np.full([3, 2], rank * 2.5, "float32"))
        large = oar.arange(3_000_000, dtype="float32")
        assert (rpc.rpc_sync("worker2", scaled, args=(large,)) == large).all()
        many = [rpc.rpc_async(f"worker{i % 3}", pow, args=(i, 2)) for i in range(300)]
        assert [answer.wait() for answer in many] == [i * i for i in range(300)]
        assert rpc.rpc_sync("worker1", nested, args=(8,)) == [f"worker{(1 + i) % 3}" for i in range(9)]
        errors(rank)
        rpc.shutdown()


def errors(rank: int) -> None:
    other = f"worker{(rank + 1) % 3}"
    for to in (other, f"worker{rank}"):
        with pytest.raises(KeyError, match="reason") as caught:
            rpc.rpc_sync(to, failing, args=("reason",))
        assert "failing" in caught.value.__notes__[0] and to in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="Unusual: 1 and 2"):
            rpc.rpc_sync(to, failing, args=("unusual",))
        with pytest.raises((AttributeError, RuntimeError), match="pickle"):
            rpc.rpc_sync(to, unpicklable)
    answer = rpc.rpc_async(other, slow, args=(0.5,), timeout=0.05)
    with pytest.raises(TimeoutError, match=f"'{other}' has not answered within 0.05 s"):
        answer.wait()
    with pytest.raises(ValueError, match="no worker 'nobody'. hint: the workers are worker0, worker1, worker2"):
        rpc.rpc_sync("nobody", who)
    with pytest.raises(ValueError, match="timeout is 0"):
        rpc.rpc_sync(other, who, timeout=0)
    stranger(rpc.get_worker_info(other))


def stranger(info: rpc.WorkerInfo) -> None:
    """Who does not know the key is not served."""
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        Client((info.ip, info.port), authkey=b"guessed").send_bytes(b"x" * 16)
    silent = Client((info.ip, info.port))  # and one that says nothing holds up no other
    assert rpc.rpc_sync(info.name, who) == info.name
    silent.close()


def one_name() -> None:
    with pytest.raises(ValueError, match="two workers have one name"):
        rpc.init_rpc("worker")


def one_ends() -> None:
    rank = dist.ParallelEnv().rank
    rpc.init_rpc(f"worker{rank}")
    if rank == 0:
        with pytest.raises(ConnectionError, match=r"the worker 'worker1' \(rank 1, .* has closed its connection"):
            rpc.rpc_sync("worker1", ends)
        with pytest.raises(ConnectionError, match="worker1"):
            rpc.rpc_sync("worker1", who)
        os._exit(0)
    time.sleep(30)
