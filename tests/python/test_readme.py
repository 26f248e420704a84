"""The Python in README.md runs, from top to bottom, as a reader would type it."""

import pathlib
import re
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S) if README.exists() else []


@pytest.mark.skipif(not BLOCKS, reason="README.md shows no Python")
def test_python_blocks_run(tmp_path):
    program = "\n".join(block for block in BLOCKS if "not run" not in block.split("\n")[0])
    (tmp_path / "readme.py").write_text(program)
    done = subprocess.run([sys.executable, "readme.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
