"""Handwritten digits: 1,797 grey images of 8 × 8 pixels. See ``digits.LICENSE.md`` for their origin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oar._lazy import np
from oar.io import Dataset

__all__ = ["Digits"]

_FILE = Path(__file__).with_name("digits.npz")
_TEST_SHARE = 0.2
_SPLIT_SEED = 20
_BRIGHTEST = 16.0


class Digits(Dataset):
    """Handwritten digits, split once and for all into images to train on and images to test with.

    Every fifth image of each digit, chosen at random but always the same, is for testing: 1,438 images to train
    on, 359 to test with.

    Args:
        mode: ``'train'`` or ``'test'``.
        transform: called on each image, a float32 array of shape ``[1, 8, 8]`` with values from 0 to 1.

    A sample is ``(image, label)``; labels are int64. ``images`` and ``labels`` hold all samples at once.

    Examples:
        >>> import oar
        >>> from oar.datasets import Digits
        >>> digits = Digits('train')
        >>> image, label = digits[0]
        >>> image.shape, len(digits)
        ((1, 8, 8), 1438)
    """

    def __init__(self, mode: str = "train", transform: Callable[[np.ndarray], Any] | None = None) -> None:
        if mode not in ("train", "test"):
            raise ValueError(f"mode should be 'train' or 'test', but received {mode!r}.")
        self.mode = mode
        self.transform = transform
        with np.load(_FILE, allow_pickle=False) as stored:
            images, labels = stored["images"], stored["labels"].astype("int64")
        chosen = _split(labels)[mode]
        self.images = (images[chosen].astype("float32") / _BRIGHTEST)[:, None]
        self.labels = labels[chosen]

    def __getitem__(self, idx: int) -> tuple[Any, np.int64]:
        image = self.images[idx]
        return (image if self.transform is None else self.transform(image)), self.labels[idx]

    def __len__(self) -> int:
        return len(self.labels)


def _split(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Positions for each mode, with every digit in both in the same proportion."""
    random = np.random.RandomState(_SPLIT_SEED)
    test = []
    for digit in range(10):
        places = random.permutation(np.flatnonzero(labels == digit))
        test.append(places[: round(len(places) * _TEST_SHARE)])
    test_places = np.sort(np.concatenate(test))
    train_places = np.setdiff1d(np.arange(len(labels)), test_places)
    return {"train": train_places, "test": test_places}
