"""Oar: a deep-learning platform. Paddle's names, argument names and meaning; a C++ core.

    import oar
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    (x * x).sum().backward()
    print(x.grad)
"""

from oar import _C  # isort: skip
from oar._C import (  # noqa: F401
    ArgumentTypeError, Dim, Tensor, bfloat16, bool, complex64, complex128, dtype, float8_e4m3fn, float8_e5m2, float16,
    float32, float64, int8, int16, int32, int64, uint8)
from oar import _registry

_registry.attach_tensor_methods(Tensor)
globals().update(_registry.functions_of("oar"))

from oar._creation import (  # noqa: E402,F401
    arange, empty, empty_like, eye, from_dlpack, linspace, logspace, normal, randint, to_dlpack, to_tensor)
from oar._framework import (  # noqa: E402,F401
    CPUPlace, CUDAPinnedPlace, CUDAPlace, check_shape, finfo, get_cuda_rng_state, get_default_dtype,
    get_device, get_flags, get_num_threads, get_rng_state, iinfo, in_dynamic_mode, is_compiled_with_cinn,
    is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu, is_complex, is_floating_point, is_integer,
    is_tensor, numel, rank, seed, set_default_dtype, set_device, set_flags, set_num_threads, set_printoptions,
    set_rng_state, shape, version)
from oar._functions import *  # noqa: E402,F401,F403
from oar._layout import *  # noqa: E402,F401,F403
from oar._random import *  # noqa: E402,F401,F403
from oar._math import *  # noqa: E402,F401,F403
from oar._search import *  # noqa: E402,F401,F403
from oar._grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402,F401
from oar import _diagonal, _tensor  # noqa: E402,F401
from oar import linalg  # noqa: E402,F401
from oar import _math_methods  # noqa: E402,F401
from oar import autograd  # noqa: E402
from oar.autograd import grad  # noqa: E402,F401
from oar import framework, func, nn, regularizer  # noqa: E402,F401
from oar.framework import ParamAttr, Parameter, create_parameter, load, save  # noqa: E402,F401
from oar.static.program import disable_static, enable_static  # noqa: E402
from oar import amp, geometric, incubate, io, jit, metric, optimizer, profiler, static, utils  # noqa: E402,F401
from oar import base, decomposition, device, distributed, inference, pir, pir_utils, tensor, vision  # noqa: E402,F401
from oar.autograd import ir_backward  # noqa: E402,F401
from oar import _C_ops, _legacy_C_ops  # noqa: E402,F401
from oar.nn.initializer import LazyGuard  # noqa: E402,F401

from oar.framework.missing import explain_missing_names_everywhere as _explain_missing_names  # noqa: E402

nn.functional.attach(_registry.functions_of("oar.nn.functional"))

__version__ = _C.version

_explain_missing_names("oar")
