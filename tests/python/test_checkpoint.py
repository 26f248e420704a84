"""Checkpoints of training runs: what is kept, what is damaged, kills and full disks."""

import json
import os
import random
import shutil
import subprocess
import sys

import kill_checkpoints
import numpy as np
import pytest

import oar
from oar import nn
from oar.checkpoint import CheckpointError, CheckpointManager


class Run:
    """A small network with its optimizer."""

    def __init__(self, folder, outputs=2, **options):
        with oar.framework.unique_name.guard():
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, outputs))
            self.rate = oar.optimizer.lr.StepDecay(0.1, 2)
            self.opt = oar.optimizer.Adam(self.rate, parameters=self.net.parameters())
            self.manager = CheckpointManager(folder, model=self.net, optimizer=self.opt, **options)
            self.step()

    def step(self):
        with oar.framework.unique_name.guard():
            self.net(oar.ones([2, 3])).sum().backward()
            self.opt.step()
        self.opt.clear_grad()
        self.rate.step()

    def content(self):
        state = {**self.net.state_dict(), **self.opt.state_dict()}
        return {name: value.numpy().tolist() for name, value in state.items() if isinstance(value, oar.Tensor)}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


def test_the_last_ones_are_kept(folder):
    run = Run(folder, max_to_keep=2, keep_period=4)
    assert run.manager.latest_step() is None and run.manager.restore() is None and run.manager.all_steps() == []
    for step in range(1, 8):
        run.manager.save(step)
    assert run.manager.all_steps() == [4, 6, 7] and run.manager.latest_step() == 7
    run.manager.save(5)  # after going back: it is the latest now
    assert run.manager.all_steps() == [4, 7, 5] and CheckpointManager(folder).latest_step() == 5
    assert sorted(os.listdir(folder)) == ["step_00000004", "step_00000005", "step_00000007"]


@pytest.mark.parametrize("async_save", [False, True])
def test_a_restored_run_goes_on_to_the_bit(folder, async_save):
    run = Run(folder, async_save=async_save)
    run.manager.save(1, extra={"epoch": 3, "best": oar.to_tensor([0.5]), "names": ["a", None]})
    for _ in range(3):
        run.step()
    wanted, draws = run.content(), (random.random(), np.random.rand(), oar.rand([2]).tolist())
    run.manager.close()
    other = Run(folder)
    random.seed(0), np.random.seed(0), oar.seed(0)
    found = other.manager.restore()
    assert (found.step, found.extra["epoch"], found.extra["names"]) == (1, 3, ["a", None]) and found.extra["best"].tolist() == [0.5]
    assert other.rate.last_epoch == 1 and os.path.isdir(found.path)
    for _ in range(3):
        other.step()
    assert other.content() == wanted and (random.random(), np.random.rand(), oar.rand([2]).tolist()) == draws


def test_files_are_those_of_save(folder):
    run = Run(folder)
    run.manager.save(12)
    state = oar.load(folder / "step_00000012" / "model.pdparams")
    np.testing.assert_array_equal(state["0.weight"].numpy(), run.net[0].weight.numpy())
    assert "LR_Scheduler" in oar.load(folder / "step_00000012" / "optimizer.pdopt")


def test_an_asynchronous_save_is_of_the_moment(folder):
    run = Run(folder, async_save=True)
    before = run.content()
    run.manager.save(1)
    with oar.no_grad():
        run.net[0].weight.fill_(7.0)
    other = Run(folder)
    run.manager.wait_until_finished()
    other.manager.restore()
    assert other.content() == before


def test_a_step_is_replaced(folder):
    run = Run(folder)
    run.manager.save(1, extra="first")
    run.manager.save(1, extra="second")
    assert run.manager.all_steps() == [1] and run.manager.restore().extra == "second"
    assert os.listdir(folder) == ["step_00000001"]


def damage(path, change):
    data = bytearray(path.read_bytes())
    path.write_bytes(change(data))


def flipped(place):
    def change(data):
        data[place] ^= 255
        return bytes(data)

    return change


@pytest.mark.parametrize(("file", "change", "texts"), [
    ("model.pdparams", lambda data: bytes(data[:-130]), ["model.pdparams'", "bytes instead of", "in '2.bias'"]),
    ("model.pdparams", lambda data: bytes(data[:160]), ["bytes instead of", "in '0.weight'"]),
    ("model.pdparams", flipped(180), ["another checksum", "in '0.weight'"]),
    ("optimizer.pdopt", lambda data: b"", ["optimizer.pdopt'", "0 bytes instead of"]),
    ("checkpoint.json", flipped(40), ["checkpoint.json' is damaged"]),
    ("checkpoint.json", lambda data: bytes(data[:50]), ["checkpoint.json' is damaged"]),
])
def test_damage_is_found_and_named(folder, file, change, texts):
    run = Run(folder)
    run.manager.save(1, extra="old")
    run.step()
    run.manager.save(2, extra="new")
    damage(folder / "step_00000002" / file, change)
    before = run.content()
    with pytest.raises(CheckpointError) as error:
        run.manager.restore()
    assert all(text in str(error.value) for text in [*texts, "step_00000002", "Restore another step"]), error.value
    assert "checkpoints of the steps [1]" in str(error.value) and run.content() == before
    with pytest.warns(UserWarning, match="The one before it is tried"):
        assert run.manager.restore(fallback=True).extra == "old"
    assert run.manager.restore(1).step == 1


