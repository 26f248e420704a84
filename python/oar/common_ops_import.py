"""What Paddle's own ops import, for programs that import it too."""

from oar._framework import in_dynamic_mode
from oar.base import core, unique_name
from oar.base.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype
from oar.base.framework import (
    OpProtoHolder, Variable, convert_np_dtype_to_dtype_, default_main_program, device_guard, dygraph_only)
from oar.base.layer_helper import LayerHelper
from oar.framework import ParamAttr, in_dynamic_or_pir_mode

__all__ = [
    "LayerHelper", "OpProtoHolder", "ParamAttr", "Variable", "check_dtype", "check_type", "check_variable_and_dtype",
    "convert_dtype", "convert_np_dtype_to_dtype_", "core", "default_main_program", "device_guard", "dygraph_only", "in_dynamic_mode",
    "in_dynamic_or_pir_mode", "unique_name",
]  # fmt: skip
