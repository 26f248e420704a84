"""Inner names of Paddle that programs use although they are not public: those that have a meaning here."""

from oar._C import Tensor
from oar._framework import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    get_flags,
    in_dynamic_mode,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
    set_flags,
)
from oar.base import core, data_feeder, dygraph, framework
from oar.base.dygraph import enable_dygraph
from oar.framework import ParamAttr, unique_name

in_dygraph_mode = in_dynamic_mode

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "ParamAttr",
    "Tensor",
    "core",
    "data_feeder",
    "dygraph",
    "enable_dygraph",
    "framework",
    "get_flags",
    "in_dygraph_mode",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_flags",
    "unique_name",
]
