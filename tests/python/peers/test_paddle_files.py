"""Files of ``save`` by Oar and by Paddle: each reads what the other wrote, and training goes on from it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("paddle_files.py")
pytestmark = pytest.mark.skipif("OAR_PADDLE" not in os.environ, reason="needs a Python that has Paddle, in OAR_PADDLE")


def run(library: str, action: str, folder: pathlib.Path) -> None:
    python = sys.executable if library == "oar" else os.environ["OAR_PADDLE"]
    done = subprocess.run([python, str(SCRIPT), library, action, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.rstrip().endswith("done"), done.stderr[-4000:]


@pytest.mark.parametrize(("writer", "reader"), [("paddle", "oar"), ("oar", "paddle"), ("oar", "oar")])
def test_files_are_read_by_the_other(tmp_path, writer, reader):
    run(writer, "make", tmp_path)
    run(reader, "check", tmp_path)
