"""Transforms by Oar and by Paddle: the same images, seeds and arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PADDLE = os.environ.get("OAR_PADDLE", "")
CASES = Path(__file__).with_name("vision_cases.py")

if not os.access(PADDLE, os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)
if subprocess.run([PADDLE, "-c", "import cv2, PIL"], capture_output=True).returncode:
    pytest.skip("the Python of OAR_PADDLE needs Pillow and OpenCV: pip install pillow opencv-python-headless", allow_module_level=True)

# Random numbers that Paddle draws on its device, and colours that it does not pass on to Pillow.
DIFFERENT = ("tensor/*:transform/random_erasing/random", "bytes/*:transform/random_erasing/random")
FILLED_BLACK = (":affine/", ":perspective/", ":transform/random_affine")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision")
    found = []
    for python, name in ((PADDLE, "paddle"), (sys.executable, "oar")):
        path = folder / f"{name}.npz"
        subprocess.run([python, str(CASES), name, str(path)], check=True, cwd=folder)
        found.append(dict(np.load(path)))
    return found


def allowed(name: str, expected: np.ndarray) -> float:
    """The largest difference that rounding explains."""
    if expected.dtype == np.uint8:
        return 1
    if name.endswith("pipeline"):  # one level of 255, divided by a deviation
        return 0.02
    if name.startswith("tensor"):
        return 2e-4
    if "/double:" in name and ":resize/" not in name:  # OpenCV rounds the places of doubles to 1/32 of a pixel
        return 9
    return 0.02 if ":resize/" in name else 0.1


def test_transforms_agree(results):
    paddle, oar = results
    assert paddle.keys() == oar.keys()
    compared, wrong = 0, []
    for name, expected in paddle.items():
        found = oar[name]
        if expected.dtype.kind == "U" or any(name.startswith(pattern.split("*")[0]) and name.endswith(pattern.split("*")[1])
                                             for pattern in DIFFERENT):
            continue  # Paddle has no such case
        if name.startswith("pil/") and any(part in name for part in FILLED_BLACK):
            continue
        compared += 1
        if found.dtype.kind == "U" or found.shape != expected.shape:
            wrong.append(f"{name}: {found if found.dtype.kind == 'U' else found.shape}, not {expected.shape}")
            continue
        difference = np.abs(found.astype("float64") - expected.astype("float64")).max(initial=0)
        if difference > allowed(name, expected):
            wrong.append(f"{name}: {difference}")
    assert compared > 2000
    assert not wrong, "\n".join(wrong[:30])
