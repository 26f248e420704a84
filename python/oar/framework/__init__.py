"""What layers, optimizers and files share: parameters, their attributes, names, saving and loading."""

from oar._framework import get_default_dtype, in_dynamic_mode, seed, set_default_dtype
from oar._places import CPUPlace, CUDAPinnedPlace, CUDAPlace
from oar._grad_mode import no_grad
from oar.framework import core, dtype, random, recall_error, unique_name
from oar._lazy import LazyNames as _LazyNames
from oar.framework._async_save import async_save, clear_async_save_task_queue
from oar.framework.io import load, save
from oar.framework.mode import in_dynamic_or_pir_mode, in_pir_mode, use_pir_api
from oar.framework.param_attr import ParamAttr
from oar.framework.parameter import EagerParamBase, Parameter, create_parameter

# These need the whole of `oar.static`.
_lazy_names = _LazyNames("oar.framework", ("io_utils",), {
    "oar.base.framework": ("_current_expected_place", "_current_expected_place_", "_dygraph_tracer", "_no_check_dy2st_diff", "_set_expected_place", "convert_np_dtype_to_dtype_",
                           "dygraph_only"),
    "oar.base.layer_helper": ("LayerHelper",)})


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module 'oar.framework' has no attribute {name!r}")


__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EagerParamBase",
    "ParamAttr",
    "async_save",
    "clear_async_save_task_queue",
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
    "recall_error",
    "save",
    "seed",
    "set_default_dtype",
    "unique_name",
]
