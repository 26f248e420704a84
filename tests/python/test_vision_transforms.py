"""Transforms of images of Pillow, arrays and tensors."""

import random

import numpy as np
import pytest
from PIL import Image

import oar
import oar.vision.transforms as T
from oar.vision.transforms import functional as F

RNG = np.random.RandomState(0)
PIXELS = RNG.randint(0, 256, (24, 32, 3)).astype(np.uint8)
KINDS = {
    "pil": Image.fromarray(PIXELS),
    "array": PIXELS,
    "tensor": oar.to_tensor(PIXELS.transpose(2, 0, 1).astype("float32") / 255),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def as_pixels(image) -> np.ndarray:
    """[height, width, channels] as floats from 0 to 255, whatever it is."""
    if isinstance(image, oar.Tensor):
        return image.numpy().transpose(1, 2, 0) * 255
    pixels = np.asarray(image).astype("float64")
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def test_all_names_are_there():
    assert len(T.__all__) == 38 and all(hasattr(T, name) for name in T.__all__)


@kinds
def test_places_are_exact(kind):
    image = KINDS[kind]
    expected = {
        "crop": (F.crop(image, 3, 5, 11, 13), PIXELS[3:14, 5:18]),
        "center": (F.center_crop(image, (10, 12)), PIXELS[7:17, 10:22]),
        "hflip": (F.hflip(image), PIXELS[:, ::-1]),
        "vflip": (F.vflip(image), PIXELS[::-1]),
        "edge": (F.pad(image, (1, 2, 3, 4), 0, "edge"), np.pad(PIXELS, ((2, 4), (1, 3), (0, 0)), "edge")),
        "reflect": (F.pad(image, 2, 0, "reflect"), np.pad(PIXELS, ((2, 2), (2, 2), (0, 0)), "reflect")),
        "constant": (F.pad(image, (2, 1)), np.pad(PIXELS, ((1, 1), (2, 2), (0, 0)))),
    }
    for name, (found, wanted) in expected.items():
        np.testing.assert_allclose(as_pixels(found), wanted, atol=1e-4, err_msg=name)


def test_padding_with_a_colour():
    for image in (KINDS["pil"], KINDS["array"]):
        assert as_pixels(F.pad(image, 1, (7, 8, 9)))[0, 0].tolist() == [7, 8, 9]
    assert as_pixels(F.pad(KINDS["array"], 1, 7))[0, 0].tolist() == [7, 0, 0]  # as OpenCV's scalars
    symmetric = np.pad(PIXELS, ((2, 2), (2, 2), (0, 0)), "symmetric")
    np.testing.assert_array_equal(F.pad(PIXELS, 2, padding_mode="symmetric"), symmetric)
    palette = KINDS["pil"].convert("P")
    for mode in ("constant", "edge"):
        padded = F.pad(palette, 1, 0, mode)
        assert padded.mode == "P" and padded.getpalette() == palette.getpalette()


@kinds
@pytest.mark.parametrize("size, shape", [(12, (12, 16)), ((7, 9), (7, 9)), (24, (24, 32)), ([48, 50], (48, 50))])
def test_sizes(kind, size, shape):
    for interpolation in ("nearest", "bilinear", "bicubic"):
        assert as_pixels(T.Resize(size, interpolation)(KINDS[kind])).shape[:2] == shape


def test_arrays_of_other_kinds():
    gray = PIXELS[:, :, 0]
    assert F.resize(gray, (5, 6)).shape == (5, 6) and F.resize(gray[:, :, None], (5, 6)).shape == (5, 6, 1)
    whole = F.resize(PIXELS, (48, 64), "area").astype(float)
    for dtype in ("float32", "float64", "int16", "uint16"):
        resized = F.resize(PIXELS.astype(dtype), (48, 64), "area")
        assert resized.dtype == dtype
        np.testing.assert_allclose(resized, whole, atol=1)
    assert F.hflip(gray[:, :, None]).shape == (24, 32, 1)
    np.testing.assert_array_equal(F.crop(gray, 1, 2, 3, 4), gray[1:4, 2:6])
    assert F.rotate(gray, 10).shape == gray.shape


def test_a_half_is_the_mean_of_four():
    expected = (PIXELS.reshape(12, 2, 16, 2, 3).sum((1, 3)) + 2) >> 2
    for interpolation in ("bilinear", "area"):
        np.testing.assert_array_equal(F.resize(PIXELS, (12, 16), interpolation), expected)


@kinds
def test_a_factor_of_one_changes_nothing(kind):
    image = KINDS[kind]
    for adjust in (F.adjust_brightness, F.adjust_contrast):
        np.testing.assert_allclose(as_pixels(adjust(image, 1.0)), PIXELS, atol=1)
    if kind != "array":  # there the factor is drawn
        np.testing.assert_allclose(as_pixels(F.adjust_saturation(image, 1.0)), PIXELS, atol=1)
    turned = np.abs(as_pixels(F.adjust_hue(image, 0.0)) - PIXELS)
    assert turned.max() <= 8 and turned.mean() < 2


def test_gray_and_hue_agree_between_kinds():
    grays = [as_pixels(F.to_grayscale(image, 3))[..., 0] for image in KINDS.values()]
    for gray in grays[1:]:
        np.testing.assert_allclose(gray, grays[0], atol=1.5)
    hues = [as_pixels(F.adjust_hue(KINDS[kind], 0.25)) for kind in ("pil", "tensor")]
    assert np.abs(hues[0] - hues[1]).mean() < 4
    turned = F.adjust_hue(np.ascontiguousarray(PIXELS[..., ::-1]), 0.25)[..., ::-1]  # blue first
    assert np.abs(turned.astype(float) - hues[0]).mean() < 4


@kinds
def test_quarter_turns(kind):
    image = F.crop(KINDS[kind], 0, 0, 24, 24)
    np.testing.assert_allclose(as_pixels(F.rotate(image, 0.0, "bilinear")), PIXELS[:24, :24], atol=1e-3)
    expanded = as_pixels(F.rotate(KINDS[kind], 45, expand=True))
    assert all(39 <= side <= 41 for side in expanded.shape[:2])
    assert expanded[0, 0].tolist() == [0, 0, 0]
    if kind != "array":  # OpenCV turns about the corner between pixels
        np.testing.assert_allclose(as_pixels(F.rotate(image, 90)), np.rot90(PIXELS[:24, :24]), atol=1e-3)


@kinds
def test_an_identity_keeps_the_image(kind):
    image = KINDS[kind]
    corners = [[0, 0], [31, 0], [31, 23], [0, 23]]
    np.testing.assert_allclose(as_pixels(F.perspective(image, corners, corners)), PIXELS, atol=1e-3)
    np.testing.assert_allclose(as_pixels(F.affine(image, 0, [0, 0], 1.0, [0, 0])), PIXELS, atol=1e-3)
    shifted = as_pixels(F.affine(image, 0, [2, 3], 1.0, 0, fill=9 if kind != "tensor" else 0))
    np.testing.assert_allclose(shifted[3:, 2:], PIXELS[:-3, :-2], atol=1e-3)


def test_gradients_of_tensors():
    image = KINDS["tensor"].clone()
    image.stop_gradient = False
    F.rotate(F.adjust_contrast(F.resize(image, (12, 12)), 0.5), 30, "bilinear").sum().backward()
    assert image.grad.shape == image.shape and float(image.grad.abs().sum()) > 0


@kinds
def test_erase_and_random_erasing(kind):
    image = KINDS[kind]
    value = 0.5 if kind == "tensor" else 127
    erased = as_pixels(F.erase(image, 2, 3, 4, 5, value))
    np.testing.assert_allclose(erased[2:6, 3:8], 127, atol=0.6)
    np.testing.assert_allclose(erased[6:], PIXELS[6:], atol=1e-3)
    np.random.seed(0)
    random.seed(0)
    for filling in (0, (1, 2, 3), "random"):
        changed = as_pixels(T.RandomErasing(1.0, value=filling)(image))
        part = (np.abs(changed - PIXELS) > 1e-3).any(-1).mean()
        assert 0.01 < part < 0.4
    np.testing.assert_allclose(as_pixels(T.RandomErasing(0.0)(image)), PIXELS, atol=1e-3)
    own = PIXELS.copy()
    F.erase(own, 0, 0, 2, 2, 9, inplace=True)
    assert own[0, 0].tolist() == [9, 9, 9]


@kinds
def test_seeds_repeat_what_is_drawn(kind):
    chain = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.RandomRotation(20),
                       T.RandomAffine(10, [0.1, 0.1], [0.8, 1.2], 5), T.RandomPerspective(1.0), T.ColorJitter(0.3, 0.3, 0.3, 0.3),
                       T.RandomCrop(12, 2), T.RandomErasing()])
    results = []
    for _ in range(2):
        random.seed(5)
        np.random.seed(6)
        results.append(as_pixels(chain(KINDS[kind])))
    np.testing.assert_array_equal(*results)
    assert results[0].shape == (12, 12, 3)


