"""The dtypes, under Paddle's inner path."""

from oar._C import (
    bfloat16,
    bool,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from oar._questions import finfo, iinfo

__all__ = [
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "dtype",
    "finfo",
    "float16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "iinfo",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint8",
]
