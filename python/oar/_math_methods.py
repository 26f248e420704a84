"""Math functions written in Python as methods of Tensor."""

from oar import _functions, _math, _questions, _search, linalg
from oar._C import Tensor

_FROM = ((_math, _math.TENSOR_METHODS), (_search, _search.TENSOR_METHODS),
         (linalg, ("cond", "corrcoef", "cov", "lstsq", "lu", "lu_unpack", "matrix_power", "matrix_transpose", "multi_dot", "norm",
                   "pca_lowrank", "pinv", "qr", "slogdet", "svd_lowrank")),
         (_functions, ("is_empty", "nonzero")), (_questions, ("is_complex", "is_floating_point", "is_integer")))
for _module, _names in _FROM:
    for _name in _names:
        if _name not in Tensor.__dict__:
            setattr(Tensor, _name, getattr(_module, _name))
