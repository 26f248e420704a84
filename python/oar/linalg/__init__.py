"""Linear algebra: norms, covariance, products of several matrices."""

from oar.linalg.norms import matrix_norm, norm, vector_norm
from oar.linalg.products import corrcoef, cov, matrix_power, multi_dot

__all__ = ["corrcoef", "cov", "matrix_norm", "matrix_power", "multi_dot", "norm", "vector_norm"]
