"""Small questions about tensors and dtypes."""

from __future__ import annotations

import builtins

from oar import _C
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar._spelling import spelled


@spelled
def is_tensor(x) -> builtins.bool:
    """Whether x is a tensor.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_tensor(oar.to_tensor([1.0])), oar.is_tensor([1.0])
        (True, False)
    """
    return isinstance(x, Tensor)


def _dtype_name(question: str, x: Tensor) -> str:
    if not isinstance(x, Tensor):
        raise TypeError(f"[{question}] x must be a tensor, not {type(x).__name__}.")
    return x.dtype.name


@spelled
def is_complex(x: Tensor) -> builtins.bool:
    """Whether the elements are complex numbers.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_complex(oar.to_tensor([1 + 2j])), oar.is_complex(oar.to_tensor([1.0]))
        (True, False)
    """
    return "complex" in _dtype_name("is_complex", x)


@spelled
def is_floating_point(x: Tensor) -> builtins.bool:
    """Whether the elements are floats.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_floating_point(oar.to_tensor([1.0])), oar.is_floating_point(oar.to_tensor([1]))
        (True, False)
    """
    return "float" in _dtype_name("is_floating_point", x)


def is_integer(x: Tensor) -> builtins.bool:
    """Whether the elements are integers.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_integer(oar.to_tensor([1])), oar.is_integer(oar.to_tensor([1.0]))
        (True, False)
    """
    return "int" in _dtype_name("is_integer", x)


def rank(input: Tensor) -> Tensor:
    """The number of axes, as a 0-d tensor.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.rank(oar.zeros([2, 3])).item()
        2
    """
    return _C.make_tensor(input.ndim, "int32")


def shape(input: Tensor) -> Tensor:
    """The sizes, as a tensor.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.shape(oar.zeros([2, 3]))
        Tensor(shape=[2], dtype=int32, place=Place(cpu), stop_gradient=True,
               [2, 3])
    """
    return sizes_tensor(list(input.shape), "int32")


@spelled
def numel(x: Tensor, name: str | None = None) -> Tensor:
    """The number of elements, as a 0-d tensor.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.numel(oar.zeros([2, 3])).item()
        6
    """
    return sizes_tensor(x.size, "int64")


def sizes_tensor(sizes, dtype: str) -> Tensor:
    """A size, or a list of them, as a tensor. A size that is open is known when the program runs."""
    if isinstance(sizes, list) and builtins.any(not isinstance(size, int) for size in sizes):
        return ops.concat([ops.reshape(sizes_tensor(size, dtype), [1]) for size in sizes], 0)
    if not isinstance(sizes, (list, int)):
        return ops.product_of([sizes], dtype)
    made = _C.make_tensor(sizes, dtype)
    return made if in_dynamic_mode() else ops.assign(made)


def check_shape(shape) -> None:
    """Raises unless shape is a list of sizes: integers that are not negative, or integer tensors.

    Args:
        shape: what to check.

    Examples:
        >>> import oar
        >>> oar.check_shape([2, 3])
    """
    sizes = [shape] if isinstance(shape, Tensor) else list(shape)
    for size in sizes:
        if isinstance(size, Tensor):
            if size.dtype.name not in ("int32", "int64"):
                raise TypeError(f"a shape is a tensor of dtype int32 or int64, not {size.dtype.name}.")
        elif size < 0:
            raise ValueError(f"the sizes of a shape must not be negative, as in {sizes}.")
        elif not isinstance(size, int):
            raise TypeError(f"the sizes of a shape must be integers, not {type(size).__name__} as in {sizes}.")


@spelled
def finfo(dtype):
    """Limits of a float type, as NumPy gives them.

    Args:
        dtype: the dtype.

    Examples:
        >>> import oar
        >>> oar.finfo(oar.float16).max
        65504.0
    """
    import ml_dtypes
    import numpy
    name = _C.dtype(dtype).name
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
        return _FloatInfo(ml_dtypes.finfo(name), name)
    return _FloatInfo(numpy.finfo(name), name)


class _FloatInfo:
    """The limits of a dtype of floats, as numbers of Python."""

    def __init__(self, info, dtype: str) -> None:
        for name in ("min", "max", "eps", "resolution", "smallest_normal", "tiny"):
            setattr(self, name, float(getattr(info, name)))
        self.bits, self.dtype = int(info.bits), dtype

    def __repr__(self) -> str:
        return f"finfo({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


@spelled
def iinfo(dtype):
    """Limits of an integer type, as NumPy gives them.

    Args:
        dtype: the dtype.

    Examples:
        >>> import oar
        >>> oar.iinfo('int8').max
        127
    """
    import numpy
    return numpy.iinfo(_C.dtype(dtype).name)
