"""What layers, optimizers and files share: parameters, their attributes, names, saving and loading."""

from oar._framework import get_default_dtype, in_dynamic_mode, seed, set_default_dtype
from oar._places import CPUPlace, CUDAPinnedPlace, CUDAPlace
from oar._grad_mode import no_grad
from oar.framework import core, dtype, random, unique_name
from oar.framework.io import load, save
from oar.framework.mode import in_dynamic_or_pir_mode, in_pir_mode, use_pir_api
from oar.framework.param_attr import ParamAttr
from oar.framework.parameter import EagerParamBase, Parameter, create_parameter

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EagerParamBase",
    "ParamAttr",
    "Parameter",
    "core",
    "create_parameter",
    "get_default_dtype",
    "in_dynamic_mode",
    "in_dynamic_or_pir_mode",
    "in_pir_mode",
    "use_pir_api",
    "load",
    "no_grad",
    "random",
    "save",
    "seed",
    "set_default_dtype",
    "unique_name",
]
