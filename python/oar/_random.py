"""Random numbers: in-place forms, and those whose parameters may be tensors."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._spelling import creator, spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


@creator
def standard_normal(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1; of complex ones each part has half of it.

    Args:
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.standard_normal([2, 3]).shape
        [2, 3]
    """
    wanted = None if dtype is None else _C.dtype(dtype).name
    if wanted not in ("complex64", "complex128"):
        return ops.standard_normal(shape, dtype)
    part = {"complex64": "float32", "complex128": "float64"}[wanted]
    return ops.complex(*(ops.gaussian(shape, 0.0, 0.5**0.5, 0, part) for _ in range(2)))


@creator
def randn(shape: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """``standard_normal`` under its other name.

    Args:
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.randn([2, 3]).shape
        [2, 3]
    """
    return standard_normal(shape, dtype)


@spelled
def uniform_(x: Tensor, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Fill x with numbers spread evenly over [min, max).

    Args:
        x: the input.
        min: the lower end, included.
        max: the upper end, not included.
        seed: a seed for this call; 0 uses the global stream.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([1000]).uniform_(0.0, 1.0)
        >>> bool((x >= 0).all()), bool((x < 1).all())
        (True, True)
    """
    return _filled(x, ops.uniform(x.shape, x.dtype, float(min), float(max), seed))


def normal_(x: Tensor, mean: Any = 0.0, std: Any = 1.0, name: str | None = None) -> Tensor:
    """Fill x with normal numbers. Mean and standard deviation may be tensors that broadcast to x.

    Args:
        x: the input.
        mean: the mean.
        std: the standard deviation.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2]).normal_(mean=3.0, std=0.0)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [3., 3.])
    """
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        return _filled(x, ops.gaussian(x.shape, 0.0, 1.0, 0, x.dtype) * std + mean)
    return _filled(x, ops.gaussian(x.shape, float(mean), float(std), 0, x.dtype))


@spelled
def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None, name: str | None = None) -> Tensor:
    """Numbers whose logarithms are normal with the given mean and standard deviation.

    Args:
        mean: the mean.
        std: the standard deviation.
        shape: the shape of the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> bool((oar.log_normal(shape=[100]) > 0).all())
        True
    """
    import oar

    return ops.exp(oar.normal(mean, std, shape))


def log_normal_(x: Tensor, mean: Any = 1.0, std: Any = 2.0, name: str | None = None) -> Tensor:
    """Fill x with numbers whose logarithms are normal.

    Args:
        x: the input.
        mean: the mean.
        std: the standard deviation.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> bool((oar.zeros([100]).log_normal_() > 0).all())
        True
    """
    drawn = ops.gaussian(x.shape, 0.0, 1.0, 0, x.dtype)
    return _filled(x, ops.exp(drawn * std + mean))


@spelled
def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Fill x with numbers from the exponential distribution with rate lam.

    Args:
        x: the input.
        lam: the rate.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> bool((oar.zeros([100]).exponential_(lam=2.0) >= 0).all())
        True
    """
    return _filled(x, ops.exponential(x.shape, float(lam), x.dtype))


def cauchy_(x: Tensor, loc: Any = 0, scale: Any = 1, name: str | None = None) -> Tensor:
    """Fill x with numbers from the Cauchy distribution around loc.

    Args:
        x: the input.
        loc: the centre.
        scale: the width.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([100]).cauchy_().shape
        [100]
    """
    angle = (_open_unit(x) - 0.5) * 3.141592653589793
    return _filled(x, ops.tan(angle) * scale + loc)


def geometric_(x: Tensor, probs: Any, name: str | None = None) -> Tensor:
    """Fill x with the number of trials up to and with the first success, each succeeding with ``probs``.

    Args:
        x: the input.
        probs: the probability of success.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> bool((oar.zeros([100]).geometric_(0.5) > 0).all())
        True
    """
    probs = probs if isinstance(probs, Tensor) else _C.make_tensor(float(probs), x.dtype)
    return _filled(x, ops.maximum(ops.ceil(ops.log(_open_unit(x)) / ops.log1p(-probs)), 1.0))


def bernoulli_(x: Tensor, p: Any = 0.5, name: str | None = None) -> Tensor:
    """Fill x with 1 where chance has it, with probability p (a number or a tensor), else 0.

    Args:
        x: the input.
        p: the probability of 1.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([3]).bernoulli_(1.0)
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 1., 1.])
    """
    dtype = x.dtype if x.dtype in (_C.float32, _C.float64, _C.float16, _C.bfloat16) else _C.float32
    p = p if isinstance(p, Tensor) else _C.make_tensor(float(p), dtype)
    return _filled(x, ops.bernoulli(ops.broadcast_to(p, x.shape)))


def set_cuda_rng_state(state_list: Any) -> None:
    """For programs that also run on a GPU. There is no such state here, so only an empty list is accepted.

    Args:
        state_list: what ``get_rng_state`` returned.

    Examples:
        >>> import oar
        >>> oar.set_cuda_rng_state(oar.get_cuda_rng_state())
    """
    if state_list:
        raise ValueError(f"there is no CUDA device whose random state could be set, but {len(state_list)} states were passed.")


for _name in __all__:
    if _name.endswith("_"):
        setattr(Tensor, _name, globals()[_name])
