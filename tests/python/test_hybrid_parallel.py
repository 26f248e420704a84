"""Networks that several processes of this machine divide, against the same networks in one process."""

from __future__ import annotations

import os
from pathlib import Path

import group_hybrid
import pytest
from oar import distributed as dist

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Nothing may hang."""
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize("count", [2, 4, 8])
def test_grids_of_processes(count):
    dist.spawn(group_hybrid.grids, nprocs=count)


def test_networks_of_two_processes_train_as_one():
    dist.spawn(group_hybrid.strategies_of_two, nprocs=2)


def test_networks_of_four_processes_train_as_one():
    dist.spawn(group_hybrid.strategies_of_four, nprocs=4)
