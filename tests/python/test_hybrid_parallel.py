"""Networks that several processes of this machine divide, against the same networks in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import group_cut_layers
import group_experts
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


def test_experts_and_norms():
    dist.spawn(group_experts.experts_and_norms, nprocs=2)


def test_details_of_cut_layers():
    dist.spawn(group_cut_layers.details, nprocs=2)


def test_example(tmp_path):
    script = HERE.parents[1] / "examples/distributed/hybrid_gpt.py"
    small = [str(script), "--steps", "2", "--batch", "4", "--length", "16", "--width", "16", "--layers", "1"]
    launcher = ["-m", "oar.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(tmp_path)]
    losses = []
    for command in (small, [*launcher, *small, "--mp", "2", "--sequence-parallel"]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        losses.append([float(text) for text in re.findall(r"loss (\d+\.\d+)", done.stdout)])
    assert len(losses[0]) == 2 and losses[0] == pytest.approx(losses[1], abs=2e-4)
