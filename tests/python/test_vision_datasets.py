"""Data sets of images, read from small files in the formats that people have."""

import gzip
import io
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

import oar
from oar.vision import datasets
from oar.vision import transforms as T

RNG = np.random.RandomState(0)


def jpeg(height=12, width=15) -> bytes:
    file = io.BytesIO()
    Image.fromarray(RNG.randint(0, 256, (height, width, 3)).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def write(path, content: bytes) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return str(path)


def tar_of(path, files: dict, mode="w:gz") -> str:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return str(path)


# ---- MNIST ----

DIGITS = RNG.randint(0, 256, (7, 28, 28)).astype(np.uint8)
LABELS = RNG.randint(0, 10, 7).astype(np.uint8)


def idx_files(folder, packed=True, images=DIGITS, labels=LABELS):
    contents = (struct.pack(">IIII", 2051, *images.shape) + images.tobytes(), struct.pack(">II", 2049, len(labels)) + labels.tobytes())
    pack = gzip.compress if packed else bytes
    return [write(os.path.join(folder, name), pack(content)) for name, content in zip(("images", "labels"), contents)]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST])
def test_mnist(tmp_path, kind, packed):
    images, labels = idx_files(tmp_path, packed)
    data = kind(images, labels, mode="test")
    assert len(data) == 7
    image, label = data[3]
    assert isinstance(image, Image.Image) and image.mode == "L"
    np.testing.assert_array_equal(np.asarray(image), DIGITS[3])
    assert label.dtype == np.int64 and label.tolist() == [LABELS[3]]
    array, _ = kind(images, labels, backend="cv2", transform=lambda x: x + 1)[3]
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, DIGITS[3] + 1.0)
    batch, targets = next(iter(oar.io.DataLoader(kind(images, labels, transform=T.ToTensor()), batch_size=4)))
    assert batch.shape == [4, 1, 28, 28] and targets.shape == [4, 1]


def test_mnist_files_that_are_wrong(tmp_path):
    images, labels = idx_files(tmp_path)
    with pytest.raises(ValueError, match="begins with 2049, not 2051"):
        datasets.MNIST(labels, images)
    with pytest.raises(ValueError, match="3 labels for 7 images"):
        datasets.MNIST(images, idx_files(tmp_path / "few", labels=LABELS[:3])[1])
    cut = write(str(tmp_path / "cut"), gzip.decompress(open(images, "rb").read())[:1000])
    with pytest.raises(ValueError, match=r"984 of the 5488 bytes"):
        datasets.MNIST(cut, labels)
    with pytest.raises(ValueError, match="Download the file again"):
        datasets.MNIST(write(str(tmp_path / "half.gz"), open(images, "rb").read()[:100]), labels)
    with pytest.raises(ValueError, match="mode is 'valid'"):
        datasets.MNIST(images, labels, mode="valid")
    with pytest.raises(ValueError, match="backend is 'tensor'"):
        datasets.MNIST(images, labels, backend="tensor")


def test_what_cannot_be_downloaded_says_where_it_belongs(tmp_path, monkeypatch):
    from oar.dataset import common
    from oar.utils import download
    from oar.vision.datasets import _common

    monkeypatch.setattr(download.urllib.request, "urlopen", lambda *_, **__: (_ for _ in ()).throw(OSError("no route")))
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setattr(_common, "DATA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"\[Cifar10\] .*cifar-10-python\.tar\.gz does not exist and https://.* cannot be downloaded.*"
                                           r"put it there, or pass data_file"):
        datasets.Cifar10()
    for kind in (datasets.MNIST, datasets.Cifar100, datasets.Flowers, datasets.VOC2012):
        with pytest.raises(ValueError, match="download is False"):
            kind(download=False)
        with pytest.raises(RuntimeError, match="cannot be downloaded"):
            kind()


# ---- Cifar ----


