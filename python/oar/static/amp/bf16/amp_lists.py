"""Which ops of a program compute in bfloat16."""

from __future__ import annotations

from collections.abc import Iterable

from oar.amp.amp_lists import BF16_WHITE_LIST
from oar.static.amp.fp16_lists import AutoMixedPrecisionLists, black_list, white_list
from oar.static.amp.fp16_lists import gray_list as _gray_list

__all__ = ["AutoMixedPrecisionListsBF16"]

bf16_list = set(BF16_WHITE_LIST)
gray_list = set(_gray_list)
fp32_list = (black_list | white_list | _gray_list) - bf16_list - gray_list
bf16_initializer_list = {"fill_constant", "uniform_random"}


class AutoMixedPrecisionListsBF16(AutoMixedPrecisionLists):
    """Lists of ops for ``decorate_bf16``.

    Args:
        custom_bf16_list: names of ops that compute in bfloat16 as well.
        custom_fp32_list: names of ops that compute in float32 as well.
        custom_fp32_varnames: names of variables: the calls that take or return one of them keep their dtypes.

    Examples:
        >>> import oar
        >>> lists = oar.static.amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list={'matmul_v2'})
        >>> 'matmul_v2' in lists.bf16_list, 'matmul_v2' in lists.fp32_list
        (False, True)
    """

    def __init__(self, custom_bf16_list: Iterable[str] | None = None, custom_fp32_list: Iterable[str] | None = None,
                 custom_fp32_varnames: Iterable[str] | None = None) -> None:
        low, full = set(custom_bf16_list or ()), set(custom_fp32_list or ())
        both = low & full
        if both:
            raise ValueError(f"[AutoMixedPrecisionListsBF16] {', '.join(sorted(both))}: in custom_bf16_list and in custom_fp32_list. "
                             "Remove it from one of them.")
        super().__init__(low, full, custom_fp32_varnames, "bfloat16")
        self.bf16_list = (bf16_list | low) - full
        self.fp32_list = (fp32_list - low) | full
        self.gray_list = gray_list - low - full
        self.bf16_initializer_list = set(bf16_initializer_list)
        self.fp32_varnames = self.black_varnames
