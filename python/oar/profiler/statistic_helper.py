"""Sets of time ranges: lists of ``(begin, end)``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["intersection_ranges", "merge_ranges", "merge_self_ranges", "subtract_ranges", "sum_ranges"]

Range = tuple[float, float]


def sum_ranges(ranges: Sequence[Range]) -> float:
    """The total length of ranges that do not overlap."""
    return sum(end - begin for begin, end in ranges)


def merge_self_ranges(src_ranges: Sequence[Range], is_sorted: bool = False) -> list[Range]:
    """The union of ranges, as ranges that neither overlap nor touch, in order."""
    merged: list[Range] = []
    for begin, end in src_ranges if is_sorted else sorted(src_ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def merge_ranges(range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False) -> list[Range]:
    """The union of two sets."""
    return merge_self_ranges([*range_list1, *range_list2])


def _in_order(ranges: Sequence[Range], is_sorted: bool) -> Sequence[Range]:
    return ranges if is_sorted else merge_self_ranges(ranges)


def intersection_ranges(
    range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False
) -> list[Range]:
    """What is in both sets."""
    first, second = _in_order(range_list1, is_sorted), _in_order(range_list2, is_sorted)
    found: list[Range] = []
    i = j = 0
    while i < len(first) and j < len(second):
        begin, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if begin < end:
            found.append((begin, end))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return found


def subtract_ranges(
    range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False
) -> list[Range]:
    """What is in the first set and not in the second."""
    left, taken = _in_order(range_list1, is_sorted), _in_order(range_list2, is_sorted)
    found: list[Range] = []
    j = 0
    for begin, end in left:
        while j < len(taken) and taken[j][1] <= begin:
            j += 1
        k = j
        while k < len(taken) and taken[k][0] < end:
            if taken[k][0] > begin:
                found.append((begin, taken[k][0]))
            begin = max(begin, taken[k][1])
            k += 1
        if begin < end:
            found.append((begin, end))
    return found
