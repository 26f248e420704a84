"""`oar convert --compare` with ONNX Runtime and PaddlePaddle.

OAR_CONVERT_PYTHON is a Python with numpy, onnxruntime and paddlepaddle, where the package can be imported. Without it these tests are skipped.
"""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from command_models import run, write_models  # noqa: E402

PYTHON = os.environ.get("OAR_CONVERT_PYTHON")
pytestmark = pytest.mark.skipif(not PYTHON, reason="OAR_CONVERT_PYTHON is not set")


@pytest.mark.parametrize("source, target, frameworks", [
    ("net.onnx", "made.oar", ["ONNX Runtime"]),
    ("net.oar", "made.onnx", ["ONNX Runtime"]),
    ("pir.json", "made.onnx", ["PaddlePaddle", "ONNX Runtime"]),
    ("net.onnx", "made.json", ["ONNX Runtime", "PaddlePaddle"]),
])
def test_other_frameworks_compute_the_same(source, target, frameworks, tmp_path):
    write_models(tmp_path)
    report = json.loads(run("convert", source, target, "--compare", "--json", cwd=tmp_path, OAR_PYTHON=PYTHON))
    assert report["notes"] == []
    compared = [row["runs"] for row in report["differences"]]
    assert len(compared) == 1 + len(frameworks)
    assert all(any(name in runs for runs in compared) for name in frameworks)
    assert all(row["relative"] < 1e-5 for row in report["differences"])