def test_missing_files_and_steps(folder):
    run = Run(folder)
    run.manager.save(1)
    with pytest.raises(CheckpointError, match="no checkpoint 3"):
        run.manager.restore(3)
    os.unlink(folder / "step_00000001" / "model.pdparams")
    with pytest.raises(CheckpointError, match=r"model.pdparams' of a checkpoint cannot be read"):
        run.manager.restore()
    with pytest.raises(CheckpointError, match="has no scaler.pdparams; it has model.pdparams"):
        CheckpointManager(folder, scaler=nn.Linear(1, 1)).restore()


def test_another_network_is_refused_before_anything_changes(folder):
    Run(folder).manager.save(1)
    other = Run(folder, outputs=5)
    before = other.content()
    with pytest.raises(CheckpointError, match=r"does not fit model: mismatched \{'2.weight': has shape \[4, 2\], expected \[4, 5\]"):
        other.manager.restore()
    only = CheckpointManager(folder, save_random_state=False, optimizer=other.opt)
    with pytest.raises(CheckpointError, match=r"does not fit optimizer: .*linear_1.w_0_moment1_0.*expected \[4, 5\]"):
        only.restore()
    assert other.content() == before


def test_mistakes(folder):
    for options, text in (({"max_to_keep": 0}, "max_to_keep"), ({"keep_period": True}, "keep_period"), ({"extra": nn.Linear(1, 1)}, "extra")):
        with pytest.raises(ValueError, match=text):
            CheckpointManager(folder, **options)
    with pytest.raises(TypeError, match=r"model is a dict.*save\(extra=\.\.\.\)"):
        CheckpointManager(folder, model={})
    for step in (-1, 1.5, True):
        with pytest.raises(ValueError, match="step should be an integer"):
            CheckpointManager(folder).save(step)


def test_what_a_killed_process_leaves_is_removed_or_put_back(folder):
    run = Run(folder)
    run.manager.save(1)
    (folder / ".new-2-abc").mkdir()
    (folder / ".new-2-abc" / "model.pdparams").write_bytes(b"half")
    os.rename(folder / "step_00000001", folder / ".old-step_00000001-xyz")  # killed between the two renames
    assert CheckpointManager(folder).all_steps() == [1] and os.listdir(folder) == ["step_00000001"]
    assert run.manager.restore().step == 1


def test_an_error_while_saving_leaves_nothing(folder):
    run = Run(folder)
    run.manager.save(1)
    with pytest.raises(TypeError):
        run.manager.save(2, extra=lambda: None)
    assert os.listdir(folder) == ["step_00000001"]
    background = Run(folder, async_save=True).manager
    background.save(3, extra=lambda: None)
    with pytest.raises(TypeError):
        background.wait_until_finished()
    background.save(4)
    background.close()
    assert background.all_steps() == [1, 4]


FULL = """
import resource, sys
import oar
from oar.checkpoint import CheckpointManager
net = oar.nn.Linear(200, 200)
manager = CheckpointManager(sys.argv[1], model=net)
manager.save(1)
net.weight.set_value(oar.zeros([200, 200]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # as a disk that is full
try:
    manager.save(2)
except OSError as error:
    print(error)
try:
    oar.save(net.state_dict(), sys.argv[1] + "/net.pdparams")
except OSError as error:
    print("save:", error)
print(manager.all_steps(), bool(manager.restore()) and float(net.weight.abs().sum()) > 0)
"""


def test_a_full_disk_leaves_the_checkpoints_that_are_there(folder):
    folder.mkdir()
    oar.save({"old": oar.ones([1])}, folder / "net.pdparams")
    done = subprocess.run([sys.executable, "-c", FULL, str(folder)], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert "checkpoint of step 2 could not be written" in lines[0] and "steps [1] are unchanged" in lines[0], done
    assert lines[1].startswith("save:") and lines[2] == "[1] True"
    assert sorted(os.listdir(folder)) == ["net.pdparams", "step_00000001"] and "old" in oar.load(folder / "net.pdparams")


def test_a_real_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    try:
        net = nn.Linear(200, 200)
        manager = CheckpointManager(disk, model=net)
        manager.save(1)
        with pytest.raises(OSError, match="No space left on device"):
            for step in range(2, 4):
                manager.save(step)
        assert manager.restore().step in (1, 2) and not [name for name in os.listdir(disk) if name.startswith(".")]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("async_save", [False, True])
def test_kills_at_random_moments(async_save):
    counts = kill_checkpoints.kill_and_go_on(kills=5, steps=30, async_save=async_save, seed=3)
    assert counts["kills"] >= 1


def test_the_list_is_readable(folder):
    run = Run(folder)
    run.manager.save(7)
    listed = json.loads((folder / "step_00000007" / "checkpoint.json").read_text())
    assert listed["step"] == 7 and set(listed["files"]["model.pdparams"]["tensors"]) == set(run.net.state_dict())
