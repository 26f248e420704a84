"""`oar train`: a step that Python saved, continued without Python."""

import json

import numpy as np
import pytest
from command_models import run, write_step

import oar


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_numbers_are_those_of_python(tmp_path):
    x, label = write_step(tmp_path)
    report = lines(run("train", "step.oar", "--data", "train.npz", "--epochs", 3, "--batch", 8, "--seed", 4, "--json",
                       "--output", "end.safetensors", cwd=tmp_path))
    step = oar.jit.load(str(tmp_path / "step.oar"))
    oar.seed(4)
    np.random.seed(4)
    data = oar.io.DataLoader(oar.io.TensorDataset([oar.to_tensor(x), oar.to_tensor(label)]), batch_size=8, shuffle=True)
    means = [np.mean([step(*batch).item() for batch in data]) for _ in range(3)]
    assert [row["step"] for row in report] == [7, 14, 21]
    np.testing.assert_allclose([row["loss"] for row in report], means, rtol=1e-6)
    assert means[2] < means[0]
    state, trained = step.state_dict(), oar.load(str(tmp_path / "end.safetensors"))
    assert len(trained) > 8 and trained.keys() <= state.keys()
    for name, tensor in trained.items():
        np.testing.assert_array_equal(tensor.numpy(), state[name].numpy(), err_msg=name)


@pytest.mark.parametrize("before", [5, 7, 9])
def test_a_resumed_run_ends_like_one_without_a_break(before, tmp_path):
    """Also in the middle of an epoch: of seven steps each."""
    write_step(tmp_path)
    common = ["train", "step.oar", "--data", "train.npz", "--batch", 8]
    run(*common, "--epochs", 3, "--output", "whole.npz", cwd=tmp_path)
    run(*common, "--epochs", 2, "--checkpoint", "run", "--save-every", before, cwd=tmp_path)
    for folder in (tmp_path / "run").iterdir():  # as if it had been killed after the first checkpoint
        if folder.is_dir() and int(folder.name.split("_")[1]) > before:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
    again = run(*common, "--epochs", 3, "--checkpoint", "run", "--resume", "--output", "resumed.npz", cwd=tmp_path)
    assert f"continues after step {before}" in again
    whole, resumed = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "resumed.npz")
    assert whole.files == resumed.files
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], resumed[name], err_msg=name)


def test_mistakes_are_explained(tmp_path):
    write_step(tmp_path)
    oar.jit.save(oar.nn.Linear(3, 2), str(tmp_path / "net.oar"), input_spec=[oar.static.InputSpec([None, 3], "float32", "x")])
    np.savez(tmp_path / "other.npz", x=np.zeros([4, 4], "float32"), y=np.zeros(4))
    np.savez(tmp_path / "floats.npz", x=np.zeros([4, 4], "float32"), label=np.zeros(4))
    for words, parts in (
        (["net.oar", "--data", "train.npz"], ["net.oar", "changes no parameter"]),
        (["step.oar", "--data", "other.npz"], ["other.npz", "'label'", "x float32[4, 4]"]),
        (["step.oar", "--data", "floats.npz"], ["'label'", "float64[4]", "int64"]),
        (["step.oar", "--data", "train.txt"], ["train.txt", ".npz"]),
        (["step.oar", "--data", "train.npz", "--resume"], ["--checkpoint"]),
        (["step.oar"], ["--data"]),
    ):
        message = run("train", *words, cwd=tmp_path, status=2)
        for part in parts:
            assert part in message, message
    run("train", "step.oar", "--data", "train.npz", "--checkpoint", "run", cwd=tmp_path)
    assert "--resume" in run("train", "step.oar", "--data", "train.npz", "--checkpoint", "run", cwd=tmp_path, status=2)


def test_training_stops_where_the_loss_is_not_finite(tmp_path):
    x, label = write_step(tmp_path)
    np.savez(tmp_path / "nan.npz", x=x * np.nan, label=label)
    assert "not finite" in run("train", "step.oar", "--data", "nan.npz", cwd=tmp_path, status=1)