def cifar_files(hundred=False) -> dict:
    def batch(count):
        data = {b"data": RNG.randint(0, 256, (count, 3072)).astype(np.uint8)}
        labels = RNG.randint(0, 10, count).tolist()
        return {**data, **({b"fine_labels": labels, b"coarse_labels": labels} if hundred else {b"labels": labels})}

    if hundred:
        return {"cifar-100-python/train": batch(4), "cifar-100-python/test": batch(3), "cifar-100-python/meta": {b"x": 1}}
    return {f"cifar-10-batches-py/{name}": batch(2) for name in ("data_batch_2", "data_batch_1", "test_batch")}


@pytest.mark.parametrize("hundred", [False, True])
@pytest.mark.parametrize("unpacked", [False, True])
def test_cifar(tmp_path, hundred, unpacked):
    files = cifar_files(hundred)
    contents = {name: pickle.dumps(batch, protocol=2) for name, batch in files.items()}
    path = tar_of(tmp_path / "cifar.tar.gz", contents)
    if unpacked:
        for name, content in contents.items():
            write(os.path.join(tmp_path, name), content)
        path = os.path.join(tmp_path, next(iter(files)).split("/")[0])
    kind = datasets.Cifar100 if hundred else datasets.Cifar10
    data = kind(path, mode="train")
    assert len(data) == 4
    first = files["cifar-100-python/train" if hundred else "cifar-10-batches-py/data_batch_1"]
    image, label = data[1]
    np.testing.assert_array_equal(np.asarray(image), first[b"data"][1].reshape(3, 32, 32).transpose(1, 2, 0))
    assert label.shape == () and label == first[b"fine_labels" if hundred else b"labels"][1]
    assert len(kind(path, mode="test")) == (3 if hundred else 2)
    assert kind(path, backend="cv2")[0][0].dtype == np.float32


def test_a_pickle_runs_no_code(tmp_path):
    class Bad:
        def __reduce__(self):
            return os.system, ("true",)

    path = tar_of(tmp_path / "bad.tar.gz", {"cifar-10-batches-py/data_batch_1": pickle.dumps({b"data": Bad()})})
    with pytest.raises(ValueError, match=r"it refers to (posix|os)\.system"):
        datasets.Cifar10(path)
    with pytest.raises(ValueError, match="cannot be read"):
        datasets.Cifar10(write(str(tmp_path / "text"), b"text"))
    with pytest.raises(ValueError, match="no file data_batch"):
        datasets.Cifar10(tar_of(tmp_path / "empty.tar", {"x": b""}, "w"))


# ---- Flowers and VOC2012 ----


def test_flowers(tmp_path):
    from scipy.io import savemat

    files = {f"jpg/image_{i:05d}.jpg": jpeg() for i in (1, 2, 3)}
    path = tar_of(tmp_path / "102flowers.tgz", files)
    savemat(tmp_path / "labels.mat", {"labels": [[77, 5, 9]]})
    savemat(tmp_path / "setid.mat", {"tstid": [[3, 1]], "trnid": [[2]], "valid": [[1]]})
    arguments = (path, str(tmp_path / "labels.mat"), str(tmp_path / "setid.mat"))
    data = datasets.Flowers(*arguments)
    assert len(data) == 2 and [data[i][1].tolist() for i in range(2)] == [[9], [77]]
    np.testing.assert_array_equal(np.asarray(data[0][0]), np.asarray(Image.open(io.BytesIO(files["jpg/image_00003.jpg"]))))
    folder = datasets.Flowers(str(tmp_path / "102flowers"), *arguments[1:], mode="test", backend="cv2")
    assert folder[0][0].shape == (12, 15, 3) and folder[0][1].tolist() == [5]
    with pytest.raises(ValueError, match="no matrix 'labels'"):
        datasets.Flowers(path, arguments[2], arguments[2])


