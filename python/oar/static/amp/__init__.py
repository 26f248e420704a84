"""Mixed precision in programs."""

from oar.static.amp import amp_nn, bf16, debugging, decorator, fp16_lists, fp16_utils
from oar.static.amp.decorator import OptimizerWithMixedPrecision, decorate
from oar.static.amp.fp16_lists import AutoMixedPrecisionLists, CustomOpLists
from oar.static.amp.fp16_utils import cast_model_to_fp16, cast_parameters_to_fp16, fp16_guard

__all__ = [
    "AutoMixedPrecisionLists",
    "CustomOpLists",
    "OptimizerWithMixedPrecision",
    "amp_nn",
    "bf16",
    "cast_model_to_fp16",
    "cast_parameters_to_fp16",
    "debugging",
    "decorate",
    "decorator",
    "fp16_guard",
    "fp16_lists",
    "fp16_utils",
]
