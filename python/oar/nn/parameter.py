"""Parameters, under the path of PyTorch."""

from oar.framework.parameter import EagerParamBase, Parameter

__all__ = ["EagerParamBase", "Parameter"]
