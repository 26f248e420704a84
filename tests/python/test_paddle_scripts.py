"""The scripts in examples/paddle_scripts with Oar alone: a few steps of each. `make test-paddle` compares them with Paddle."""

import math
import re

import pytest

from script_runs import FOLDER, OAR, SCRIPTS, run


def test_the_table_has_all_scripts():
    rows = re.findall(r"^\| `(\w+)\.py` \|", (FOLDER / "README.md").read_text(), re.M)
    assert rows == SCRIPTS and len(rows) >= 20


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name):
    result = run(OAR, name, 2, "float32")
    losses = result.pop("losses")
    assert len(losses) >= 2 and all(map(math.isfinite, losses)) and len(set(losses)) > 1
    assert all(map(math.isfinite, result.values()))


def test_weights_are_written_once_and_read_afterwards(tmp_path):
    path = tmp_path / "start.pdparams"
    first = run(OAR, "meta_learning", 2, "float64", path)
    written = path.read_bytes()
    assert run(OAR, "meta_learning", 2, "float64", path) == first
    assert path.read_bytes() == written
