"""Whole pages against RapidOCR. Skipped unless OAR_RAPIDOCR names a Python that has it; benchmarks/ocr.py compares more of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PEER = os.environ.get("OAR_RAPIDOCR")


@pytest.mark.skipif(not PEER, reason="set OAR_RAPIDOCR to a Python with rapidocr==3.10.0 and onnxruntime")
def test_texts_are_those_of_rapidocr():
    script = Path(__file__).parents[2] / "benchmarks" / "ocr.py"
    done = subprocess.run([sys.executable, str(script), "--rapidocr", str(PEER), "--count", "12", "--threads", "2", "--rounds", "1"],
                          capture_output=True, text=True, check=False)
    assert "the same text on 12 of 12 images" in done.stdout, done.stdout + done.stderr
