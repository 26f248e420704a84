"""Tensors whose pieces are in real processes: moves, writes, every op of the registry, training."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import shard_training
import shard_work

import oar.distributed as dist

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Nothing may hang."""
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


def test_every_op():
    """`python tests/python/shard_work.py --processes 3` goes through all samples."""
    dist.spawn(shard_work.every_op, args=(1,), nprocs=2)


@pytest.mark.parametrize("work", ["moves", "moves_on_two_axes", "gradients_of_moves", "writes", "random_numbers", "second_derivatives", "helpers"])
def test_of_two(work):
    dist.spawn(getattr(shard_training, work), nprocs=2)


def test_moves_of_four():
    dist.spawn(shard_training.moves_on_two_axes, nprocs=4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training(dtype):
    dist.spawn(shard_training.train, args=(dtype,), nprocs=2)
