"""From bytes to numbers for a network, in native code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from oar._C import Tensor, image_look_up

__all__ = ["normalized", "scaled"]


@lru_cache(maxsize=64)
def _tables(channels: int, mean: tuple[float, ...] | None, std: tuple[float, ...] | None) -> np.ndarray:
    """What each byte becomes, for each channel: divided by 255, minus the mean, divided by the deviation."""
    table = np.tile(np.arange(256, dtype=np.float32) * np.float32(1 / 255), (channels, 1))
    if mean is not None and std is not None:
        table = (table - np.array(mean, np.float32)[:, None]) / np.array(std, np.float32)[:, None]
    return np.ascontiguousarray(table)


def scaled(pixels: np.ndarray, data_format: str) -> Tensor:
    """An image [height, width, channels] of uint8 as a tensor of float32 between 0 and 1."""
    table = _tables(pixels.shape[2], None, None)
    return image_look_up(np.ascontiguousarray(pixels), table, data_format == "CHW")


def normalized(pixels: np.ndarray, mean: Sequence[Any], std: Sequence[Any], data_format: str) -> Tensor:
    """The same, then minus the mean and divided by the deviation of its channel."""
    table = _tables(pixels.shape[2], tuple(map(float, mean)), tuple(map(float, std)))
    return image_look_up(np.ascontiguousarray(pixels), table, data_format == "CHW")
