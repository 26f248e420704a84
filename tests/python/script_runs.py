"""Runs of the scripts in examples/paddle_scripts, by either library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "paddle_scripts"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")
OAR = [sys.executable, "-m", "oar.as_paddle"]


def run(command: list[str], name: str, steps: int, dtype: str, weights: Path | str = "") -> dict:
    """What a script reports: ``losses``, a list, and single numbers."""
    call = [*command, str(FOLDER / f"{name}.py"), "--steps", str(steps), "--dtype", dtype, "--weights", str(weights)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, f"{' '.join(call)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])
