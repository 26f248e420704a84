"""Calls of functions in other processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import rpc_work
from oar import distributed as dist
from oar.distributed import rpc

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Nothing may hang."""
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


def test_three_workers():
    dist.spawn(rpc_work.workers, nprocs=3)


def test_workers_need_names_of_their_own():
    dist.spawn(rpc_work.one_name, nprocs=2)


def test_a_worker_that_ends():
    with pytest.raises(RuntimeError, match=r"rank 1\) failed:\nit ended with the code 3"):
        dist.spawn(rpc_work.one_ends, nprocs=2)


def test_mistakes():
    with pytest.raises(RuntimeError, match="no worker yet. hint: call oar.distributed.rpc.init_rpc"):
        rpc.rpc_sync("worker0", max, args=(1, 2))
    with pytest.raises(ValueError, match="rank is 2, but the ranks of 2 workers go from 0 to 1"):
        rpc.init_rpc("worker", rank=2, world_size=2)
    with pytest.raises(ValueError, match="a worker needs a name"):
        rpc.init_rpc("", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="nothing says where they meet"):
        rpc.init_rpc("worker", rank=0, world_size=2)
    rpc.shutdown()  # of no worker changes nothing
    rpc.init_rpc("alone", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="is the worker 'alone' already"):
        rpc.init_rpc("again", rank=0, world_size=1)
    rpc.shutdown()
