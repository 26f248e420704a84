"""Resizing that averages over all the pixels that a new pixel covers, when images become smaller."""

from __future__ import annotations

from collections.abc import Callable

from oar import _C
from oar._C import Tensor, ops
from oar._lazy import np

__all__ = ["resized"]


def _triangle(distance):
    return np.maximum(0.0, 1.0 - distance)


def _cubic(distance):
    near = (1.5 * distance - 2.5) * distance * distance + 1.0
    far = ((-0.5 * distance + 2.5) * distance - 4.0) * distance + 2.0
    return np.where(distance < 1.0, near, np.where(distance < 2.0, far, 0.0))


_FILTERS: dict[str, tuple[float, Callable]] = {"bilinear": (1.0, _triangle), "bicubic": (2.0, _cubic)}


def _weights(mode: str, old: int, new: int, step: float):
    """How much each old pixel counts in each new one: [new, old].

    Args:
        mode: the filter.
        old: how many pixels there are.
        new: how many there will be.
        step: the distance of new pixels, in old ones.
    """
    reach, function = _FILTERS[mode]
    wide = max(step, 1.0)
    middle = step * (np.arange(new)[:, None] + 0.5)
    first = np.maximum(np.floor(middle - reach * wide + 0.5), 0)
    last = np.minimum(np.floor(middle + reach * wide + 0.5), old)
    place = np.arange(old)[None, :]
    found = function(np.abs(place + 0.5 - middle) / wide) * ((place >= first) & (place < last))
    return found / found.sum(axis=1, keepdims=True)


def resized(x: Tensor, axis: int, size: list[int], scale: list[float] | None, mode: str, align_corners: bool) -> Tensor:
    """Images at another size, filtered along both axes.

    Args:
        x: the images, of rank 4.
        axis: the axis of height; width follows.
        size: the new height and width.
        scale: the factors that the distance of new pixels follows from; None computes it from the sizes.
        mode: 'bilinear' or 'bicubic'.
        align_corners: whether the distance is that of the corner pixels' middles.

    Returns:
        a tensor of the dtype of x.
    """
    old = [x.shape[axis], x.shape[axis + 1]]
    if not all(isinstance(number, int) and number > 0 for number in (*old, *size)):
        raise ValueError(f"[interpolate] antialias needs sizes that are known and positive, not {old} and {list(size)}.")
    whole = x.dtype == _C.uint8
    made = ops.cast(x, "float32") if whole else x
    for i in (0, 1):
        if align_corners:
            step = (old[i] - 1) / (size[i] - 1) if size[i] > 1 else 0.0
        else:
            step = old[i] / size[i] if scale is None else 1.0 / scale[i]
        weights = _C.make_tensor(_weights(mode, old[i], size[i], step), made.dtype.name)
        made = ops.moveaxis(ops.matmul(ops.moveaxis(made, axis + i, -1), weights, False, True), -1, axis + i)
    return ops.cast(ops.clip(ops.round(made), 0.0, 255.0), "uint8") if whole else made
