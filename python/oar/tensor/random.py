"""The functions on tensors, under another of Paddle's inner paths."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.tensor import __getattr__ as __getattr__

__all__ = ["gaussian", "gaussian_", "uniform_random_batch_size_like"]


def gaussian(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = None, name: str | None = None
) -> Tensor:
    """Random numbers of the normal distribution with this mean and deviation.

    Args:
        shape: the shape of the result.
        mean: the mean.
        std: the standard deviation.
        seed: a seed for this call; 0 uses the global stream.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.tensor.random import gaussian
        >>> gaussian([2, 3]).shape
        [2, 3]
    """
    return ops.gaussian(shape, mean, std, seed, dtype)


def gaussian_(x: Tensor, mean: float = 0.0, std: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Fills a tensor with random numbers of the normal distribution.

    Args:
        x: the input.
        mean: the mean.
        std: the standard deviation.
        seed: a seed for this call; 0 uses the global stream.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.tensor.random import gaussian_
        >>> gaussian_(oar.zeros([2]), mean=1.0, std=0.0)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 1.])
    """
    return ops.copy_into(x, ops.gaussian(list(x.shape), mean, std, seed, x.dtype))


def uniform_random_batch_size_like(
    input: Tensor, shape: Any, dtype: Any = "float32", input_dim_idx: int = 0, output_dim_idx: int = 0, min: float = -1.0,
    max: float = 1.0, seed: int = 0,
) -> Tensor:
    """Random numbers between ``min`` and ``max``, with one size taken from another tensor.

    Args:
        input: the tensor that has the size.
        shape: the shape of the result; its entry ``output_dim_idx`` is replaced.
        dtype: the dtype of the result, one of floats.
        input_dim_idx: the axis of the input that has the size.
        output_dim_idx: the axis of the result that gets it.
        min: the smallest number.
        max: the largest number.
        seed: a seed for this call; 0 uses the global stream.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.tensor.random import uniform_random_batch_size_like
        >>> uniform_random_batch_size_like(oar.ones([5, 2]), [-1, 4]).shape
        [5, 4]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"[uniform_random_batch_size_like] input must be a tensor, not {type(input).__name__}.")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"[uniform_random_batch_size_like] shape must be a list of integers, not {type(shape).__name__}.")
    sizes = list(shape)
    sizes[output_dim_idx] = input.shape[input_dim_idx]
    return ops.uniform(sizes, dtype, min, max, seed)
