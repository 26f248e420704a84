"""The functions on tensors, under Paddle's inner path."""

from __future__ import annotations

import sys
import types
from typing import Any

import oar
from oar._C import Tensor, ops
from oar._diagonal import fill_diagonal_tensor
from oar._random import top_p_sampling
from oar.tensor.array import array_length, array_read, array_write, create_array, tensor_array_to_tensor

__all__ = ["array_length", "array_read", "array_write", "create_array", "fill_constant",
           "fill_diagonal_tensor", "tensor_array_to_tensor", "top_p_sampling"]


def fill_constant(
    shape: Any, dtype: Any, value: Any, force_cpu: bool = False, out: Tensor | None = None, name: str | None = None
) -> Tensor:
    """One value everywhere; written to ``out``, if that is given.

    Args:
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.
        value: the value.
        force_cpu: accepted for compatibility.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.tensor.fill_constant([2], 'float32', 3.0)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [3., 3.])
    """
    if out is not None and out.dtype != oar.dtype(dtype):
        raise TypeError(f"[fill_constant] out has dtype {out.dtype}, but dtype is {dtype}; they should be equal.")
    made = oar.full(shape, value, dtype)
    return made if out is None else ops.copy_into(out, made)


def __getattr__(name: str) -> Any:
    for home in (oar, oar.linalg):
        found = None if name.startswith("_") else getattr(home, name, None)
        if found is not None and not isinstance(found, types.ModuleType):  # modules of that name are here, too
            return found
    raise AttributeError(f"module 'oar.tensor' has no attribute {name!r}")


from oar.tensor import (  # noqa: E402,F401
    attribute,
    creation,
    einsum,
    linalg,
    logic,
    manipulation,
    math,
    random,
    search,
    stat,
)


class _Module(types.ModuleType):
    """Both this module and a function, as in Paddle: ``oar.tensor([1.0])``."""

    def __call__(
        self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
    ) -> Tensor:
        """A tensor from numbers, nested lists, a NumPy array or a tensor. The data is copied."""
        if pin_memory:
            raise NotImplementedError("[tensor] pin_memory is for GPUs, which Oar does not have yet; leave it out.")
        return oar.to_tensor(data, dtype, device, stop_gradient=not requires_grad)


sys.modules[__name__].__class__ = _Module
