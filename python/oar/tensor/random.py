"""The functions on tensors, under another of Paddle's inner paths."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.tensor import __getattr__ as __getattr__

__all__ = ["gaussian", "gaussian_"]


def gaussian(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = None, name: str | None = None
) -> Tensor:
    """Random numbers of the normal distribution with this mean and deviation."""
    return ops.gaussian(shape, mean, std, seed, dtype)


def gaussian_(x: Tensor, mean: float = 0.0, std: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Fills a tensor with random numbers of the normal distribution."""
    return ops.copy_into(x, ops.gaussian(list(x.shape), mean, std, seed, x.dtype))
