"""Checkpoints of several processes: cuts, numbers of processes, damage, kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import group_checkpoints
import numpy as np
import oar
import pytest
from oar import distributed as dist
from oar.distributed import ShardedWeight
from oar.distributed.checkpoint import ShardedCheckpointError, metadata
from oar.distributed.checkpoint._boxes import run_of_boxes

HERE = Path(__file__).resolve().parent
several_processes = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")
KILLS = int(os.environ.get("OAR_KILLS", "6"))


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


def test_runs_of_elements_are_boxes():
    for shape in ((), (5,), (3, 4), (3, 1, 4), (2, 3, 2, 2), (4, 0)):
        numbers = np.arange(int(np.prod(shape))).reshape(shape)
        for begin in range(numbers.size + 1):
            for end in range(begin, numbers.size + 1):
                boxes = list(run_of_boxes(shape, begin, end))
                found = [numbers[tuple(slice(o, o + s) for o, s in zip(offset, sizes))].ravel() for offset, sizes in boxes]
                assert np.array_equal(np.concatenate([np.zeros(0, int), *found]), np.arange(begin, end)), (shape, begin, end)
                assert len(boxes) <= max(2 * len(shape) - 1, 1)


@several_processes
def test_other_numbers_of_processes_and_other_cuts(tmp_path):
    for count in (2, 3):
        dist.spawn(group_checkpoints.save, args=(str(tmp_path),), nprocs=count)
    for cut in group_checkpoints.CUTS:
        dist.save_state_dict(group_checkpoints.state_of(cut, 0, 1, False), str(tmp_path / f"{cut}_1"))
    for folder in sorted(tmp_path.iterdir()):
        state = group_checkpoints.state_of("whole", 0, 1, True)
        dist.load_state_dict(state, str(folder))
        group_checkpoints.check(state, "whole", 0, 1)
    dist.spawn(group_checkpoints.load, args=(str(tmp_path),), nprocs=4)


@several_processes
def test_several_checkpoints_and_mistakes(tmp_path):
    dist.spawn(group_checkpoints.several, args=(str(tmp_path),), nprocs=2)


@several_processes
def test_kills(tmp_path):
    code = "import sys, group_checkpoints; group_checkpoints.kill_often(sys.argv[1], int(sys.argv[2]))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(KILLS)], capture_output=True, text=True, timeout=60 + 10 * KILLS)
    assert done.returncode == 0, done.stdout + done.stderr


def saved(tmp_path, number=1):
    folder = str(tmp_path / "run")
    for step in range(number):
        dist.save_state_dict({"a": oar.arange(12.0).reshape([3, 4]) + step, "b": oar.ones([2], "bfloat16"), "step": step}, folder)
    return folder


def state():
    return {"a": oar.zeros([3, 4]), "b": oar.zeros([2], "bfloat16"), "step": -1}


@pytest.mark.parametrize("damage", ["bit", "cut", "missing", "swapped"])
def test_damaged_files_are_named(tmp_path, damage):
    folder = saved(tmp_path, 2)
    file = Path(folder, "0_1.distcp")
    content = bytearray(file.read_bytes())
    if damage == "bit":
        content[-30] ^= 4
    elif damage == "cut":
        del content[-8:]
    elif damage == "swapped":
        content = bytearray(Path(folder, "0_0.distcp").read_bytes())
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(ShardedCheckpointError, match=r"0_1\.distcp', which has a piece of a, .*unique_id"):
        dist.load_state_dict(state(), folder)
    with pytest.raises(ShardedCheckpointError, match=r"0_1\.distcp"):
        dist.load_merged_state_dict(folder)
    given = state()
    dist.load_state_dict(given, folder, unique_id=0)
    assert given["step"] == 0 and given["a"][0].tolist() == [0, 1, 2, 3] and given["b"].astype("float32").tolist() == [1, 1]


def test_damaged_lists_are_named(tmp_path):
    folder = saved(tmp_path, 2)
    file = Path(folder, "1.metadata")
    content = file.read_bytes()
    for changed in (content[:-9], content.replace(b'"offset": [0', b'"offset": [1', 1), b"[" * 100_000, b""):
        file.write_bytes(changed)
        with pytest.raises(ShardedCheckpointError, match=r"1\.metadata' is damaged"):
            dist.load_state_dict(state(), folder)
    for key, value in (("offset", [9, 0]), ("shape", [-1, 2]), ("run", [0, 99]), ("name", 3), ("crc32", "x")):
        listed = json.loads(content)
        listed.pop("sha256")
        listed["tensors"]["a"]["pieces"][0][key] = value
        listed["sha256"] = metadata._sum_of(listed)
        file.write_text(json.dumps(listed))
        with pytest.raises(ShardedCheckpointError, match=r"1\.metadata' is damaged: a piece of a"):
            dist.load_state_dict(state(), folder)
    file.unlink()  # as if its writer had been killed before
    given = state()
    dist.load_state_dict(given, folder)
    assert given["step"] == 0


MISFITS = {
    "shape": ({"a": oar.zeros([4, 3])}, r"a is float32\[3, 4\] in the checkpoint.*float32\[4, 3\] here"),
    "dtype": ({"a": oar.zeros([3, 4], "float64")}, r"float64\[3, 4\] here"),
    "name": ({"c": oar.zeros([3])}, r"has no c; it has a, b, step"),
    "value": ({"epoch": 1}, r"has no epoch"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_misfits(tmp_path, name):
    given, text = MISFITS[name]
    with pytest.raises(ShardedCheckpointError, match=text):
        dist.load_state_dict(dict(given), saved(tmp_path))


def test_arguments(tmp_path):
    with pytest.raises(ShardedCheckpointError, match="has no complete checkpoint"):
        dist.load_state_dict(state(), str(tmp_path))
    with pytest.raises(ShardedCheckpointError, match="no complete checkpoint 5; there are 0"):
        dist.load_state_dict(state(), saved(tmp_path), unique_id=5)
    with pytest.raises(ValueError, match="coordinator_rank is 3"):
        dist.save_state_dict({}, str(tmp_path), coordinator_rank=3)
    with pytest.raises(ValueError, match="keep is 0"):
        dist.save_state_dict({}, str(tmp_path), keep=0)
    with pytest.raises(ValueError, match="two values of the state dict have the name 'a.b'"):
        dist.save_state_dict({"a": {"b": 1}, "a.b": 2}, str(tmp_path))
    with pytest.raises(ValueError, match=r"\[ShardedWeight\] w: a box of the shape \[2\] at \[3\] is not within"):
        ShardedWeight("w", oar.ones([2]), (2,), (4,), (3,))
    with pytest.raises(ValueError, match="flattened_range must be a slice of the 4 elements"):
        ShardedWeight("w", oar.ones([2]), (4,), (4,), (0,), True, slice(3, 5))
    with pytest.raises(NotImplementedError, match="aoa_config"):
        dist.load_merged_state_dict(str(tmp_path), aoa_config={})


def test_one_file_of_a_checkpoint(tmp_path):
    folder = saved(tmp_path, 1)
    merged = dist.load_merged_state_dict(folder)
    for ending in ("pdparams", "safetensors"):
        oar.save(merged, str(tmp_path / f"whole.{ending}"))
        again = oar.load(str(tmp_path / f"whole.{ending}"))
        assert set(again) == {"a", "b"} and again["a"].tolist() == merged["a"].tolist() and again["b"].dtype == oar.bfloat16
    assert list(dist.load_merged_state_dict(folder, prefix="b")) == ["b"]


def test_a_failed_write_leaves_the_earlier_checkpoint(tmp_path, monkeypatch):
    folder = saved(tmp_path, 1)

    def full(file, arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("oar.framework.safetensors.save_arrays", full)
    with pytest.raises(OSError, match="No space left"):
        saved(tmp_path)
    dist.save_state_dict({"a": oar.ones([2])}, folder, async_save=True)
    with pytest.raises(OSError, match="No space left"):
        oar.clear_async_save_task_queue()
    monkeypatch.undo()
    given = state()
    dist.load_state_dict(given, folder)
    assert given["step"] == 0 and len(os.listdir(folder)) == 2
