"""Mistakes that a type checker finds. A marked line is an error, another one is not."""

import oar
import oar.nn.functional as F
from oar import nn

x = oar.ones([2, 3])
oar.matmul(x)  # wrong
oar.matmul([[1.0]], x)  # wrong
oar.sum(x, axes=1)  # wrong
oar.sum(x, axis="rows")  # wrong
x.reshap([6])  # wrong
x.reshape("6")  # wrong
F.softmax(x, dim=1)  # wrong
F.relux(x)  # wrong
nn.Linear("3", 4)  # wrong
nn.Linear(3)  # wrong
oar.concat(x, y=2)  # wrong
oar.zeros([2], dtype=3)  # wrong
n: str = x.ndim  # wrong
oar.distribution.Normal("0", 1.0)  # wrong
oar.distribution.Normal(0.0, 1.0).draw()  # wrong
