"""Derivatives: backward, grad, functions with their own derivatives."""

from oar._grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled  # noqa: F401  (as in Paddle)
from oar._lazy import LazyNames as _LazyNames
from oar.autograd.backward import backward, grad
from oar.autograd.functional import hessian, jacobian
from oar.autograd.py_layer import PyLayer, PyLayerContext
from oar.autograd.saved_tensors_hooks import saved_tensors_hooks

Function = PyLayer

__all__ = ["Function", "PyLayer", "PyLayerContext", "backward", "hessian", "jacobian", "saved_tensors_hooks"]

# One needs `oar.nn`, the other the whole of `oar.static`.
_lazy_names = _LazyNames(
    "oar.autograd", ("anomaly", "ir_backward"),
    {"oar.autograd.anomaly": ("detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly")})  # fmt: skip


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module 'oar.autograd' has no attribute {name!r}")
