"""The processes of the peers, and what was compared at the end of a run."""

from __future__ import annotations

import os

import pytest

from peers.counts import COMPARED
from peers.process import Peer


@pytest.fixture(scope="session")
def torch():
    yield from _peer("OAR_TORCH", "torch", "PyTorch")


@pytest.fixture(scope="session")
def paddle():
    yield from _peer("OAR_PADDLE", "paddle", "Paddle")


def _peer(variable: str, name: str, title: str):
    process = Peer(os.environ[variable], name)
    COMPARED["version"] = f"{title} {process.version}"
    yield process
    process.close()


def pytest_terminal_summary(terminalreporter):
    if "version" in COMPARED:
        counts = ", ".join(f"{COMPARED[what]} {what}" for what in COMPARED if what != "version")
        terminalreporter.write_line(f"compared with {COMPARED['version']}: {counts}")
