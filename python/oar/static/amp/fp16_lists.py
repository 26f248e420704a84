"""Which ops of a program compute in 16 bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import oar
from oar import _C
from oar.amp.amp_lists import EXTRA_BLACK_LIST, FP16_BLACK_LIST, FP16_WHITE_LIST

__all__ = [
    "AutoMixedPrecisionLists", "CustomOpLists", "check_amp_dtype", "get_low_precision_dtypestr", "get_low_precision_vartype",
]  # fmt: skip

_DTYPES = ("float16", "bfloat16")
black_list = FP16_BLACK_LIST
white_list = FP16_WHITE_LIST
# Ops that follow their operands.
gray_list = {
    "elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max", "elementwise_min",
    "elementwise_pow", "elementwise_mod", "elementwise_floordiv", "batch_norm", "layer_norm", "tanh", "sigmoid", "top_k",
    "pool2d", "pool3d", "dropout", "relu", "relu6", "leaky_relu", "soft_relu", "flatten2", "stack", "unstack",
    "uniform_random", "uniform_random_batch_size_like", "gaussian_random", "slice", "rank", "scale", "transpose2", "reshape2",
    "gather", "fill_constant", "get_tensor_from_selected_rows", "sign", "cast", "fused_bn_add_activation", "c_identity",
    "c_concat", "c_allreduce_sum", "concat", "split", "fused_feedforward", "fused_attention", "fused_multi_transformer",
}  # fmt: skip


def check_amp_dtype(dtype: Any) -> str:
    """The name of a dtype for mixed precision; an error if it is not one.

    Args:
        dtype: ``'float16'`` or ``'bfloat16'``.

    Returns:
        the name in lower case.

    Examples:
        >>> from oar.static.amp.fp16_lists import check_amp_dtype
        >>> check_amp_dtype('BFloat16')
        'bfloat16'
    """
    name = dtype.lower() if isinstance(dtype, str) else dtype
    if name not in _DTYPES:
        raise ValueError(f"[static.amp] dtype should be 'float16' or 'bfloat16', but received {dtype!r}.")
    return name


def get_low_precision_dtypestr(dtype: Any) -> str:
    """The name of a dtype for mixed precision that is given as a name or as a dtype.

    Args:
        dtype: for example ``oar.float16``.

    Returns:
        ``'float16'`` or ``'bfloat16'``.

    Examples:
        >>> import oar
        >>> from oar.static.amp.fp16_lists import get_low_precision_dtypestr
        >>> get_low_precision_dtypestr(oar.bfloat16)
        'bfloat16'
    """
    if isinstance(dtype, str):
        return check_amp_dtype(dtype)
    try:
        return check_amp_dtype(_C.dtype(dtype).name)
    except TypeError:
        raise TypeError(f"[static.amp] dtype should be a name or a dtype, but received {type(dtype).__name__}.") from None


def get_low_precision_vartype(dtype: Any) -> Any:
    """The dtype for mixed precision of a name; a dtype stays as it is.

    Args:
        dtype: for example ``'float16'``.

    Returns:
        a dtype.

    Examples:
        >>> from oar.static.amp.fp16_lists import get_low_precision_vartype
        >>> get_low_precision_vartype('float16')
        oar.float16
    """
    name = get_low_precision_dtypestr(dtype)
    return getattr(oar, name) if isinstance(dtype, str) else dtype


class AutoMixedPrecisionLists:
    """Lists of ops for ``static.amp.decorate``: those in 16 bits, those in float32, and those that follow their operands.

    Args:
        custom_white_list: names of ops that compute in 16 bits as well.
        custom_black_list: names of ops that compute in float32 as well.
        custom_black_varnames: names of variables: the calls that take or return one of them keep their dtypes.
        dtype: ``'float16'`` or ``'bfloat16'``.

    Examples:
        >>> import oar
        >>> lists = oar.static.amp.AutoMixedPrecisionLists(custom_black_list=['matmul_v2'])
        >>> 'matmul_v2' in lists.white_list, 'matmul_v2' in lists.black_list
        (False, True)
    """

    def __init__(self, custom_white_list: Iterable[str] | None = None, custom_black_list: Iterable[str] | None = None,
                 custom_black_varnames: Iterable[str] | None = None, dtype: str = "float16") -> None:
        self.amp_dtype = check_amp_dtype(dtype)
        self._custom_white_list = set(custom_white_list or ())
        self._custom_black_list = set(custom_black_list or ())
        both = self._custom_white_list & self._custom_black_list
        if both:
            raise ValueError(f"[AutoMixedPrecisionLists] {', '.join(sorted(both))}: in custom_white_list and in custom_black_list. "
                             "Remove it from one of them.")
        only = {"resnet_unit", "fused_bn_add_activation"} if self.amp_dtype == "float16" else set()
        self.white_list = (FP16_WHITE_LIST | only | self._custom_white_list) - self._custom_black_list
        self.black_list = ((FP16_BLACK_LIST | EXTRA_BLACK_LIST) - self._custom_white_list) | self._custom_black_list
        self.gray_list = gray_list - self._custom_white_list - self._custom_black_list
        self.unsupported_list = set(self._custom_black_list)
        self.all_list = self.white_list | self.black_list | self.gray_list
        self.black_varnames = None if custom_black_varnames is None else set(custom_black_varnames)


CustomOpLists = AutoMixedPrecisionLists
