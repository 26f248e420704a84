"""Mixed precision in programs with bfloat16, under the names that Paddle has for the CPU."""

from oar.static.amp.bf16 import amp_lists, amp_utils, decorator
from oar.static.amp.bf16.amp_lists import AutoMixedPrecisionListsBF16
from oar.static.amp.bf16.amp_utils import (
    bf16_guard, cast_model_to_bf16, cast_parameters_to_bf16, convert_float_to_uint16, rewrite_program_bf16)
from oar.static.amp.bf16.decorator import decorate_bf16

__all__ = [
    "AutoMixedPrecisionListsBF16", "amp_lists", "amp_utils", "bf16_guard", "cast_model_to_bf16", "cast_parameters_to_bf16",
    "convert_float_to_uint16", "decorate_bf16", "decorator", "rewrite_program_bf16",
]  # fmt: skip
