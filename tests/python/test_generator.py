"""The generator parses schemas with the library's parser, which it compiles for this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GENERATE = Path(__file__).resolve().parents[2] / "tools/generate"
RECORD = 'const OpDef twice = {{\n  .schema = "{}",\n  .brief = "Twice x.",\n}};\nOAR_FAMILY(doubles, twice)\n'


def read(folder: Path, schema: str, **variables: str) -> subprocess.CompletedProcess:
    ops = folder / "ops"
    ops.mkdir(parents=True, exist_ok=True)
    (ops / "doubles.cpp").write_text(RECORD.format(schema))
    script = (f"import sys; sys.path.insert(0, {str(GENERATE)!r}); import schema, pathlib; at = pathlib.Path(sys.argv[1])\n"
              "print(schema.read_all(at / 'ops', at / 'host')['doubles'][0].parameters)")
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True,
                          env={**os.environ, **variables})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("generator") / "a folder é"


def test_parameters_are_read_in_any_folder(folder):
    run = read(folder, "twice(Tensor?[] x, str mode = 'a, b)', int[]? k = [1, 2]) -> Tensor")
    assert run.returncode == 0, run.stderr
    assert "name='x', type='Tensor', list=True, optional=False, optional_elements=True" in run.stdout
    assert "default=\"'a, b)'\"" in run.stdout and "default='[1, 2]'" in run.stdout


def test_a_mistake_names_the_file_and_the_place(folder):
    run = read(folder, "twice(Tenser x) -> Tensor")
    assert run.returncode != 0
    assert "doubles.cpp: the schema 'twice(Tenser x) -> Tensor' is malformed at character 12" in run.stderr


def test_a_compiler_that_does_not_work_is_named(tmp_path):
    run = read(tmp_path, "twice(Tensor x) -> Tensor", CXX_FOR_BUILD="no-such-compiler -O1")
    assert run.returncode != 0
    assert "no-such-compiler" in run.stderr and "Set CXX_FOR_BUILD" in run.stderr
