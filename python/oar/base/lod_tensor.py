"""Contents for programs, with the lengths of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar._lazy import np
from oar.static.scope import LoDTensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None) -> LoDTensor:
    """Rows with the lengths of the sequences that they are.

    Args:
        data: an array, another such tensor, or a list of sequences of numbers, which become rows of one.
        recursive_seq_lens: lengths, level by level; the last one counts rows.
        place: kept; contents are on the host.
    """
    if isinstance(data, (list, tuple)):
        lengths = [len(sequence) for sequence in data]
        if [list(recursive_seq_lens[-1])] != [lengths]:
            raise AssertionError(
                f"data holds sequences of {lengths}, but recursive_seq_lens says {recursive_seq_lens[-1]}."
            )
        data = np.concatenate([np.asarray(sequence) for sequence in data]).reshape(sum(lengths), -1)
    made = LoDTensor()
    made.set(np.asarray(data), place)
    made.set_recursive_sequence_lengths(recursive_seq_lens)
    return made


def create_random_int_lodtensor(recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Any,
                                low: int, high: int) -> LoDTensor:
    """Random integers from ``low`` to ``high``, one row of ``base_shape`` for each place of the last level."""
    shape = [sum(recursive_seq_lens[-1]), *base_shape]
    return create_lod_tensor(np.random.randint(low, high + 1, shape).astype("int64"), recursive_seq_lens, place)
