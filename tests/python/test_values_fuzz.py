"""The fuzzer of values: a random call of every op, and that it finds what is wrong."""

import os
import pathlib
import subprocess
import sys

import numpy as np

import oar
from registry.records import BY_NAME

FUZZER = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "values_fuzz.py"
sys.path.append(str(FUZZER.parent))

from values.calls import FuzzCall, make  # noqa: E402
from values.compare import Judged  # noqa: E402


def judged(name, *args, special=False):
    found = Judged(FuzzCall(BY_NAME[name], 0, args[0].dtype.name, list(args), special, mixed=False))
    found.run()
    return found


def test_a_call_of_every_op():
    alone = {key: value for key, value in os.environ.items() if key not in ("OAR_TORCH", "OAR_PADDLE")}
    run = subprocess.run([sys.executable, str(FUZZER), "--count", "700"], env=alone, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    assert "700 of 700 calls" in run.stdout


def test_a_number_makes_the_same_call():
    first, second = (make(BY_NAME["add"], 5) for _ in range(2))
    assert first.shown() == second.shown()
    assert first.shown() != make(BY_NAME["add"], 6).shown()


def test_a_wrong_value_is_found():
    x = oar.to_tensor(np.array([0.5, 1.0], "float32"))
    for wrong in (1e-3, np.nan, np.inf):
        call = judged("exp", x)
        call.results[0] = call.results[0] + np.array([0, wrong], "float32")
        call.by_numpy()
        assert "NumPy differs: result[1]" in call.fault()


def test_a_wrong_shape_and_a_wrong_dtype_are_found():
    x = oar.to_tensor(np.array([0.5, 1.0], "float32"))
    call = judged("exp", x)
    call.results[0] = call.results[0][:1]
    call.by_numpy()
    assert "shape [2], we have [1]" in call.fault()
    call = judged("exp", x)
    call.dtypes[0] = "float64"
    call.by_numpy()
    assert "dtype float64, expected float32" in call.fault()


def test_an_ill_conditioned_result_is_not_a_fault():
    x = oar.to_tensor(np.array([1e6], "float32"))
    call = judged("sin", x)
    call.results[0] = np.sin(np.nextafter(np.float32(1e6), np.float32(2e6), dtype="float32")[None])
    call.by_numpy()
    assert call.fault() is None


def test_a_second_reference_can_settle_it():
    x = oar.to_tensor(np.array([0.5], "float32"))
    call = judged("exp", x)
    call.results[0] = np.array([7.0], "float32")
    call.by_numpy()
    assert call.fault()
    call.take("PyTorch", [np.array([7.0], "float32")], moved=False)
    assert call.fault() is None
