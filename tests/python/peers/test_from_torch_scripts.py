"""Scripts for PyTorch, and what ``oar.tools.from_torch`` makes of them, learn alike: from the same weights, which the script saves in
PyTorch and loads in Oar by its own code, and the same data, their losses agree over 20 steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import oar
import pytest
from oar.tools.from_torch import convert

FOLDER = Path(__file__).resolve().parents[1] / "from_torch"
SCRIPTS = sorted(path.stem for path in (FOLDER / "scripts").glob("*.py"))
DIGITS = Path(oar.__file__).parent / "datasets" / "digits.npz"
STEPS, TOLERANCE = 20, 1e-4

pytestmark = pytest.mark.skipif(not os.access(os.environ.get("OAR_TORCH", ""), os.X_OK), reason="needs OAR_TORCH: `make test-torch`")


def losses(python, library, script, arguments):
    """What a script prints as its losses, with numbers drawn by NumPy."""
    call = [python, FOLDER / "same_draws.py", library, script, "--steps", STEPS, *arguments]
    done = subprocess.run([str(word) for word in call], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return np.array([float(found) for found in re.findall(r"loss[ =:]+([-\d.e]+)", done.stdout, re.IGNORECASE)])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_losses_agree(name, tmp_path):
    script, made, weights = FOLDER / "scripts" / f"{name}.py", tmp_path / f"{name}.py", tmp_path / "first.pt"
    made.write_text(convert(script.read_text()).text)
    data = ["--data", DIGITS] if name == "mlp_digits" else []
    wanted = losses(os.environ["OAR_TORCH"], "torch", script, [*data, "--save-init", weights])
    found = losses(sys.executable, "oar", made, [*data, "--init", weights])
    assert len(found) == len(wanted) >= STEPS
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE)
    print(f"{name}: {np.max(np.abs(found - wanted) / np.abs(wanted)):.1e}")
