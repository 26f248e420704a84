"""The package's types: typical code passes `mypy --strict`, and a wrong call is an error there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import oar

CASES = Path(__file__).parent / "typing_cases"


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The errors that mypy finds, by file and line."""
    folder = tmp_path_factory.mktemp("users")
    for case in CASES.glob("*.py"):
        (folder / case.name).write_text(case.read_text())
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "--python-executable",
         sys.executable, *sorted(path.name for path in CASES.glob("*.py"))],
        cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {}
    for name, line, text in re.findall(r"^(\w+\.py):(\d+): error: (.*)$", done.stdout, re.M):
        found.setdefault(name, {})[int(line)] = text
    return found


def test_typical_code_passes(errors):
    assert errors.get("typical.py", {}) == {}


def test_typical_code_runs(tmp_path):
    """What the checker accepts is right."""
    subprocess.run([sys.executable, str(CASES / "typical.py")], check=True, cwd=tmp_path)


def test_wrong_calls_are_errors(errors):
    lines = (CASES / "wrong.py").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(marked) > 10 and set(errors["wrong.py"]) == marked


def test_the_package_says_that_it_has_types():
    package = Path(oar.__file__).parent
    for name in ("py.typed", "_C.pyi", "_ops.pyi", "_methods.pyi", "__init__.pyi", "nn/functional/__init__.pyi"):
        assert (package / name).exists(), name


def test_stubs_know_every_name():
    """Each op and each method of Tensor is in the stubs."""
    package = Path(oar.__file__).parent
    ops = (package / "_ops.pyi").read_text()
    functions = set(re.findall(r"^def (\w+)\(", ops, re.M))
    assert functions >= {record["name"] for record in oar._C.op_records() if record["python"]}
    known = set(re.findall(r"^    (?:def )?(\w+)(?:\(| =|:)", ops + (package / "_methods.pyi").read_text()
                           + (package / "_C.pyi").read_text(), re.M))
    missing = {name for name in vars(oar.Tensor) if not name.startswith("_")} - known
    assert not missing
    collected = (package / "__init__.pyi").read_text()
    # In a process of its own: a module that only its users import becomes an attribute when another test imports it.
    show = "import oar; print(*dir(oar))"
    listed = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout
    public = {name for name in listed.split() if not name.startswith("_")}
    assert len(public) > 500
    assert public <= set(re.findall(r"(?:as |^def |^)(\w+)(?:,$|\(|: )", collected, re.M))
