"""The PyTorch process of a run, and what was compared at its end."""

from __future__ import annotations

import os

import pytest

from peers.counts import COMPARED
from peers.torch_process import Torch


@pytest.fixture(scope="session")
def torch():
    process = Torch(os.environ["OAR_TORCH"])
    COMPARED["version"] = process.version
    yield process
    process.close()


def pytest_terminal_summary(terminalreporter):
    if "version" in COMPARED:
        counts = ", ".join(f"{COMPARED[what]} {what}" for what in COMPARED if what != "version")
        terminalreporter.write_line(f"compared with PyTorch {COMPARED['version']}: {counts}")
