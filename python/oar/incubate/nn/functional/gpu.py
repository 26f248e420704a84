"""Functions on blocks of float8 with their scales, a format that only GPUs compute in."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "fp8_gemm_blockwise",
    "fp8_quant_blockwise",
    "fused_act_dequant",
    "fused_stack_transpose_quant",
    "fused_transpose_split_quant",
    "fused_transpose_wlch_split_quant",
    "fused_weighted_swiglu_act_quant",
    "moe_gate_dispatch_and_quant",
]


def _refuse(op: str) -> NoReturn:
    raise NotImplementedError(f"[{op}] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.")


def fp8_gemm_blockwise(
    a: Any, a_decode_scale: Any, b: Any, b_decode_scale: Any, out_dtype: Any, out: Any = None, bias: Any = None,
    accumulate: Any = False, use_split_accumulator: Any = True, is_a_1d_scaled: Any = True,
    is_b_1d_scaled: Any = True,
) -> NoReturn:
    """A product of float8 matrices with a scale for each block. Needs a GPU; here it raises an error.

    Args:
        a: as in Paddle.
        a_decode_scale: as in Paddle.
        b: as in Paddle.
        b_decode_scale: as in Paddle.
        out_dtype: as in Paddle.
        out: as in Paddle.
        bias: as in Paddle.
        accumulate: as in Paddle.
        use_split_accumulator: as in Paddle.
        is_a_1d_scaled: as in Paddle.
        is_b_1d_scaled: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fp8_gemm_blockwise(None, None, None, None, None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fp8_gemm_blockwise] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fp8_gemm_blockwise")


def fp8_quant_blockwise(
    x: Any, epsilon: Any = 0.0, input_transpose: Any = False, output_scale_transpose: Any = True,
    return_transpose_only: Any = False, using_pow2_scale: Any = True, using_ue8m0_scale: Any = False,
    quant_method: Any = "1x128", output_type: Any = "e4m3", name: Any = None,
) -> NoReturn:
    """Float8 elements with a scale for each block. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        epsilon: as in Paddle.
        input_transpose: as in Paddle.
        output_scale_transpose: as in Paddle.
        return_transpose_only: as in Paddle.
        using_pow2_scale: as in Paddle.
        using_ue8m0_scale: as in Paddle.
        quant_method: as in Paddle.
        output_type: as in Paddle.
        name: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fp8_quant_blockwise(None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fp8_quant_blockwise] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fp8_quant_blockwise")


def fused_act_dequant(x: Any, x_scale: Any) -> NoReturn:
    """Elements of float8 blocks with their scales, as bfloat16. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        x_scale: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_act_dequant(None, None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fused_act_dequant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fused_act_dequant")


def fused_stack_transpose_quant(x: Any, transpose: Any = True) -> NoReturn:
    """Stacks matrices, transposes them and quantises them to float8. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        transpose: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_stack_transpose_quant(None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fused_stack_transpose_quant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fused_stack_transpose_quant")


def fused_transpose_split_quant(
    x: Any, input_scales: Any, tokens_per_expert: Any, pow_2_scales: Any = False,
) -> NoReturn:
    """Splits tokens by experts, transposes them and quantises them to float8. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        input_scales: as in Paddle.
        tokens_per_expert: as in Paddle.
        pow_2_scales: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_transpose_split_quant(None, None, None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fused_transpose_split_quant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fused_transpose_split_quant")


def fused_transpose_wlch_split_quant(x: Any, tokens_per_expert: Any, pow_2_scales: Any = False) -> NoReturn:
    """Splits tokens by experts, transposes them and quantises them to float8. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        tokens_per_expert: as in Paddle.
        pow_2_scales: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_transpose_wlch_split_quant(None, None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fused_transpose_wlch_split_quant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fused_transpose_wlch_split_quant")


def fused_weighted_swiglu_act_quant(
    x: Any, prob: Any = None, using_pow2_scaling: Any = False, name: Any = None,
) -> NoReturn:
    """swiglu, weighted, and quantised to float8. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        prob: as in Paddle.
        using_pow2_scaling: as in Paddle.
        name: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_weighted_swiglu_act_quant(None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [fused_weighted_swiglu_act_quant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("fused_weighted_swiglu_act_quant")


def moe_gate_dispatch_and_quant(
    x: Any, gate_logits: Any, corr_bias: Any, k: Any, capacity: Any, use_pad: Any, use_pow2_scale: Any,
) -> NoReturn:
    """Sends tokens to experts and quantises them to float8. Needs a GPU; here it raises an error.

    Args:
        x: as in Paddle.
        gate_logits: as in Paddle.
        corr_bias: as in Paddle.
        k: as in Paddle.
        capacity: as in Paddle.
        use_pad: as in Paddle.
        use_pow2_scale: as in Paddle.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.moe_gate_dispatch_and_quant(None, None, None, None, None, None, None)
        Traceback (most recent call last):
        ...
        NotImplementedError: [moe_gate_dispatch_and_quant] computes in blocks of float8, which only GPUs do. Use bfloat16 or float32.
    """
    _refuse("moe_gate_dispatch_and_quant")
