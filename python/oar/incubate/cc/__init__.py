"""Functions with annotated tensors, compiled for the dtypes and shapes that the annotations allow."""

from oar.incubate.cc import fuse, typing
from oar.incubate.cc.compiler import compile

__all__ = ["compile", "fuse"]
