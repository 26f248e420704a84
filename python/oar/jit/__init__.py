"""Programs: functions written down as ops, with open sizes."""

from oar import _lazy_names
from oar.jit.api import (
    capture_counts,
    enable_to_static,
    ignore_module,
    not_to_static,
    set_code_level,
    set_verbosity,
    to_static,
)
from oar.jit.capture import CapturedProgram, capture
from oar.jit.export import save
from oar.jit.static_function import StaticFunction
from oar.jit.translated_layer import TranslatedLayer, load

__all__ = [
    "CapturedProgram",
    "StaticFunction",
    "TranslatedLayer",
    "capture",
    "capture_counts",
    "enable_to_static",
    "ignore_module",
    "load",
    "not_to_static",
    "save",
    "set_code_level",
    "set_verbosity",
    "to_static",
]

# Captured functions are guarded by what they read of modules, so all names are in their places before one is captured.
_lazy_names.load_all()
