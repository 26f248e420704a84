"""Second names of functions, most of them PyTorch's: ``oar.cat`` is ``oar.concat``, and ``x.eq`` is ``x.equal``."""

from __future__ import annotations

from oar._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Functions of the package, which are methods of tensors too unless the name is in NO_METHODS.
FUNCTIONS = {
    "bitwise_invert": "bitwise_not", "bitwise_invert_": "bitwise_not_", "cat": "concat", "clamp": "clip",
    "concatenate": "concat", "eq": "equal", "ge": "greater_equal", "ger": "outer", "greater": "greater_than",
    "gt": "greater_than", "le": "less_equal", "less": "less_than", "less_": "less_than_", "lt": "less_than",
    "mul": "multiply", "ne": "not_equal", "negative": "neg", "swapdims": "swapaxes", "take_along_dim": "take_along_axis",
    "view_as_complex": "as_complex", "view_as_real": "as_real",
}  # fmt: skip
NO_METHODS = ("cat", "concatenate", "ger")
# Methods of tensors alone.
METHODS = {
    "__div__": "__truediv__", "__nonzero__": "__bool__", "__rdiv__": "__rtruediv__", "clamp_": "clip_",
    "mul_": "multiply_",
}  # fmt: skip
CONSTANTS = {"e": 2.718281828459045, "inf": float("inf"), "nan": float("nan"), "newaxis": None, "pi": 3.141592653589793}
DTYPES = {"cdouble": "complex128", "cfloat": "complex64", "double": "float64", "float": "float32", "half": "float16",
          "int": "int32", "long": "int64", "short": "int16", "uint16": "bfloat16"}  # Paddle passes bfloat16 to NumPy under the name uint16


def attach(package: dict[str, Any]) -> None:
    """Gives the package and its tensors the names above, and those of dtypes and constants."""
    for name, old in FUNCTIONS.items():
        package[name] = package[old]
        if name not in NO_METHODS:
            setattr(Tensor, name, vars(Tensor)[old])
    for name, old in METHODS.items():
        setattr(Tensor, name, getattr(Tensor, old))
    package.update(CONSTANTS)
    package.update({name: package[dtype] for name, dtype in DTYPES.items()})
