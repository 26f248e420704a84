"""The command `oar`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import oar

COMMAND = str(Path(oar.__file__).parent / "bin" / "oar")


def run(*arguments, status=0, text=None, **environment):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, input=text,
                          env={**os.environ, **environment})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.mark.parametrize("arguments, parts", [
    (["docter"], ["'docter'", "did you mean 'doctor'?", "inspect"]),
    (["qqqq"], ["'qqqq'", "doctor, flags, ops, inspect, board", "oar --help"]),
    (["--verison"], ["'--verison'", "did you mean '--version'?"]),
    (["ops", "--famly", "logic"], ["'--famly'", "did you mean '--family'?", "oar ops --help"]),
    (["ops", "--family", "logc"], ["'logc'", "did you mean 'logic'?"]),
    (["ops", "sofmax"], ["'sofmax'", "softmax"]),
    (["flags", "extra"], ["flags", "'extra'"]),
    (["inspect"], ["inspect", "file", "oar inspect --help"]),
    (["inspect", "no/such/file"], ["no/such/file"]),
])
def test_mistakes_are_explained(arguments, parts):
    message = run(*arguments, status=2)
    for part in ["oar: ", *parts]:
        assert part in message, message


def test_help():
    assert all(name in run("--help") for name in ("doctor", "flags", "ops", "inspect", "board", "oar COMMAND --help"))
    for command in ("doctor", "flags", "ops", "inspect"):
        text = run(command, "--help")
        assert f"Usage: oar {command}" in text and len(text.splitlines()) > 6


def test_doctor_agrees_with_itself(tmp_path):
    fine = run("doctor", OAR_PYTHON=sys.executable)
    if "• load" not in fine:  # the machine is not busy
        assert "Everything is fine." in fine and "•" not in fine
    # An interpreter that does not find the package is a note, and the last line says so.
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho /bare/python3\necho missing\n")
    bare.chmod(0o755)
    noted = run("doctor", OAR_PYTHON=str(bare))
    end = noted.strip().splitlines()[-1]
    assert "• python" in noted and "Everything is fine." not in noted and "note" in end and "python" in end


def test_doctor_in_json():
    report = json.loads(run("doctor", "--json", OAR_PYTHON=sys.executable))
    assert report["version"] == oar.__version__ and report["wrong"] == 0
    checks = {(row["section"], row["check"]): row for row in report["checks"]}
    assert checks["Oar", "matmul"] == {"section": "Oar", "check": "matmul", "state": "good", "text": "returns the right numbers", "way_out": None}
    assert {section for section, _ in checks} == {"Machine", "Devices", "Oar"}
    assert report["notes"] == sum(row["state"] == "note" for row in report["checks"])
    assert all(row["way_out"] for row in report["checks"] if row["state"] == "note")


def test_doctor_asks_the_python_of_its_checkout():
    environment = {name: value for name, value in os.environ.items() if name != "OAR_PYTHON"}
    done = subprocess.run([COMMAND, "doctor"], capture_output=True, text=True, env=environment)
    own = Path(COMMAND).resolve().parents[2] / ".venv/bin/python"
    if own.exists():
        assert f"{own} imports oar" in done.stdout.replace("\n" + " " * 16, " "), done.stdout


def plus_one(größe):
    return größe.exp() + 1.0


@pytest.mark.parametrize("function", [lambda x: x.exp() + 1.0, plus_one], ids=["lambda", "letters"])
def test_inspect_reads_back_what_is_printed(tmp_path, function):
    program = oar.jit.capture(function, [oar.static.InputSpec([2], "float32", "a name \"with\" signs")])
    path = tmp_path / "program.txt"
    path.write_text(str(program))
    assert run("inspect", path) == path.read_text().rstrip("\n") + "\n"
    assert run("inspect", "-", text=str(program)).startswith("program ")
    assert "Drawn to" in run("inspect", path, "--svg", tmp_path / "p.svg")
    assert "exp" in run("inspect", path, "--optimise")
