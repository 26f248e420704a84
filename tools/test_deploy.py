#!/usr/bin/env python3
"""Runs the quickstart's saved model with the runtime library and compares the digits with those that Python read.

    tools/test_deploy.py --run "build-deploy/bin/oar_run" --model build/quickstart

`--run` is the command, after an emulator if it is for another machine. The model is read from its two files and from one `.oar` file,
which is put together here after docs/file-format.md. Where the library is for this machine, a C program uses it, too.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples" / "oar_reader"))
from read_oar import MAGIC, PAGE, crc32c  # noqa: E402


def write_oar(model: Path, file: Path) -> None:
    """The two files of a model as one, by a writer that knows nothing but the specification."""
    program, weights = (model / "digits.pdmodel").read_bytes(), (model / "digits.pdiparams").read_bytes()
    size = struct.unpack_from("<Q", weights)[0]
    entries, data = json.loads(weights[8 : 8 + size]), bytearray(program)
    for name in sorted(entries.keys() - {"__metadata__"}):
        begin, end = entries[name]["data_offsets"]
        content = weights[8 + size + begin : 8 + size + end]
        data += bytes(-len(data) % 64)
        entries[name] |= {"data_offsets": [len(data), len(data) + len(content)], "crc32c": crc32c(content)}
        data += content
    entries.pop("__metadata__", None)
    place = {"data_offsets": [0, len(program)], "crc32c": crc32c(program)}
    header = json.dumps({"format": "oar model", "methods": {"forward": {"program": place}}, "tensors": entries}).encode()
    filler = bytes(-(64 + len(header)) % PAGE)
    total = 64 + len(header) + len(filler) + len(data)
    preamble = struct.pack("<8sHHIQQI24x", MAGIC, 1, 0, 0, len(header), total, crc32c(header))
    file.write_bytes(preamble + struct.pack("<I", crc32c(preamble)) + header + filler + data)


def check_c_program(run: list[str], model: Path, file: Path, out: Path) -> None:
    """A program in C, which needs headers for C alone, reads the same digits in two threads."""
    compiler, command = shutil.which("cc"), Path(run[0])
    library = command.parent.parent / "lib"
    if len(run) > 1 or compiler is None or not (library / "liboar_runtime.so").exists():
        return
    program, images = out / "predict", np.load(model / "images.npy")
    subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", str(ROOT / "tests" / "deploy" / "predict.c"), "-o", str(program),
                    f"-I{ROOT / 'src'}", f"-L{library}", "-loar_runtime", f"-Wl,-rpath,{library.resolve()}"], check=True)
    images.astype("<f4").tofile(out / "images.raw")
    command_line = [str(program), str(file), str(out / "images.raw"), *map(str, images.shape)]
    found = subprocess.run(command_line, check=True, capture_output=True, text=True).stdout.split()
    if found != [str(digit) for digit in np.load(model / "digit.npy").ravel()]:
        sys.exit(f"the C program reads other digits: {' '.join(found)[:200]}")
    print(f"C program: {len(found)} digits as in Python, in two threads")


def predict(run: list[str], path: Path, model: Path, out: Path) -> dict[str, np.ndarray]:
    """The outputs of the model on the held-out images."""
    files = {name: out / f"{name}.npy" for name in ("digit", "probability")}
    command = [*run, str(path), "--input", f"image={model / 'images.npy'}"]
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
        file = Path(out) / "digits.oar"
        write_oar(options.model, file)
        check_c_program(run, options.model, file, Path(out))
        single = predict(run, file, options.model, Path(out))
        found = predict(run, options.model / "digits", options.model, Path(out))
        if any(not np.array_equal(found[name], single[name]) for name in found):
            sys.exit("The .oar file gives other results than the two files.")
    wrong = int((found["digit"] != expected["digit"]).sum())
    difference = float(np.abs(found["probability"] - expected["probability"]).max())
    count = expected["digit"].size
    print(f"{options.run}: {count - wrong} of {count} digits as in Python, probabilities within {difference:.1e}")
    if wrong or found["digit"].shape != expected["digit"].shape or not difference < 1e-4:
        sys.exit("The results differ from Python's.")


if __name__ == "__main__":
    main()