@pytest.mark.parametrize("unpacked", [False, True])
def test_voc2012(tmp_path, unpacked):
    classes = Image.fromarray(RNG.randint(0, 21, (12, 15)).astype(np.uint8), "P")
    classes.putpalette(list(range(256)) * 3)
    png = io.BytesIO()
    classes.save(png, "PNG")
    root = "VOCdevkit/VOC2012/"
    files = {root + "ImageSets/Segmentation/trainval.txt": b"a_1\nb_2\n", root + "ImageSets/Segmentation/val.txt": b"b_2\n"}
    for name in ("a_1", "b_2"):
        files |= {f"{root}JPEGImages/{name}.jpg": jpeg(), f"{root}SegmentationClass/{name}.png": png.getvalue()}
    path = tar_of(tmp_path / "voc.tar", files, "w")
    if unpacked:
        for name, content in files.items():
            write(os.path.join(tmp_path, name), content)
        path = str(tmp_path)
    data = datasets.VOC2012(path)
    assert len(data) == 2 and len(datasets.VOC2012(path, mode="valid")) == 1
    image, found = data[1]
    np.testing.assert_array_equal(np.asarray(image), np.asarray(Image.open(io.BytesIO(files[root + "JPEGImages/b_2.jpg"]))))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(classes))
    arrays = datasets.VOC2012(path, backend="cv2", transform=lambda x: x / 255.0)
    loader = oar.io.DataLoader(arrays, batch_size=2, num_workers=2)  # workers share the archive
    images, targets = next(iter(loader))
    np.testing.assert_array_equal(targets.numpy()[0], np.asarray(classes))
    assert images.shape == [2, 12, 15, 3] and images.dtype == oar.float32
    with pytest.raises((ValueError, FileNotFoundError), match="train"):
        datasets.VOC2012(path, mode="test")


# ---- Folders ----


@pytest.fixture
def animals(tmp_path):
    for name, count in (("dogs", 2), ("cats", 3)):
        for i in range(count):
            write(os.path.join(tmp_path, name, f"{i}.{'JPG' if i else 'jpg'}"), jpeg(40 + i, 50))
    write(os.path.join(tmp_path, "cats", "notes.txt"), b"no image")
    return str(tmp_path)


def test_dataset_folder(animals):
    data = datasets.DatasetFolder(animals)
    assert data.classes == ["cats", "dogs"] and data.class_to_idx == {"cats": 0, "dogs": 1}
    assert data.targets == [0, 0, 0, 1, 1] and len(data) == 5
    image, target = data[4]
    assert target == 1 and isinstance(image, Image.Image)
    np.testing.assert_array_equal(np.asarray(image), np.asarray(Image.open(data.samples[4][0])))
    only = datasets.DatasetFolder(animals, is_valid_file=lambda path: path.endswith("0.jpg"))
    assert len(only) == 2
    texts = datasets.DatasetFolder(animals, loader=lambda path: open(path).read(), extensions=(".txt",))
    assert texts[0] == ("no image", 0)


def test_image_folder_and_backends(animals):
    assert len(datasets.ImageFolder(animals)) == 5
    oar.vision.set_image_backend("cv2")
    try:
        (array,) = datasets.ImageFolder(animals)[0]
        expected = np.asarray(Image.open(datasets.ImageFolder(animals).samples[0]))
        np.testing.assert_array_equal(array, expected)
    finally:
        oar.vision.set_image_backend("pil")


def test_folders_without_images(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        datasets.DatasetFolder(str(tmp_path / "none"))
    os.mkdir(tmp_path / "empty")
    with pytest.raises(RuntimeError, match="hold no files that count"):
        datasets.DatasetFolder(str(tmp_path))
    with pytest.raises(RuntimeError, match="hold no files that count"):
        datasets.ImageFolder(str(tmp_path))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_corrupt_file_in_an_epoch_is_named(animals, workers):
    path = datasets.DatasetFolder(animals).samples[3][0]
    content = open(path, "rb").read()
    write(path, content[:len(content) // 2])
    chain = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])
    loader = oar.io.DataLoader(datasets.DatasetFolder(animals, transform=chain), batch_size=1, num_workers=workers)
    batches = []
    with pytest.raises(OSError, match=r"0\.jpg cannot be read: .*Replace or remove the file"):
        for images, _ in loader:
            batches.append(images)
    assert len(batches) == 3 and all(images.shape == [1, 3, 24, 24] for images in batches)
