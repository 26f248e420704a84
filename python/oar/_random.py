"""Random numbers: in-place forms, and those whose parameters may be tensors."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor, ops

__all__ = [
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal", "log_normal_", "normal_", "randn",
    "set_cuda_rng_state", "standard_normal", "uniform_",
]  # fmt: skip


def _filled(x: Tensor, made: Tensor) -> Tensor:
    """Write drawn numbers into x; they have no gradient."""
    return ops.copy_into(x, ops.cast(made, x.dtype) if made.dtype != x.dtype else made)


def _open_unit(x: Tensor) -> Tensor:
    """Numbers of (0, 1] in the shape of x."""
    return 1.0 - ops.uniform(x.shape, x.dtype, 0.0, 1.0)


def standard_normal(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1; of complex ones each part has half of it."""
    wanted = None if dtype is None else _C.dtype(dtype).name
    if wanted not in ("complex64", "complex128"):
        return ops.standard_normal(shape, dtype)
    part = {"complex64": "float32", "complex128": "float64"}[wanted]
    return ops.complex(*(ops.gaussian(shape, 0.0, 0.5**0.5, 0, part) for _ in range(2)))


def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """``standard_normal`` under its other name."""
    return standard_normal(shape, dtype)


def uniform_(x: Tensor, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Fill x with numbers spread evenly over [min, max)."""
    return _filled(x, ops.uniform(x.shape, x.dtype, float(min), float(max), seed))


def normal_(x: Tensor, mean: Any = 0.0, std: Any = 1.0, name: str | None = None) -> Tensor:
    """Fill x with normal numbers. Mean and standard deviation may be tensors that broadcast to x."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        return _filled(x, ops.gaussian(x.shape, 0.0, 1.0, 0, x.dtype) * std + mean)
    return _filled(x, ops.gaussian(x.shape, float(mean), float(std), 0, x.dtype))


def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None, name: str | None = None) -> Tensor:
    """Numbers whose logarithms are normal with the given mean and standard deviation."""
    import oar

    return ops.exp(oar.normal(mean, std, shape))


def log_normal_(x: Tensor, mean: Any = 1.0, std: Any = 2.0, name: str | None = None) -> Tensor:
    """Fill x with numbers whose logarithms are normal."""
    drawn = ops.gaussian(x.shape, 0.0, 1.0, 0, x.dtype)
    return _filled(x, ops.exp(drawn * std + mean))


def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Fill x with numbers from the exponential distribution with rate lam."""
    return _filled(x, ops.exponential(x.shape, float(lam), x.dtype))


def cauchy_(x: Tensor, loc: Any = 0, scale: Any = 1, name: str | None = None) -> Tensor:
    """Fill x with numbers from the Cauchy distribution around loc."""
    angle = (_open_unit(x) - 0.5) * 3.141592653589793
    return _filled(x, ops.tan(angle) * scale + loc)


def geometric_(x: Tensor, probs: Any, name: str | None = None) -> Tensor:
    """Fill x with the number of trials up to and with the first success, each succeeding with ``probs``."""
    probs = probs if isinstance(probs, Tensor) else _C.make_tensor(float(probs), x.dtype)
    return _filled(x, ops.maximum(ops.ceil(ops.log(_open_unit(x)) / ops.log1p(-probs)), 1.0))


def bernoulli_(x: Tensor, p: Any = 0.5, name: str | None = None) -> Tensor:
    """Fill x with 1 where chance has it, with probability p (a number or a tensor), else 0."""
    dtype = x.dtype if x.dtype in (_C.float32, _C.float64, _C.float16, _C.bfloat16) else _C.float32
    p = p if isinstance(p, Tensor) else _C.make_tensor(float(p), dtype)
    return _filled(x, ops.bernoulli(ops.broadcast_to(p, x.shape)))


def set_cuda_rng_state(state_list: Any) -> None:
    """For programs that also run on a GPU: there is no such state here, so only an empty list is right."""
    if state_list:
        raise ValueError(f"there is no CUDA device whose random state could be set, but {len(state_list)} were given.")


for _name in __all__:
    if _name.endswith("_"):
        setattr(Tensor, _name, globals()[_name])
