"""How calls are carried out, and parameters, under Paddle's inner names."""

from __future__ import annotations

from oar import _C
from oar._framework import get_flags, in_dynamic_mode, place_of, set_flags
from oar.framework import core, unique_name
from oar.framework.mode import in_dynamic_or_pir_mode, in_pir_mode
from oar.framework.parameter import EagerParamBase, Parameter

__all__ = [
    "EagerParamBase",
    "Parameter",
    "convert_np_dtype_to_dtype_",
    "core",
    "get_flags",
    "in_dygraph_mode",
    "in_dynamic_mode",
    "in_dynamic_or_pir_mode",
    "in_pir_mode",
    "set_flags",
    "unique_name",
]

in_dygraph_mode = in_dynamic_mode


def convert_np_dtype_to_dtype_(np_dtype) -> _C.dtype:
    """The dtype of a name, of NumPy's or of Oar's."""
    return _C.dtype(np_dtype)


def _current_expected_place():
    return place_of(_C.get_device())
