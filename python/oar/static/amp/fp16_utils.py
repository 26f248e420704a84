"""Casting of programs that are written already."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.framework.parameter import dtype_name
from oar.static.amp.fp16_lists import AutoMixedPrecisionLists, get_low_precision_dtypestr

__all__ = ["cast_model_to_fp16", "cast_parameters_to_fp16", "fp16_guard"]


@contextlib.contextmanager
def fp16_guard() -> Iterator[None]:
    """Calls inside are those that ``decorate(..., use_fp16_guard=True)`` computes in 16 bits; those outside keep their dtypes.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [2, 2])
        ...     with oar.static.amp.fp16_guard():
        ...         y = x @ x
        ...     z = y @ y
        ...     _ = oar.static.amp.cast_model_to_fp16(main)
        ...
        >>> y.dtype, z.dtype
        (oar.float16, oar.float32)
        >>> oar.disable_static()
    """
    if oar.in_dynamic_mode():
        yield
        return
    program = oar.static.default_main_program()
    begin = program.num_ops()
    try:
        yield
    finally:
        program._low_ranges.append((begin, program.num_ops()))


def _ranges(program: Any, use_guard: bool, black_varnames: Iterable[str] | None) -> list[tuple[int, int]]:
    """The calls that may be cast, as ranges of their numbers."""
    ranges = list(program._low_ranges) if use_guard else [(0, program.num_ops())]
    if not black_varnames:
        return ranges
    kept = set(black_varnames)
    ops = program.global_block().ops
    chosen = {i for begin, end in ranges for i in range(begin, end)}
    return [(op.idx, op.idx + 1) for op in ops
            if op.idx in chosen and kept.isdisjoint(op.input_arg_names) and kept.isdisjoint(op.output_arg_names)]


def cast_variables(program: Any, targets: Sequence[Tensor], amp_lists: Any, dtype: str, level: str, use_promote: bool,
                   use_guard: bool) -> set[str]:
    """Writes the calls behind variables once more, with casts, and lets the variables be the new results.

    Returns:
        the names of the parameters whose 16-bit copies the calls read.
    """
    builder = program._builder
    parameters = [p for p in program.all_parameters() if dtype_name(p.dtype) == "float32"]
    inputs = [builder.find(name) for name in builder.input_names]
    ranges = _ranges(program, use_guard, amp_lists.black_varnames)
    low = {name for name in parameters_read(program, ranges, amp_lists) if level == "O2"}

    def write() -> list[Tensor]:
        copies = [oar.cast(p, dtype) if p.name in low else p for p in parameters]
        scope = oar.amp.auto_cast(True, amp_lists._custom_white_list, amp_lists._custom_black_list, level, dtype, use_promote)
        with scope:
            return builder.cast_again([*parameters, *inputs], [*copies, *inputs], list(targets), ranges)

    for target, made in zip(targets, program._within(write)):
        if made is not target:
            target._become(made)
    return low


def parameters_read(program: Any, ranges: list[tuple[int, int]], amp_lists: Any) -> set[str]:
    """The parameters that only calls read which may compute in 16 bits: not those of norms, and of ops that stay."""
    from oar.amp.amp_lists import EXTRA_BLACK_LIST, own_names

    stay = own_names(amp_lists._custom_black_list | (EXTRA_BLACK_LIST - amp_lists._custom_white_list))
    norms = {"batch_norm", "batch_norm_train", "layer_norm", "layer_norm_rows", "instance_norm", "channel_affine"}
    names = {p.name for p in program.all_parameters()}
    low: set[str] = set()
    full: set[str] = set()
    for op in program.global_block().ops:
        inside = any(begin <= op.idx < end for begin, end in ranges)
        (low if inside and op._op not in stay and op._op not in norms else full).update(names.intersection(op.input_arg_names))
    return low - full


def cast_model_to_fp16(
    program: Any, amp_lists: Any = None, use_fp16_guard: bool = True, dest_type: Any = "float16", level: str = "O2",
    use_promote: bool = False,
) -> set[str]:
    """Cast the calls of a program that is written already. Its variables are the new results from then on.

    Parameters stay in float32: the program computes with 16-bit copies of them, and updates the parameters themselves.

    Args:
        program: the program, before its backward is appended.
        amp_lists: ``AutoMixedPrecisionLists``; None has the default ones.
        use_fp16_guard: only the calls inside ``fp16_guard`` are cast.
        dest_type: float16 or bfloat16, as a dtype or by name.
        level: as for ``amp.auto_cast``.
        use_promote: at level O2, compute in float32 where an operand is.

    Returns:
        the names of the parameters whose copies the program computes with.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [2, 2])
        ...     y = oar.nn.Linear(2, 3)(x)
        ...     names = oar.static.amp.cast_model_to_fp16(main, use_fp16_guard=False, dest_type='bfloat16')
        ...
        >>> y.dtype, len(names)
        (oar.bfloat16, 2)
        >>> oar.disable_static()
    """
    dtype = get_low_precision_dtypestr(dest_type)
    lists = AutoMixedPrecisionLists(dtype=dtype) if amp_lists is None else amp_lists
    given = {*(p.name for p in program.all_parameters()), *program._builder.input_names, *program._builder.state_names}
    targets = [v for v in program._builder.held() if v.name not in given and oar.is_floating_point(v)]
    return cast_variables(program, targets, lists, dtype, level, use_promote, use_fp16_guard)


def cast_parameters_to_fp16(
    place: Any, program: Any, scope: Any = None, to_fp16_var_names: Any = None, dest_type: Any = "float16",
    rewrite_master_weight: bool = False, master_weights: Any = None,
) -> None:
    """Round the parameters of a program in a scope to numbers of 16 bits. They stay float32, as the program declares them.

    Args:
        place: accepted for compatibility.
        program: the program.
        scope: the scope; None is the global one.
        to_fp16_var_names: the names of the parameters; None takes none.
        dest_type: float16 or bfloat16, as a dtype or by name.
        rewrite_master_weight: accepted for compatibility: the parameters are the master weights.
        master_weights: likewise.

    Examples:
        >>> import oar
        >>> oar.static.amp.cast_parameters_to_fp16(oar.CPUPlace(), oar.static.Program())
    """
    dtype = get_low_precision_dtypestr(dest_type)
    scope = oar.static.global_scope() if scope is None else scope
    names = set(to_fp16_var_names or ())
    with oar.static.program.written_elsewhere(), oar.no_grad():
        for parameter in program.all_parameters():
            held = scope._tensor(parameter.name) if parameter.name in names else None
            if held is not None:
                scope._set(parameter.name, held.astype(dtype).astype(held.dtype).numpy())
