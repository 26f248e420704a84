#!/usr/bin/env python3
"""Runs the quickstart's saved model with the runtime library and compares the digits with those that Python read.

    tools/test_deploy.py --run "build-deploy/bin/oar_run" --model build/quickstart

`--run` is the command, after an emulator if it is for another machine.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def predict(run: list[str], model: Path, out: Path) -> dict[str, np.ndarray]:
    """The outputs of the model on the held-out images."""
    files = {name: out / f"{name}.npy" for name in ("digit", "probability")}
    command = [*run, str(model / "digits"), "--input", f"image={model / 'images.npy'}"]
    for name, file in files.items():
        command += ["--output", f"{name}={file}"]
    subprocess.run(command, check=True)
    return {name: np.load(file) for name, file in files.items()}


def check_errors(run: list[str], model: Path) -> None:
    """Mistakes of users end with a status and a sentence, not with a crash."""
    for arguments, wanted in ((["--help"], (0, "usage")), (["nothing"], (1, "nothing.pdmodel")),
                              ([str(model / "digits"), "--input", "images=x.npy"], (2, "image")),
                              ([str(model / "digits"), "--input", str(model / "digits.pdmodel")], (1, ".npy"))):
        done = subprocess.run([*run, *arguments], capture_output=True, text=True)
        text = done.stdout + done.stderr
        if (done.returncode, wanted[1] in text) != (wanted[0], True):
            sys.exit(f"oar_run {arguments} ended with {done.returncode} and said: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="how oar_run is called")
    parser.add_argument("--model", type=Path, required=True, help="the folder that the quickstart wrote")
    options = parser.parse_args()
    run = shlex.split(options.run)
    check_errors(run, options.model)
    expected = {name: np.load(options.model / f"{name}.npy") for name in ("digit", "probability")}
    with tempfile.TemporaryDirectory() as out:
        found = predict(run, options.model, Path(out))
    wrong = int((found["digit"] != expected["digit"]).sum())
    difference = float(np.abs(found["probability"] - expected["probability"]).max())
    count = expected["digit"].size
    print(f"{options.run}: {count - wrong} of {count} digits as in Python, probabilities within {difference:.1e}")
    if wrong or found["digit"].shape != expected["digit"].shape or not difference < 1e-4:
        sys.exit("The results differ from Python's.")


if __name__ == "__main__":
    main()
