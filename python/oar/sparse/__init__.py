"""Sparse tensors: COO (coordinates and values) and CSR (compressed rows)."""

from oar.sparse import nn
from oar.sparse.binary import (
    add,
    addmm,
    divide,
    is_same_shape,
    mask_as,
    masked_matmul,
    matmul,
    multiply,
    mv,
    subtract,
)
from oar.sparse.creation import sparse_coo_tensor, sparse_csr_tensor
from oar.sparse.unary import (
    abs,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    coalesce,
    deg2rad,
    expm1,
    isnan,
    log1p,
    neg,
    pca_lowrank,
    pow,
    rad2deg,
    reshape,
    sin,
    sinh,
    slice,
    sqrt,
    square,
    sum,
    tan,
    tanh,
    transpose,
)

__all__ = [
    "abs", "add", "addmm", "asin", "asinh", "atan", "atanh", "cast", "coalesce", "deg2rad", "divide", "expm1",
    "is_same_shape", "isnan", "log1p", "mask_as", "masked_matmul", "matmul", "multiply", "mv", "neg", "nn",
    "pca_lowrank", "pow", "rad2deg", "reshape", "sin", "sinh", "slice", "sparse_coo_tensor", "sparse_csr_tensor",
    "sqrt", "square", "subtract", "sum", "tan", "tanh", "transpose",
]  # fmt: skip
