"""Which ops mixed precision computes in 16 bits and which in float32, under Paddle's names, and what Oar calls them.

What Oar's own ops do is in their records (``amp`` of an ``OpDef``). These lists say the same under Paddle's names, for
programs that read them; ``tests/python/test_amp_lists.py`` compares the two.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

__all__ = ["black_list", "own_names", "white_list"]

# Products: faster in 16 bits, and exact enough.
WHITE_LIST = {
    "conv2d", "einsum", "matmul", "matmul_v2", "max_pool2d_with_index", "mul", "fused_gemm_epilogue",
    "fused_rotary_position_embedding", "flash_attn", "linear_v2",
}  # fmt: skip

ONLY_FP16_WHITE_LIST = {
    "fake_quantize_dequantize_abs_max", "fake_quantize_dequantize_moving_average_abs_max", "fused_attention",
    "fused_feedforward",
}  # fmt: skip

FP16_WHITE_LIST = WHITE_LIST | ONLY_FP16_WHITE_LIST
BF16_WHITE_LIST = WHITE_LIST

# Sums, quotients and functions that leave the range of 16 bits, or lose too many digits in it.
FP16_BLACK_LIST = {
    "tan", "acos", "asin", "sinh", "cosh", "atanh", "tanh_shrink", "erfinv", "exp", "expm1", "log", "log10", "log2",
    "reciprocal", "rsqrt", "pow", "square", "reduce_sum", "mean", "reduce_mean", "reduce_prod", "cumprod", "cumsum",
    "dist", "pnorm", "frobenius_norm", "renorm", "group_norm", "layer_norm", "softmax", "softmin", "softplus",
    "log_softmax", "softmax_with_cross_entropy", "sigmoid_cross_entropy_with_logits", "c_softmax_with_cross_entropy",
    "c_softmax_with_multi_label_cross_entropy",
    "cross_entropy", "cross_entropy2", "nll_loss", "huber_loss", "triplet_margin_loss", "log_loss", "hsigmoid_loss",
    "margin_cross_entropy",
}  # fmt: skip
BF16_BLACK_LIST = FP16_BLACK_LIST

# Ops whose gradients add many numbers to one place: float32 at every level.
EXTRA_BLACK_LIST = {
    "linear_interp_v2", "nearest_interp_v2", "bilinear_interp_v2", "bicubic_interp_v2", "trilinear_interp_v2",
    "lookup_table", "lookup_table_v2", "scatter",
}  # fmt: skip

# Paddle's names whose work other ops, or several, do here. A name that is not listed is that of the op, or the table of
# ``oar.base.operators`` has it.
_OWN = {
    "matmul": ("matmul", "linear"),
    "matmul_v2": ("matmul", "linear"),
    "mul": ("matmul", "linear"),
    "fused_gemm_epilogue": ("linear",),
    "linear_v2": ("linear",),
    "depthwise_conv2d": ("conv2d",),
    "conv2d": ("conv1d", "conv2d"),
    "flash_attn": ("scaled_dot_product_attention", "attention"),
    "mean": ("mean",),
    "reduce_sum": ("sum",),
    "cumsum": ("cumsum", "cumsum_along"),
    "cumprod": ("cumprod", "cumprod_along"),
    "lookup_table": ("embedding", "embedding_lookup"),
    "lookup_table_v2": ("embedding", "embedding_lookup"),
    "embedding": ("embedding", "embedding_lookup"),
    "cross_entropy": ("cross_entropy", "softmax_cross_entropy", "soft_cross_entropy"),
    "cross_entropy2": ("cross_entropy", "softmax_cross_entropy", "soft_cross_entropy"),
    "softmax_with_cross_entropy": ("cross_entropy", "softmax_cross_entropy", "soft_cross_entropy"),
    "sigmoid_cross_entropy_with_logits": ("binary_cross_entropy_with_logits",),
    "huber_loss": ("smooth_l1_loss",),
    "pnorm": ("p_norm",),
    "frobenius_norm": ("root_sum_square", "p_norm"),
    "margin_cross_entropy": ("margin_softmax",),
    "nearest_interp_v2": ("resample_nearest",),
    "linear_interp_v2": ("resample",),
    "bilinear_interp_v2": ("resample",),
    "bicubic_interp_v2": ("resample",),
    "trilinear_interp_v2": ("resample",),
    "elementwise_pow": ("pow",),
    "scatter": ("scatter",),
}
# Oar's ops behind EXTRA_BLACK_LIST.
ALWAYS_FULL = frozenset(own for name in EXTRA_BLACK_LIST for own in _OWN[name])


def own_names(names: Iterable[str]) -> set[str]:
    """The ops of Oar behind names of Paddle's ops, of either generation.

    Args:
        names: for example ``['elementwise_add', 'matmul_v2']``.

    Returns:
        a set of names. A name that is neither Paddle's nor Oar's stays: it may be that of an op that is registered later.

    Examples:
        >>> from oar.amp.amp_lists import own_names
        >>> sorted(own_names(['elementwise_add', 'matmul_v2']))
        ['add', 'linear', 'matmul']
    """
    newer = _newer_names()
    return {own for name in names for own in _OWN.get(name, (newer.get(name, name),))}


@functools.cache
def _newer_names() -> dict[str, str]:
    from oar.base import operators

    forms = [operators.find(name) for name in operators.names()]
    return {form.older: form.name.removesuffix("_") for form in forms if isinstance(form, operators.Form)}


def white_list() -> dict[str, dict[str, set[str]]]:
    """The ops that compute in 16 bits, by dtype and level.

    Examples:
        >>> import oar
        >>> 'matmul_v2' in oar.amp.white_list()['bfloat16']['O1']
        True
    """
    return {
        "float16": {level: set(FP16_WHITE_LIST) for level in ("OD", "O1", "O2")},
        "bfloat16": {level: set(BF16_WHITE_LIST) for level in ("OD", "O1", "O2")},
    }


def black_list() -> dict[str, dict[str, set[str]]]:
    """The ops that compute in float32, by dtype and level. At level OD these are all that are not in ``white_list``.

    Examples:
        >>> import oar
        >>> [level for level in ('OD', 'O1', 'O2') if 'softmax' in oar.amp.black_list()['float16'][level]]
        ['O1']
    """
    return {
        dtype: {"OD": set(), "O1": FP16_BLACK_LIST | EXTRA_BLACK_LIST, "O2": set(EXTRA_BLACK_LIST)}
        for dtype in ("float16", "bfloat16")
    }
