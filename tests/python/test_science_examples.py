"""The examples in examples/science, with little work. Each checks its own result and fails if it is not good enough."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "science"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "figure")


def test_all_are_found():
    assert SCRIPTS == ["burgers", "heat", "molecules", "navier_stokes", "neural_ode", "neural_operator", "plate", "quantum"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name, tmp_path):
    run = subprocess.run([sys.executable, FOLDER / f"{name}.py", "--quick", "--out", tmp_path], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "(at most" in run.stdout
    picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
    shapes = [e for e in picture.iter() if e.tag.rpartition("}")[2] in ("polyline", "polygon", "rect", "circle")]
    assert len(shapes) > 5 and "nan" not in (tmp_path / f"{name}.svg").read_text()
