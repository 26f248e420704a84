"""Linear algebra: factors of matrices, systems of equations, eigenvalues, norms, covariance, products."""

from oar._C import ops as _ops
from oar.linalg.derived import cond, lstsq, matrix_exp, matrix_rank, pinv
from oar.linalg.factors import lu, lu_unpack, pca_lowrank, qr, slogdet, svd_lowrank
from oar.linalg.norms import matrix_norm, norm, vector_norm
from oar.linalg.products import (
    corrcoef, cov, fp8_fp8_half_gemm_fused, matrix_power, matrix_transpose, multi_dot)

cross, diagonal, matmul, vecdot = _ops.cross, _ops.diagonal, _ops.matmul, _ops.vecdot
cholesky, cholesky_inverse, cholesky_solve = _ops.cholesky, _ops.cholesky_inverse, _ops.cholesky_solve
inv, solve, triangular_solve, lu_solve, det = _ops.inverse, _ops.solve, _ops.triangular_solve, _ops.lu_solve, _ops.det
eig, eigvals, eigh, eigvalsh, svd, svdvals = _ops.eig, _ops.eigvals, _ops.eigh, _ops.eigvalsh, _ops.svd, _ops.svdvals
householder_product, ormqr = _ops.householder_product, _ops.ormqr

__all__ = ["cholesky", "cholesky_inverse", "cholesky_solve", "cond", "corrcoef", "cov", "cross", "det", "diagonal", "eig",
           "eigh", "eigvals", "eigvalsh", "fp8_fp8_half_gemm_fused", "householder_product", "inv", "lstsq", "lu", "lu_solve",
           "lu_unpack", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
           "multi_dot", "norm", "ormqr", "pca_lowrank", "pinv", "qr", "slogdet", "solve", "svd", "svd_lowrank", "svdvals",
           "triangular_solve", "vecdot", "vector_norm"]  # fmt: skip
