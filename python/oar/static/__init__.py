"""Programs that are written first and run later, as Paddle's static graphs."""

from oar.static import amp, input, nn
from oar.static.averages import ExponentialMovingAverage
from oar.static.backward import append_backward, gradients
from oar.static.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
)
from oar.static.input_spec import InputSpec
from oar.static.io import (
    deserialize_persistables,
    deserialize_program,
    load,
    load_from_file,
    load_inference_model,
    load_program_state,
    normalize_program,
    save,
    save_inference_model,
    save_to_file,
    serialize_persistables,
    serialize_program,
    set_program_state,
)
from oar.static.ipu import IpuCompiledProgram, IpuStrategy, ipu_shard_guard, set_ipu_shard
from oar.static.metrics import accuracy, auc, ctr_metric_bundle
from oar.static.nn.host import Print, py_func
from oar.static.program import Program, default_main_program, default_startup_program, program_guard
from oar.static.scope import Scope, global_scope, scope_guard
from oar.static.guards import cpu_places, cuda_places, device_guard, name_scope, xpu_places
from oar.static.states import create_global_var, create_parameter
from oar.static.variable import Variable, data, setitem
from oar.static.weight_norm import WeightNormParamAttr

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "ExponentialMovingAverage",
    "InputSpec",
    "IpuCompiledProgram",
    "IpuStrategy",
    "Print",
    "Program",
    "Scope",
    "Variable",
    "WeightNormParamAttr",
    "accuracy",
    "append_backward",
    "auc",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "ctr_metric_bundle",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "deserialize_persistables",
    "deserialize_program",
    "device_guard",
    "global_scope",
    "gradients",
    "ipu_shard_guard",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "name_scope",
    "nn",
    "normalize_program",
    "program_guard",
    "py_func",
    "save",
    "save_inference_model",
    "save_to_file",
    "scope_guard",
    "serialize_persistables",
    "serialize_program",
    "set_ipu_shard",
    "set_program_state",
    "setitem",
    "xpu_places",
]