def test_to_tensor():
    tensor = T.ToTensor()(KINDS["array"])
    np.testing.assert_allclose(tensor.numpy(), PIXELS.transpose(2, 0, 1) / 255, atol=1e-7)
    np.testing.assert_array_equal(T.ToTensor()(KINDS["pil"]).numpy(), tensor.numpy())
    assert T.ToTensor("HWC")(KINDS["pil"]).shape == [24, 32, 3]
    assert T.ToTensor()(PIXELS[:, :, 0]).shape == [1, 24, 32]
    assert T.ToTensor()(PIXELS.astype("float64")).dtype == oar.float64
    for mode, dtype, channels in [("L", "float32", 1), ("RGBA", "float32", 4), ("I", "int32", 1), ("F", "float32", 1), ("1", "float32", 1)]:
        found = T.ToTensor()(KINDS["pil"].convert(mode))
        assert (found.dtype.name, found.shape) == (dtype, [channels, 24, 32])
    assert float(T.ToTensor()(Image.new("1", (2, 2), 1)).max()) == 1.0


def test_to_tensor_and_normalize_in_one_step():
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    for data_format in ("CHW", "HWC"):
        steps = [T.ToTensor(data_format), T.Normalize(mean, std, data_format)]
        for image in (KINDS["array"], KINDS["pil"]):
            apart = steps[1](steps[0](image))
            np.testing.assert_allclose(T.Compose(steps)(image).numpy(), apart.numpy(), rtol=1e-6, atol=1e-6)
    # A subclass does what it says.
    class Twice(T.Normalize):
        def _apply_image(self, img):
            return super()._apply_image(img) * 2

    doubled = T.Compose([T.ToTensor(), Twice(mean, std)])(KINDS["array"])
    np.testing.assert_allclose(doubled.numpy(), 2 * T.Compose([T.ToTensor(), T.Normalize(mean, std)])(KINDS["array"]).numpy(), rtol=1e-5)


