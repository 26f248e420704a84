"""Sequences of different lengths: which lengths divide the rows of a variable.

The rows of all sequences are concatenated. An input with ``lod_level`` has, for each level, another input with the
lengths. Lengths belong to the open size that they divide, so every variable with that size has them too.
"""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.static.program import Program, default_main_program, program_of
from oar.static.scope import LoDTensor

__all__ = [
    "content_with_lengths",
    "declare_lengths",
    "divide",
    "fed_levels",
    "fed_with_lengths",
    "hint_at_lengths",
    "lengths_among",
    "lengths_of",
    "levels_of",
]


_MARK = ".lengths_"


def _lengths_name(name: str, level: int) -> str:
    """The name of the input with the lengths of one level of the input ``name``."""
    return f"{name}{_MARK}{level}"


def lengths_among(needed: list[str], names: list[str]) -> list[str]:
    """Those of the needed inputs that are lengths of the inputs ``names``."""
    return [name for name in needed if _MARK in name and name.rpartition(_MARK)[0] in names]


def divide(program: Program, size: Any, lengths: Tensor) -> None:
    """From now on ``lengths`` are those of variables whose first size is ``size``."""
    program._lengths[str(size)] = lengths


def declare_lengths(program: Program, variable: Tensor, levels: int, open_size: Any) -> None:
    """Inputs for the lengths of an input, level by level; the last one counts rows."""
    divided = variable.shape[0]
    for level in reversed(range(levels)):
        name = _lengths_name(variable.name, level)
        lengths = program._builder.input([open_size(name, 0, None)], _C.dtype("int64"), name, True)
        divide(program, divided, lengths)
        divided = lengths.shape[0]


def _known(variable: Tensor) -> tuple[Program, Tensor | None]:
    program = program_of(variable) or default_main_program()
    return program, program._lengths.get(str(variable.shape[0])) if variable.ndim else None


def levels_of(variable: Tensor) -> list[Tensor]:
    """The lengths of a variable, level by level; the last one counts rows. Empty if there are none."""
    program, lengths = _known(variable)
    levels: list[Tensor] = []
    while lengths is not None:
        levels.insert(0, lengths)
        lengths = program._lengths.get(str(lengths.shape[0]))
    return levels


def _same_as(program: Program, size: str) -> set[str]:
    """The sizes that were combined with this one in calls, and so are equal to it."""
    found, pairs = {size}, program._builder.met_sizes
    grown = True
    while grown:
        before = len(found)
        found.update(other for pair in pairs if found & set(pair) for other in pair)
        grown = len(found) > before
    return found


def _rivals(program: Program, variable: Tensor) -> list[str]:
    """The names of several lengths that may be meant, if inputs with lengths were combined in a call; none for an input."""
    if len(program._lengths) < 2 or variable.name in program._builder.input_names:
        return []
    same = set(program._lengths)
    if program_of(variable) is not None:  # the program does not show what was combined within a branch or a loop
        same &= _same_as(program, str(variable.shape[0]))
    return sorted(program._lengths[size].name for size in same) if len(same) > 1 else []


def lengths_of(op: str, argument: str, variable: Any) -> Tensor:
    """The lengths of the sequences that the rows of a variable are; an error where they are not known."""
    if not isinstance(variable, Tensor):
        raise TypeError(f"[{op}] {argument} should be a variable, but received {type(variable).__name__}.")
    if _C.capture_of(variable) is None:
        raise RuntimeError(
            f"[{op}] {argument} is a tensor of eager mode, which has no sequence lengths. hint: call enable_static() and "
            f"create an input with static.data(..., lod_level=1)."
        )
    program, lengths = _known(variable)
    if lengths is None:
        raise ValueError(
            f"[{op}] the rows of {argument}, of shape {list(variable.shape)}, have no sequence lengths. hint: declare the "
            f"input they come from with static.data(..., lod_level=1), and call {op} before the number of rows changes."
        )
    rivals = _rivals(program, variable)
    if rivals:
        raise ValueError(
            f"[{op}] the rows of {argument} have the lengths {' and '.join(rivals)}, which may differ. hint: give lod_level=1 "
            f"to one of these inputs only, or call {op} before they are combined, outside branches and loops."
        )
    return lengths


# feeds -------------------------------------------------------------------------------------------


def fed_with_lengths(names: list[str], feed: dict[str, Any]) -> dict[str, Any]:
    """The feed with the lengths that come with its contents, for a program with inputs of these names."""
    known = set(names)
    made = dict(feed)
    for name, value in feed.items():
        levels = 0
        while _lengths_name(name, levels) in known:
            levels += 1
        if not levels:
            continue
        lengths = value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else []
        if lengths and len(lengths) != levels:
            raise ValueError(
                f"[Executor.run] the input {name!r} has {levels} levels of lengths, but {len(lengths)} were fed."
            )
        for level, row in enumerate(lengths):
            made.setdefault(_lengths_name(name, level), np.asarray(row, "int64"))
        _check_lengths(name, levels, made)
    return made


def _check_lengths(name: str, levels: int, feed: dict[str, Any]) -> None:
    fed = [feed.get(_lengths_name(name, level)) for level in range(levels)]
    if any(row is None for row in fed):
        return
    rows = [np.asarray(row) for row in fed]
    content = feed[name].shape() if isinstance(feed[name], LoDTensor) else np.shape(feed[name])
    counts = [*map(len, rows[1:]), content[0] if len(content) else 0]
    for level, (row, count) in enumerate(zip(rows, counts)):
        if row.sum() != count or (row < 0).any():
            raise ValueError(
                f"[Executor.run] the lengths {row.tolist()} of the input {name!r}, level {level}, do not divide the "
                f"{count} {'rows' if level == levels - 1 else 'sequences'} that were fed."
            )


def hint_at_lengths(missing: list[str], feed: dict[str, Any]) -> str:
    """The way out where what is missing is lengths of what is fed."""
    bare = [name.rpartition(_MARK)[0] for name in lengths_among(missing, list(feed))]
    return f" hint: feed {bare[0]!r} with its lengths: base.create_lod_tensor(rows, [lengths])." if bare else ""


# fetches -----------------------------------------------------------------------------------------


def fed_levels(variable: Tensor, feed: dict[str, Any]) -> list[Tensor]:
    """The lengths of a variable, if the feed has them and it is clear which they are."""
    levels = levels_of(variable)
    told = all(not lengths.is_data or lengths.name in feed for lengths in levels)
    return levels if levels and told and not _rivals(_known(variable)[0], variable) else []


def content_with_lengths(tensor: Tensor, levels: list[list[int]]) -> LoDTensor:
    """A result of a run with its lengths."""
    made = LoDTensor()
    made.set(tensor)
    made.set_recursive_sequence_lengths(levels)
    return made
