"""Tensors of one dtype, by the names of PyTorch: ``oar.FloatTensor([1, 2])``."""

from __future__ import annotations

import builtins

from oar import _C
from oar._C import Tensor, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
]  # fmt: skip


class _Typed:
    """Calling the class returns a tensor. Subclasses name the dtype."""

    _dtype: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[misc]
        device = kwargs.pop("device", None)
        if kwargs:
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {next(iter(kwargs))!r}.")
        if not args:
            made = ops.zeros([0], cls._dtype)
        elif builtins.all(isinstance(arg, int) for arg in args):
            made = ops.zeros(list(args), cls._dtype)
        elif len(args) > 1:
            raise TypeError(f"{cls.__name__}() takes sizes, or one list, array or tensor.")
        elif isinstance(args[0], Tensor):
            made = ops.cast(args[0], cls._dtype)
        else:
            made = _C.make_tensor(args[0], cls._dtype)
        return made if device is None else made.to(device)


def _typed(name: str, dtype: str) -> type[_Typed]:
    doc = f"""Makes tensors of dtype {dtype}.

    Args:
        args: sizes, for zeros of that shape; or values: a list, an array or a tensor.
        kwargs: ``device``.

    Examples:
        >>> import oar
        >>> oar.{name}([1, 0]).dtype, oar.{name}(2, 3).shape
        (oar.{dtype}, [2, 3])
    """
    return type(name, (_Typed,), {"_dtype": dtype, "__doc__": doc, "__module__": __name__})


BFloat16Tensor = _typed("BFloat16Tensor", "bfloat16")
BoolTensor = _typed("BoolTensor", "bool")
ByteTensor = _typed("ByteTensor", "uint8")
CharTensor = _typed("CharTensor", "int8")
DoubleTensor = _typed("DoubleTensor", "float64")
FloatTensor = _typed("FloatTensor", "float32")
HalfTensor = _typed("HalfTensor", "float16")
IntTensor = _typed("IntTensor", "int32")
LongTensor = _typed("LongTensor", "int64")
ShortTensor = _typed("ShortTensor", "int16")