def test_normalize_and_transpose():
    normalized = T.Normalize([1, 2, 3], [2, 4, 8], "HWC")(PIXELS.astype("float32"))
    np.testing.assert_allclose(normalized, (PIXELS - np.array([1, 2, 3], "float32")) / np.array([2, 4, 8], "float32"))
    swapped = T.Normalize(0.0, 1.0, "HWC", to_rgb=True)(PIXELS.astype("float32"))
    np.testing.assert_array_equal(swapped, PIXELS[..., ::-1])
    assert T.Transpose()(KINDS["pil"]).shape == (3, 24, 32)
    assert T.Transpose()(KINDS["pil"].convert("L")).shape == (1, 24, 32)
    assert T.Transpose((1, 2, 0))(KINDS["tensor"]).shape == [24, 32, 3]


def test_keys_and_subclasses():
    class Halved(T.BaseTransform):
        def _get_params(self, inputs):
            return inputs[0].shape[:2]

        def _apply_image(self, image):
            return F.resize(image, [side // 2 for side in self.params])

        def _apply_boxes(self, boxes):
            return boxes / 2

    image, boxes, rest = Halved(keys=("image", "boxes"))((PIXELS, np.array([2.0, 4.0]), "label"))
    assert image.shape == (12, 16, 3) and boxes.tolist() == [1.0, 2.0] and rest == "label"
    with pytest.raises(NotImplementedError, match="_apply_sound"):
        Halved(keys=("sound",))
    with pytest.raises(ValueError, match="must be a sequence"):
        Halved(keys=1)
    with pytest.raises(NotImplementedError):
        T.Pad(1, keys=("mask",))(PIXELS)
    assert "Resize" in repr(T.Compose([T.Resize(3)]))


@pytest.mark.parametrize("make, error, text", [
    (lambda: F.hflip(3), TypeError, r"\[hflip\] the image is of type int"),
    (lambda: F.hflip(np.zeros(3)), TypeError, "an array with 1 axes"),
    (lambda: F.resize(PIXELS, "1"), TypeError, "size is '1'"),
    (lambda: F.resize(PIXELS, (3, 4, 5)), TypeError, "a pair"),
    (lambda: F.resize(PIXELS, -1), ValueError, "must be positive"),
    (lambda: F.resize(PIXELS, 5, "hamming"), ValueError, "interpolation is 'hamming'"),
    (lambda: F.resize(KINDS["pil"], 5, "area"), ValueError, "interpolation is 'area'"),
    (lambda: F.pad(PIXELS, [1, 2, 3]), ValueError, "padding has 3 elements"),
    (lambda: F.pad(PIXELS, "1"), TypeError, "padding is '1'"),
    (lambda: F.pad(PIXELS, 1, padding_mode="wrap"), ValueError, "padding_mode is 'wrap'"),
    (lambda: F.pad(KINDS["tensor"], 1, padding_mode="symmetric"), ValueError, "symmetric"),
    (lambda: F.adjust_hue(PIXELS, 0.7), ValueError, "hue_factor is 0.7"),
    (lambda: F.adjust_contrast(PIXELS.astype("float32"), 1.0), TypeError, "must be uint8"),
    (lambda: F.to_grayscale(PIXELS, 2), ValueError, "num_output_channels is 2"),
    (lambda: F.to_tensor(PIXELS, "CWH"), ValueError, "data_format is 'CWH'"),
    (lambda: F.affine(PIXELS, "1", [0, 0], 1, 0), TypeError, "angle is '1'"),
    (lambda: F.affine(PIXELS, 1, [0, 0], 0, 0), ValueError, "scale is 0"),
    (lambda: F.perspective(PIXELS, [[0, 0]] * 4, [[0, 0]] * 4), ValueError, "define no transform"),
    (lambda: T.RandomCrop(100)(PIXELS), ValueError, r"size is 100 x 100, but the image has 24 x 32"),
    (lambda: T.RandomHorizontalFlip(1.5), ValueError, "prob is 1.5"),
    (lambda: T.BrightnessTransform("1"), TypeError, "must be a number"),
    (lambda: T.HueTransform((-0.7, 0.1)), ValueError, r"\[-0.5, 0.5\]"),
    (lambda: T.RandomErasing(value="zero"), ValueError, "value must be 'random'"),
    (lambda: T.RandomResizedCrop(8, scale=(1.0, 0.5)), ValueError, "of kind"),
    (lambda: T.RandomAffine(10, translate=[2, 2]), ValueError, "between 0 and 1"),
    (lambda: T.RandomRotation([1, 2, 3]), ValueError, "length 2"),
])
def test_mistakes(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_an_error_names_the_step():
    with pytest.raises(ValueError) as caught:
        T.Compose([T.Resize(8), T.RandomCrop(9)])(PIXELS)
    assert any("transform 1 of a Compose" in note for note in getattr(caught.value, "__notes__", []))
