"""Casting of programs to bfloat16."""

from __future__ import annotations

from typing import Any

from oar._lazy import np
from oar.static.amp.bf16.amp_lists import AutoMixedPrecisionListsBF16
from oar.static.amp.fp16_utils import cast_model_to_fp16, cast_parameters_to_fp16, fp16_guard

__all__ = ["bf16_guard", "cast_model_to_bf16", "cast_parameters_to_bf16", "convert_float_to_uint16", "rewrite_program_bf16"]

bf16_guard = fp16_guard


def convert_float_to_uint16(in_list: Any) -> Any:
    """The bits of floats as bfloat16, the lower ones cut off.

    Args:
        in_list: an array or a list of numbers.

    Returns:
        an array of uint16.

    Examples:
        >>> import oar
        >>> oar.static.amp.bf16.convert_float_to_uint16([1.0, -2.0]).tolist()
        [16256, 49152]
    """
    return (np.asarray(in_list, dtype="float32").view("uint32") >> 16).astype("uint16")


def cast_model_to_bf16(program: Any, startup_prog: Any = None, amp_lists: Any = None, use_bf16_guard: bool = True) -> set[str]:
    """Compute all that can in bfloat16: ``cast_model_to_fp16`` at level O2.

    Args:
        program: the program, before its backward is appended.
        startup_prog: accepted for compatibility: parameters stay in float32.
        amp_lists: ``AutoMixedPrecisionListsBF16``; None has the default ones.
        use_bf16_guard: only the calls inside ``bf16_guard`` are cast.

    Returns:
        the names of the parameters whose copies the program computes with.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [2, 2])
        ...     y = x @ x
        ...     _ = oar.static.amp.bf16.cast_model_to_bf16(main, use_bf16_guard=False)
        ...
        >>> y.dtype
        oar.bfloat16
        >>> oar.disable_static()
    """
    return cast_model_to_fp16(program, amp_lists or AutoMixedPrecisionListsBF16(), use_bf16_guard, "bfloat16", "O2")


def rewrite_program_bf16(main_prog: Any, amp_lists: Any = None) -> None:
    """Compute the ops that gain from it in bfloat16: ``cast_model_to_fp16`` at level O1.

    Args:
        main_prog: the program, before its backward is appended.
        amp_lists: ``AutoMixedPrecisionListsBF16``; None has the default ones.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [2, 2])
        ...     y = x @ x
        ...     z = y.sum()
        ...     oar.static.amp.bf16.rewrite_program_bf16(main)
        ...
        >>> y.dtype, z.dtype
        (oar.bfloat16, oar.float32)
        >>> oar.disable_static()
    """
    cast_model_to_fp16(main_prog, amp_lists or AutoMixedPrecisionListsBF16(), False, "bfloat16", "O1")


def cast_parameters_to_bf16(place: Any, program: Any, scope: Any = None, to_bf16_var_names: Any = None) -> None:
    """Round the parameters of a program in a scope to numbers of bfloat16. They stay float32, as the program declares them.

    Args:
        place: accepted for compatibility.
        program: the program.
        scope: the scope; None is the global one.
        to_bf16_var_names: the names of the parameters; None takes none.

    Examples:
        >>> import oar
        >>> oar.static.amp.bf16.cast_parameters_to_bf16(oar.CPUPlace(), oar.static.Program())
    """
    cast_parameters_to_fp16(place, program, scope, to_bf16_var_names, "bfloat16")
