"""Ops of your own in C++, compiled against Oar's headers and equal to built-in ones: docs/custom-ops.md."""

from oar.utils.cpp_extension.build import get_build_directory
from oar.utils.cpp_extension.load import load
from oar.utils.cpp_extension.packaging import BuildExtension, CppExtension, CUDAExtension, setup

__all__ = ["BuildExtension", "CppExtension", "CUDAExtension", "get_build_directory", "load", "setup"]
