"""Functions on tensors by the names of PyTorch's ``functional``."""

from oar import atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, einsum, meshgrid, norm, unique_consecutive
from oar.compat import split

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "einsum", "meshgrid", "norm", "split",
           "unique_consecutive"]  # fmt: skip
