"""What layers, optimizers and files share: parameters, their attributes, names, saving and loading."""

from oar.framework import unique_name
from oar.framework.io import load, save
from oar.framework.param_attr import ParamAttr
from oar.framework.parameter import EagerParamBase, Parameter, create_parameter

__all__ = ["EagerParamBase", "ParamAttr", "Parameter", "create_parameter", "load", "save", "unique_name"]
