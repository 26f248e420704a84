"""Decoders and kernels on pixels, against Pillow: the same bits."""

import io
import os

import numpy as np
import pytest
from PIL import Image

import oar
from oar import _C
from oar.vision import image as vision_image
from oar.vision._file_image import FileImage, open_in_colour
from oar.vision.transforms import functional as F

RNG = np.random.RandomState(0)


def photo(height: int, width: int, mode: str = "RGB") -> Image.Image:
    """Large soft spots, so that a JPEG file has few bytes and some detail."""
    spots = RNG.randint(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    return Image.fromarray(spots).resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def encoded(image: Image.Image, kind: str = "JPEG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def saved(folder, name: str, content: bytes) -> str:
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def by_pillow(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_jpeg_and_its_windows(mode, subsampling, progressive):
    for height, width in [(97, 131), (16, 16), (1, 1), (33, 8)]:
        content = encoded(photo(height, width, mode), quality=85, subsampling=subsampling, progressive=progressive)
        expected = by_pillow(content)
        np.testing.assert_array_equal(_C.image_decode(content, "rgb", None), expected)
        for _ in range(10):
            h, w = RNG.randint(1, height + 1), RNG.randint(1, width + 1)
            top, left = RNG.randint(0, height - h + 1), RNG.randint(0, width - w + 1)
            part = _C.image_decode(content, "rgb", (top, left, h, w))
            np.testing.assert_array_equal(part, expected[top:top + h, left:left + w])


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1"])
def test_png(mode):
    image = photo(40, 50).convert(mode)
    content = encoded(image, "PNG")
    np.testing.assert_array_equal(_C.image_decode(content, "rgb", None), np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(_C.image_decode(content, "rgb", (3, 4, 5, 6)), np.asarray(image.convert("RGB"))[3:8, 4:10])


@pytest.mark.parametrize("name", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
def test_sizes_are_changed_as_by_pillow(name):
    for height, width in [(37, 53), (75, 100), (3, 5), (1, 1)]:
        pixels = RNG.randint(0, 256, (height, width, 3)).astype(np.uint8)
        image = Image.fromarray(pixels)
        for new in [(64, 64), (height, 20), (20, width), (30, 22), (1, 1)]:
            expected = np.asarray(image.resize(new[::-1], Image.Resampling[name.upper()]))
            found = _C.image_resample(pixels, *new, name)
            if new[0] < height and new[1] > width:  # where versions of Pillow round in different order
                assert np.abs(found.astype(int) - expected).mean() < 1
            else:
                np.testing.assert_array_equal(found, expected)


def test_a_file_image_is_an_image_of_pillow(tmp_path):
    path = saved(tmp_path, "a.jpg", encoded(photo(60, 80)))
    expected = Image.open(path).convert("RGB")
    image = open_in_colour(path)
    assert isinstance(image, Image.Image) and image.pending
    assert (image.size, image.mode, image.getbands()) == ((80, 60), "RGB", ("R", "G", "B"))
    np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))
    assert not np.asarray(image).flags.writeable
    copy = open_in_colour(path)
    assert copy.getpixel((3, 4)) == expected.getpixel((3, 4))
    assert not copy.pending  # now it is Pillow's, and may be drawn on
    copy.putpixel((3, 4), (1, 2, 3))
    assert np.asarray(copy)[4, 3].tolist() == [1, 2, 3]
    import pickle

    again = pickle.loads(pickle.dumps(open_in_colour(path)))
    np.testing.assert_array_equal(np.asarray(again), np.asarray(expected))


def test_transforms_of_a_file_image_are_those_of_pillow(tmp_path):
    path = saved(tmp_path, "a.jpg", encoded(photo(90, 120), quality=90))

    def both(function):
        lazy, plain = function(open_in_colour(path)), function(Image.open(path).convert("RGB"))
        assert isinstance(lazy, FileImage) and lazy.pending
        np.testing.assert_array_equal(np.asarray(lazy), np.asarray(plain))

    both(lambda img: F.crop(img, 5, 7, 50, 60))
    both(lambda img: F.resize(F.crop(img, 5, 7, 50, 61), (32, 40)))
    both(lambda img: F.resize(F.resize(img, 64), (20, 40), "bicubic"))
    both(lambda img: F.crop(F.hflip(F.crop(img, 5, 7, 50, 61)), 1, 2, 20, 30))
    both(lambda img: F.vflip(F.center_crop(img, 33)))
    # What leaves the image is Pillow's business: it fills with black.
    outside = F.crop(open_in_colour(path), -5, -5, 20, 20)
    np.testing.assert_array_equal(np.asarray(outside), np.asarray(Image.open(path).convert("RGB").crop((-5, -5, 15, 15))))


def test_shrink_jpeg_is_near(tmp_path):
    path = saved(tmp_path, "a.jpg", encoded(photo(400, 600), quality=90))
    exact = np.asarray(F.resize(open_in_colour(path), (50, 70))).astype(int)
    oar.set_flags({"shrink_jpeg": True})
    try:
        fast = np.asarray(F.resize(open_in_colour(path), (50, 70))).astype(int)
    finally:
        oar.set_flags({"shrink_jpeg": False})
    assert 0 < np.abs(fast - exact).max() and np.abs(fast - exact).mean() < 3


def test_broken_files_are_named(tmp_path):
    good = encoded(photo(60, 80))
    cut = saved(tmp_path, "cut.jpg", good[:len(good) // 2])
    with pytest.raises(OSError, match=r"cut\.jpg cannot be read: .*ends too early.*Replace or remove"):
        np.asarray(open_in_colour(cut))
    with pytest.raises(OSError, match=r"cut\.jpg cannot be read"):
        F.resize(open_in_colour(cut), 20)
    with pytest.raises(OSError, match=r"empty\.jpg"):
        open_in_colour(saved(tmp_path, "empty.jpg", b""))
    with pytest.raises(OSError, match=r"text\.png"):
        open_in_colour(saved(tmp_path, "text.png", b"\x89PNG\r\n\x1a\nnot really"))
    for backend in ("cv2", "tensor"):
        with pytest.raises(OSError, match=r"\[image_load\] .*cut\.jpg cannot be read"):
            vision_image.image_load(cut, backend)


def test_any_damage_is_an_image_or_an_error():
    content = bytearray(encoded(photo(24, 30)))
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(RNG.randint(1, 6)):
            damaged[RNG.randint(2, len(damaged))] = RNG.randint(0, 256)
        try:
            pixels = _C.image_decode(bytes(damaged[:RNG.randint(100, len(damaged) + 1)]), "rgb", None)
        except (ValueError, NotImplementedError):
            continue
        assert pixels.ndim == 3 and pixels.dtype == np.uint8


def test_image_load(tmp_path):
    image = photo(20, 30)
    path = saved(tmp_path, "a.jpg", encoded(image))
    expected = by_pillow(encoded(image))
    np.testing.assert_array_equal(vision_image.image_load(path, "cv2"), expected[:, :, ::-1])
    tensor = vision_image.image_load(path, "tensor")
    assert tensor.dtype == oar.uint8
    np.testing.assert_array_equal(tensor.numpy(), expected.transpose(2, 0, 1))
    assert vision_image.image_load(path, "pil").size == (30, 20)
    gif = saved(tmp_path, "a.gif", encoded(image, "GIF"))
    assert vision_image.image_load(gif, "cv2").shape == (20, 30, 3)
    with pytest.raises(FileNotFoundError):
        vision_image.image_load(os.path.join(tmp_path, "none.jpg"), "cv2")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_arrays_are_turned_as_the_camera_was_held(tmp_path, orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path, "a.jpg", encoded(photo(20, 30), exif=exif))
    expected = np.asarray(ImageOps.exif_transpose(Image.open(path)))
    np.testing.assert_array_equal(vision_image.image_load(path, "cv2")[:, :, ::-1], expected)
    np.testing.assert_array_equal(np.asarray(open_in_colour(path)), np.asarray(Image.open(path)))


def test_decode_jpeg(tmp_path):
    for mode in ("RGB", "L"):
        image = photo(20, 30, mode)
        content = oar.vision.ops.read_file(saved(tmp_path, "a.jpg", encoded(image)))
        assert content.dtype == oar.uint8
        channels = {"unchanged": 3 if mode == "RGB" else 1, "rgb": 3, "gray": 1}
        for wanted, count in channels.items():
            assert oar.vision.ops.decode_jpeg(content, wanted).shape == [count, 20, 30]
    with pytest.raises(ValueError, match="no JPEG file"):
        oar.vision.ops.decode_jpeg(oar.to_tensor(np.zeros(9, np.uint8)))
    with pytest.raises(OSError, match="ends too early"):
        oar.vision.ops.decode_jpeg(content[:200])
    cmyk = np.frombuffer(encoded(photo(20, 30).convert("CMYK")), np.uint8).copy()  # Pillow's part
    assert oar.vision.ops.decode_jpeg(oar.to_tensor(cmyk), "rgb").shape == [3, 20, 30]
