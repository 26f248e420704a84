"""Linear algebra: norms, covariance, products of several matrices."""

from oar._C import ops as _ops
from oar.linalg.norms import matrix_norm, norm, vector_norm
from oar.linalg.products import corrcoef, cov, matrix_power, matrix_transpose, multi_dot

cross, diagonal, matmul, vecdot = _ops.cross, _ops.diagonal, _ops.matmul, _ops.vecdot

__all__ = ["corrcoef", "cov", "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot",
           "norm", "vecdot", "vector_norm"]  # fmt: skip
