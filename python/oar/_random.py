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


@spelled
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


@spelled
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


@spelled
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


@spelled
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


@spelled
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


def top_p_sampling(x: Tensor, ps: Tensor, threshold: Tensor | None = None, topp_seed: Tensor | None = None, seed: int = -1,
                   k: int = 0, mode: str = "truncated", return_top: bool = False, name: str | None = None) -> Any:
    """Draws one element of each row from the most probable ones, whose probabilities add up to ``ps``.

    Args:
        x: rows of probabilities, such as a softmax returns.
        ps: for each row, the sum of the probabilities of those that can be drawn.
        threshold: for each row, the least probability that can be drawn; the most probable element always can.
        topp_seed: for each row, a seed.
        seed: a seed for this call; -1 uses the global stream.
        k: how many of the most probable elements ``return_top`` returns.
        mode: what happens to the last element that can be drawn: ``'truncated'`` takes off its probability what is
            beyond ``ps``, ``'non-truncated'`` does not.
        return_top: whether to return the ``k`` most probable elements, too.

    Returns:
        the probability and the index of what was drawn, both ``[rows, 1]``; with ``return_top``, the probabilities and
        the indices of the most probable elements follow.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
        >>> scores, ids = x.top_p_sampling(oar.to_tensor([0.6, 0.3]))
        >>> scores.tolist(), ids.tolist()
        ([[0.7], [0.5]], [[1], [0]])
    """
    if x.ndim != 2:
        raise ValueError(f"[top_p_sampling] x must be rows of probabilities, [rows, elements], not {list(x.shape)}.")
    if mode not in ("truncated", "non-truncated"):
        raise ValueError(f"[top_p_sampling] mode must be 'truncated' or 'non-truncated', not {mode!r}.")
    rows = x.shape[0]
    order = ops.argsort(x, -1, True, True)
    wide = "float64" if x.dtype.name == "float64" else "float32"
    sorted_scores = ops.cast(ops.take_along_axis(x, order, 1), wide)

    def column(values: Tensor) -> Tensor:
        return ops.cast(ops.reshape(values, [rows, 1]), wide)

    limit = column(ps)
    before = ops.cumsum(sorted_scores, -1) - sorted_scores
    weights = ops.clip(limit - before, 0.0, None)
    if mode == "truncated":
        weights = ops.minimum(weights, sorted_scores)
    else:
        weights = ops.where(weights > 0.0, sorted_scores, ops.zeros_like(sorted_scores))
    if threshold is not None:
        weights = ops.where(sorted_scores >= column(threshold), weights, ops.zeros_like(weights))
    sums = ops.cumsum(weights, -1)
    place = ops.sum(ops.cast(sums <= _unit_column(rows, wide, topp_seed, seed) * sums[:, -1:], "int64"), [1], keepdim=True)
    # Where nothing can be drawn, the most probable element is.
    place = ops.where(sums[:, -1:] > 0.0, place, ops.zeros_like(place))
    ids = ops.take_along_axis(order, place, 1)
    drawn = ops.take_along_axis(x, ids, 1), ids
    if not return_top:
        return drawn
    top = order[:, :k]
    return (*drawn, ops.take_along_axis(x, top, 1), top)


def _unit_column(rows: int, dtype: str, seeds: Tensor | None, seed: int) -> Tensor:
    """A number of [0, 1) for each row."""
    if seeds is None:
        return ops.uniform([rows, 1], dtype, 0.0, 1.0, max(seed, 0))
    each = [int(value) for value in ops.reshape(seeds, [rows]).tolist()]
    return ops.stack([ops.uniform([1], dtype, 0.0, 1.0, value) for value in each])
