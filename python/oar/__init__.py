"""Oar: a deep-learning platform. Paddle's names, argument names and meaning; a C++ core.

    import oar
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    (x * x).sum().backward()
    print(x.grad)
"""

from oar import _C  # isort: skip
from oar._C import (  # noqa: F401
    ArgumentIndexError, ArgumentTypeError, ArgumentValueError, Dim, Tensor, bfloat16, bool, complex64, complex128, dtype,
    float4_e2m1fn, float8_e4m3fn, float8_e5m2, float16, float32, float64, int4, int8, int16, int32, int64, pstring, raw, uint4, uint8,
    uint32, uint64)
from oar import _missing, _registry
from oar._lazy import LazyNames as _LazyNames

# Parts that many programs never use are imported on first use: `import oar` is quick.
_lazy_names = _LazyNames(
    "oar",
    ("_C_ops", "_legacy_C_ops", "amp", "audio", "autograd", "base", "board", "callbacks", "checkpoint", "common_ops_import", "compat", "cuda", "dataset", "decomposition", "device",
     "distributed", "distribution", "fft", "framework", "func", "functional", "geometric", "hapi", "hub", "incubate", "inference", "interop", "io", "jit",
     "metric", "nn", "onnx", "optimizer", "pir", "pir_utils", "profiler", "quantization", "random", "reader", "regularizer", "science", "signal", "sparse",
     "special", "static", "sysconfig", "tensor", "tensorrt", "text", "utils", "version", "vision"),
    {"oar.amp.auto_cast": ("autocast", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
                           "is_autocast_enabled"),
     "oar.audio.functional.window": ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
     "oar.autograd": ("grad", "ir_backward"),
     "oar.batch": ("batch",),
     "oar.compat.proxy": ("disable_compat", "enable_compat", "use_compat_guard"),
     "oar.device": ("Event", "Stream", "device_guard", "get_cudnn_version", "get_default_device", "get_device_module",
                    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu",
                    "set_default_device"),
     "oar.distributed.parallel": ("DataParallel",),
     "oar.framework": ("ParamAttr", "Parameter", "async_save", "clear_async_save_task_queue", "core",
                       "create_parameter", "load", "save"),
     "oar.framework.mapped": ("MmapStorage",),
     "oar.hapi.dynamic_flops": ("flops",),
     "oar.hapi.model": ("Model",),
     "oar.hapi.model_summary": ("summary",),
     "oar.nn.functional": ("adaptive_avg_pool1d", "conv1d", "conv2d", "conv3d", "group_norm", "layer_norm", "sigmoid"),
     "oar.nn.initializer": ("LazyGuard",),
     "oar.pir_utils": ("IrGuard", "ir_guard"),
     "oar.static.program": ("disable_static", "enable_static")})

_missing.find_modules()
_registry.attach_tensor_methods(Tensor)
globals().update(_registry.functions_of("oar"))

from oar._creation import (  # noqa: E402,F401
    arange, as_tensor, asarray, empty, empty_like, eye, from_dlpack, from_numpy, linspace, logspace,
    normal, rand_like, randint, randn_like, range, to_dlpack, to_tensor)
from oar._framework import (  # noqa: E402,F401
    Generator, disable_signal_handler, get_cuda_rng_state, get_default_dtype, get_flags, get_num_threads,
    get_rng_state, in_dynamic_mode, manual_seed, seed, set_default_dtype, set_flags, set_num_threads, set_printoptions, set_rng_state)
from oar._places import (  # noqa: E402,F401
    CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, IPUPlace, XPUPinnedPlace, XPUPlace, get_device,
    is_compiled_with_cinn, is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu, set_device)
from oar._sizes import Size  # noqa: E402,F401
from oar._questions import (  # noqa: E402,F401
    check_shape, finfo, iinfo, is_complex, is_floating_point, is_integer, is_tensor, numel, rank, shape)
from oar._functions import *  # noqa: E402,F401,F403
from oar._layout import *  # noqa: E402,F401,F403
from oar._split import *  # noqa: E402,F401,F403
from oar._rearrange import *  # noqa: E402,F401,F403
from oar._random import *  # noqa: E402,F401,F403
from oar._math import *  # noqa: E402,F401,F403
from oar._search import *  # noqa: E402,F401,F403
from oar._typed import *  # noqa: E402,F401,F403
from oar._grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402,F401
from oar import _diagonal, _tensor, _tensor_forms, _variable  # noqa: E402,F401
from oar import linalg  # noqa: E402,F401
from oar.linalg import matrix_transpose, norm  # noqa: E402,F401
from oar import _math_methods, _tensor_content  # noqa: E402,F401
from oar._aliases import attach as _attach_aliases  # noqa: E402

_attach_aliases(globals())

__version__ = _C.version
__git_commit__ = "Unknown"


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    if name == "__all__":  # `from oar import *` takes the names that are not imported yet, too
        return [public for public in __dir__() if not public.startswith("_")]
    import sys

    raise _missing.missing_error(name, sys.modules["oar"], 2)


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names})
