"""Inner names of Paddle that programs use although they are not public: those that have a meaning here."""

from oar._C import Tensor
from oar._framework import get_flags, in_dynamic_mode, set_flags
from oar._places import (
    CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cinn, is_compiled_with_cuda, is_compiled_with_rocm,
    is_compiled_with_xpu)
from oar.base import (
    backward,
    compiler,
    core,
    data_feeder,
    dygraph,
    executor,
    framework,
    layer_helper,
    log_helper,
    operators,
    param_attr,
    variable_index,
    wrapped_decorator,
)
from oar.base.core import LoDTensor
from oar.base.lod_tensor import create_lod_tensor, create_random_int_lodtensor
from oar.base.data_feeder import DataFeeder
from oar.base.dygraph import disable_dygraph, enable_dygraph
from oar.framework import ParamAttr, unique_name
from oar.static import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
    Program,
    Scope,
    Variable,
    append_backward,
    cpu_places,
    create_parameter,
    cuda_places,
    data,
    default_main_program,
    default_startup_program,
    device_guard,
    global_scope,
    gradients,
    name_scope,
    program_guard,
    scope_guard,
)

in_dygraph_mode = in_dynamic_mode
enable_imperative = enable_dygraph
disable_imperative = disable_dygraph

__all__ = [
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "DataFeeder",
    "ExecutionStrategy",
    "Executor",
    "LoDTensor",
    "ParamAttr",
    "Program",
    "Scope",
    "Tensor",
    "Variable",
    "append_backward",
    "backward",
    "compiler",
    "core",
    "cpu_places",
    "create_lod_tensor",
    "create_parameter",
    "create_random_int_lodtensor",
    "cuda_places",
    "data",
    "data_feeder",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "disable_dygraph",
    "disable_imperative",
    "dygraph",
    "enable_dygraph",
    "enable_imperative",
    "executor",
    "framework",
    "get_flags",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "layer_helper",
    "log_helper",
    "name_scope",
    "operators",
    "param_attr",
    "program_guard",
    "scope_guard",
    "set_flags",
    "unique_name",
    "variable_index",
    "wrapped_decorator",
]
