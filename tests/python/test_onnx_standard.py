"""The tests of the ONNX standard, where Debian's libonnx-testdata or another folder with them is there."""

import os
from pathlib import Path

import pytest
from onnx_standard import folders, run

ROOT = Path(os.environ.get("OAR_ONNX_TESTS", "/usr/share/libonnx-testdata/data"))
LEAST = 0.955  # of Debian's 1.12; docs/onnx.md lists the others


@pytest.mark.skipif(not ROOT.is_dir(), reason="set OAR_ONNX_TESTS, or install libonnx-testdata")
def test_most_of_the_standard_passes():
    failures = {folder.name: reason for folder in folders([ROOT / "node"]) if (reason := run(folder))}
    count = len(folders([ROOT / "node"]))
    assert count > 900
    assert len(failures) <= count * (1 - LEAST), failures
