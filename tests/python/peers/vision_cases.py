"""Every transform on the same images, seeds and arguments: run by a Python with PaddlePaddle and by one with Oar.

    python vision_cases.py paddle|oar out.npz
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

library = __import__(sys.argv[1])
T = __import__(f"{sys.argv[1]}.vision.transforms", fromlist=["x"])
F = __import__(f"{sys.argv[1]}.vision.transforms.functional", fromlist=["x"])


def smooth(height: int, width: int, channels: int, rng: np.random.RandomState) -> np.ndarray:
    """An image without sharp edges: coordinates that are rounded otherwise change little."""
    y, x = np.mgrid[:height, :width]
    planes = [127 + 120 * np.sin(x / rng.uniform(6, 12) + rng.uniform(0, 6)) * np.cos(y / rng.uniform(6, 12)) for _ in range(channels)]
    return np.stack(planes, -1).astype(np.uint8)


def images() -> Iterator[tuple[str, Any]]:
    rng = np.random.RandomState(0)
    for name, height, width in (("wide", 47, 61), ("tall", 64, 40), ("square", 48, 48)):
        noise = rng.randint(0, 256, (height, width, 3)).astype(np.uint8)
        soft = smooth(height, width, 3, rng)
        yield f"pil/noise/{name}", Image.fromarray(noise)
        yield f"cv2/noise/{name}", noise
        yield f"tensor/noise/{name}", library.to_tensor((noise / 255).astype("float32").transpose(2, 0, 1))
        yield f"bytes/noise/{name}", library.to_tensor(noise.transpose(2, 0, 1).copy())
        yield f"pil/soft/{name}", Image.fromarray(soft)
        yield f"cv2/soft/{name}", soft
        yield f"tensor/soft/{name}", library.to_tensor((soft / 255).astype("float32").transpose(2, 0, 1))
    gray = rng.randint(0, 256, (30, 37)).astype(np.uint8)
    yield "pil/noise/gray", Image.fromarray(gray)
    yield "cv2/noise/gray", gray
    yield "cv2/soft/float", smooth(33, 47, 3, rng).astype(np.float32)
    yield "cv2/soft/double", smooth(33, 47, 3, rng).astype(np.float64)


CORNERS = [[0, 0], [39, 0], [39, 39], [0, 39]]
MOVED = [[3, 4], [35, 2], [33, 37], [2, 34]]


def functions() -> Iterator[tuple[str, Any]]:
    yield "to_tensor", F.to_tensor
    yield "to_tensor_hwc", lambda img: F.to_tensor(img, "HWC")
    for how in ("nearest", "bilinear", "bicubic", "lanczos", "area", "box", "hamming"):
        for size in (24, 96, (20, 33), (90, 71), (33, 90)):
            yield f"resize/{how}/{size}", lambda img, size=size, how=how: F.resize(img, size, how)
    yield "resize/bilinear/half", lambda img: F.resize(img, (size_of(img)[1] // 2, size_of(img)[0] // 2))
    yield "resize/area/third", lambda img: F.resize(img, (16, 16), "area")
    for mode in ("constant", "edge", "reflect", "symmetric"):
        for padding in (3, (2, 5), (1, 2, 3, 4)):
            yield f"pad/{mode}/{padding}", lambda img, p=padding, m=mode: F.pad(img, p, 7, m)
    yield "pad/colour", lambda img: F.pad(img, 3, (1, 2, 3))
    yield "crop", lambda img: F.crop(img, 5, 7, 20, 11)
    yield "center_crop", lambda img: F.center_crop(img, (21, 18))
    yield "hflip", F.hflip
    yield "vflip", F.vflip
    for factor in (0.0, 0.4, 1.0, 1.7):
        yield f"brightness/{factor}", lambda img, f=factor: F.adjust_brightness(img, f)
        yield f"contrast/{factor}", lambda img, f=factor: F.adjust_contrast(img, f)
        yield f"saturation/{factor}", lambda img, f=factor: F.adjust_saturation(img, f)
    for factor in (-0.5, -0.1, 0.0, 0.3):
        yield f"hue/{factor}", lambda img, f=factor: F.adjust_hue(img, f)
    for how in ("nearest", "bilinear", "bicubic"):
        yield f"affine/{how}", lambda img, how=how: F.affine(img, 20, [3, -2], 1.2, [5, -7], how, 9)
        yield f"affine/{how}/center", lambda img, how=how: F.affine(img, 20.0, (3, -2), 0.7, 8, how, [1, 2, 3], (5, 9))
        yield f"rotate/{how}", lambda img, how=how: F.rotate(img, 25, how)
        yield f"rotate/{how}/expand", lambda img, how=how: F.rotate(img, 25, how, True, None, (4, 5, 6))
        yield f"rotate/{how}/center", lambda img, how=how: F.rotate(img, 110.0, how, False, [10, 12], 3)
        yield f"perspective/{how}", lambda img, how=how: F.perspective(img, CORNERS, MOVED, how, (4, 5, 6))
    yield "gray", F.to_grayscale
    yield "gray3", lambda img: F.to_grayscale(img, 3)
    yield "normalize", lambda img: F.normalize(img, [0.4, 0.5, 0.6], [0.2, 0.3, 0.4], "CHW" if hasattr(img, "place") else "HWC")
    yield "erase", lambda img: F.erase(img, 4, 5, 10, 12, np.array([7.0]) if not hasattr(img, "place") else 0.5)


def size_of(img: Any) -> tuple[int, int]:
    if isinstance(img, Image.Image):
        return img.size
    return (img.shape[1], img.shape[0]) if isinstance(img, np.ndarray) else (img.shape[2], img.shape[1])


def transforms() -> Iterator[tuple[str, Any]]:
    yield "random_resized_crop", T.RandomResizedCrop(24)
    yield "random_resized_crop/narrow", T.RandomResizedCrop((20, 30), scale=(0.9, 1.0), ratio=(2.0, 3.0))
    yield "random_hflip", T.RandomHorizontalFlip()
    yield "random_vflip", T.RandomVerticalFlip(0.6)
    yield "random_crop", T.RandomCrop(30, padding=2, pad_if_needed=True)
    yield "random_crop/pad", T.RandomCrop((70, 80), pad_if_needed=True, fill=3, padding_mode="edge")
    yield "jitter", T.ColorJitter(0.4, 0.4, 0.4, 0.4)
    yield "brightness", T.BrightnessTransform(0.4)
    yield "contrast", T.ContrastTransform(0.4)
    yield "saturation", T.SaturationTransform(0.4)
    yield "hue", T.HueTransform(0.4)
    yield "random_affine", T.RandomAffine(30, [0.1, 0.2], [0.8, 1.2], [-10, 10, -5, 5], "bilinear", 5)
    yield "random_rotation", T.RandomRotation(30, "bilinear")
    yield "random_perspective", T.RandomPerspective(0.8, 0.4, "bilinear")
    yield "random_erasing", T.RandomErasing(0.8)
    yield "random_erasing/random", T.RandomErasing(1.0, value="random")
    yield "grayscale", T.Grayscale(3)
    yield "transpose", T.Transpose((2, 0, 1))
    yield "pipeline", T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(),
                                 T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def as_array(result: Any) -> np.ndarray:
    return np.array(result) if isinstance(result, (np.ndarray, Image.Image)) else result.numpy()


def main() -> None:
    found: dict[str, np.ndarray] = {}
    cases = [*functions(), *((f"transform/{name}", transform) for name, transform in transforms())]
    for image_name, image in images():
        for case, function in cases:
            random.seed(3)
            np.random.seed(4)
            try:
                found[f"{image_name}:{case}"] = as_array(function(image))
            except Exception as error:
                found[f"{image_name}:{case}"] = np.array(f"{type(error).__name__}: {error}")
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
