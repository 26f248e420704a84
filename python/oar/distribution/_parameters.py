"""What users pass to distributions: numbers, lists, NumPy arrays and tensors; and sample shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Union

    Parameter = Union[float, list[Any], tuple[Any, ...], np.ndarray, np.generic, Tensor]
    SampleShape = Union[Sequence[int], Tensor]

__all__ = ["broadcast", "check", "check_nonnegative", "check_positive", "check_probability", "common_shape", "readable",
           "sample_shape", "to_tensor", "to_tensors", "to_value", "within"]  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_RANKS = {name: rank for rank, name in enumerate(_FLOATS)}


def _dtype_of(values: Sequence[Any], keep_arrays: bool) -> str:
    """The widest float among the tensors, else among the arrays if they count, else the default."""
    names = [value.dtype.name for value in values if isinstance(value, Tensor)]
    if not any(name in _FLOATS for name in names) and keep_arrays:
        names = [str(value.dtype) for value in values if isinstance(value, (np.ndarray, np.generic))]
    found = [name for name in names if name in _FLOATS]
    return max(found, key=_RANKS.__getitem__) if found else oar.get_default_dtype()


def to_tensors(owner: str, keep_arrays: bool = False, **values: Any) -> list[Tensor]:
    """The parameters of a distribution as tensors of one dtype.

    Args:
        owner: the class, for messages.
        keep_arrays: whether a NumPy array of floats decides the dtype; otherwise it becomes the default one.
        values: the parameters by name.

    Returns:
        a list of tensors, not broadcast.
    """
    dtype = _dtype_of(list(values.values()), keep_arrays)
    return [to_tensor(owner, name, value, dtype) for name, value in values.items()]


def to_tensor(owner: str, name: str, value: Any, dtype: str) -> Tensor:
    """One parameter as a tensor of a dtype."""
    if isinstance(value, Tensor):
        return value if value.dtype.name == dtype else value.astype(dtype)
    if isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        return oar.to_tensor(value, dtype=dtype)
    raise TypeError(
        f"[{owner}] {name} is of type {type(value).__name__}. Pass a number, a list, a NumPy array or a Tensor.")


def to_value(value: Any, parameter: Tensor, widen: bool = False, numbers: bool = False) -> Tensor:
    """A point at which a density is wanted, in the dtype of the parameters.

    Args:
        value: a number, an array or a tensor. Static programs take tensors, as in Paddle.
        parameter: a parameter of the distribution.
        widen: whether a float tensor keeps its dtype, so that the wider one decides.
        numbers: whether static programs take numbers too.

    Returns:
        a tensor.
    """
    if not isinstance(value, Tensor):
        if not oar.in_dynamic_mode() and not (numbers and isinstance(value, (int, float))):
            raise TypeError(
                f"[distribution] value should be a Tensor in a static program, but got {type(value).__name__}. "
                "Pass to_tensor(value).")
        return oar.to_tensor(value, dtype=parameter.dtype)
    if value.dtype == parameter.dtype or (widen and value.dtype.name in _FLOATS):
        return value
    return value.astype(parameter.dtype)


def broadcast(owner: str, *tensors: Tensor) -> list[Tensor]:
    """The tensors in their common shape."""
    shape = common_shape(owner, *tensors)
    return [oar.broadcast_to(tensor, shape) if list(tensor.shape) != shape else tensor for tensor in tensors]


def common_shape(owner: str, *tensors: Tensor) -> list[int]:
    """The shape to which the tensors broadcast."""
    shape = list(tensors[0].shape)
    for tensor in tensors[1:]:
        try:
            shape = oar.broadcast_shape(shape, tensor.shape)
        except ValueError as error:
            shapes = " and ".join(str(list(tensor.shape)) for tensor in tensors)
            raise ValueError(f"[{owner}] parameters of the shapes {shapes} do not broadcast to one shape.") from error
    return shape


def sample_shape(shape: Any) -> tuple[int, ...]:
    """The shape of a sample as users write it: a sequence of integers, or a tensor of them."""
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    try:
        return tuple(shape)
    except TypeError:
        text = f"sample shape must be a sequence of integers, but got {shape!r}. For one axis pass [{shape!r}]."
        raise TypeError(text) from None


def within(support: Tensor, log_density: Tensor) -> Tensor:
    """The logarithm of a density that is zero outside of its support."""
    return oar.where(support, log_density, float("-inf"))


def readable(tensor: Tensor) -> bool:
    """Whether a tensor has values here: not inside a captured function, jvp or vmap."""
    return not _C.is_capturing() and not _C.is_symbolic(tensor)


def check(owner: str, name: str, value: Any, holds: Callable[[Any], Any], text: str, tensors: bool = False) -> None:
    """Raise an error if numbers that Python has are not what a parameter can be.

    Args:
        owner: the class, for messages.
        name: the name of the parameter.
        value: its value. Strings and other types are left for the conversion to refuse.
        holds: tells which elements are as they must be.
        text: what they must be.
        tensors: whether tensors are read too. Reading one waits for it; inside a captured function there is nothing to read.
    """
    if isinstance(value, Tensor):
        if not tensors or not readable(value):
            return
        value = value.numpy()
    elif not isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        return
    if not np.all(holds(np.asarray(value))):
        raise ValueError(f"[{owner}] {name} must be {text}, but got {np.asarray(value)}.")


def check_positive(owner: str, tensors: bool = False, **values: Any) -> None:
    for name, value in values.items():
        check(owner, name, value, lambda array: array > 0, "positive", tensors)


def check_nonnegative(owner: str, tensors: bool = False, **values: Any) -> None:
    for name, value in values.items():
        check(owner, name, value, lambda array: array >= 0, "nonnegative", tensors)


def check_probability(owner: str, **values: Any) -> None:
    for name, value in values.items():
        check(owner, name, value, lambda array: (array >= 0) & (array <= 1), "between 0 and 1")
