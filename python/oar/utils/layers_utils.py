"""Nested lists, tuples and dicts: their leaves, and functions of those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


__all__ = ["assert_same_structure", "convert_to_list", "flatten", "is_same_shape", "is_sequence", "map_structure",
           "pack_sequence_as", "to_sequence"]  # fmt: skip


def _like_sequence(value: Any, items: list[Any]) -> Any:
    kind = type(value)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def _like_dict(value: dict, made: dict) -> Any:
    copy = value.copy()
    copy.update(made)
    return copy


def is_sequence(seq: Any) -> bool:
    """Whether it is a list, a tuple or a dict.

    Args:
        seq: anything.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.utils.is_sequence([1]), oar.utils.is_sequence(1)
        (True, False)
    """
    return isinstance(seq, (list, tuple, dict))


def to_sequence(nest: Any) -> Any:
    """A nest as it is, anything else as a list of one.

    Args:
        nest: a nest of lists, tuples and dicts.

    Examples:
        >>> import oar
        >>> oar.utils.to_sequence(1), oar.utils.to_sequence([1])
        ([1], [1])
    """
    return nest if is_sequence(nest) else [nest]


def _items(nest: Any) -> list[Any]:
    return [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else list(nest)


def flatten(nest: Any) -> list[Any]:
    """The leaves in order; those of a dict in the order of its keys.

    Args:
        nest: a nest of lists, tuples and dicts.

    Examples:
        >>> import oar
        >>> oar.utils.flatten({'b': 1, 'a': [2, (3,)]})
        [2, 3, 1]
    """
    return [leaf for item in _items(nest) for leaf in flatten(item)] if is_sequence(nest) else [nest]


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, dict):
        made = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return {key: made[key] for key in structure} if type(structure) is dict else _like_dict(structure, made)
    if is_sequence(structure):
        return _like_sequence(structure, [_packed(item, leaves) for item in structure])
    return next(leaves)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The leaves ``flat_sequence`` in the places of a structure's.

    Args:
        structure: the structure to follow.
        flat_sequence: the leaves.

    Examples:
        >>> import oar
        >>> oar.utils.pack_sequence_as([0, (0, 0)], [1, 2, 3])
        [1, (2, 3)]
    """
    if not isinstance(flat_sequence, (list, tuple)):
        raise TypeError(f"flat_sequence must be a list or a tuple, not {type(flat_sequence).__name__}.")
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(f"the structure has {count} leaves, but flat_sequence has {len(flat_sequence)}.")
    return _packed(structure, iter(flat_sequence))


def map_structure(func: Callable, *structure: Any) -> Any:
    """Applies a function to the leaves of equally nested structures; returns such a structure.

    Args:
        func: the function.
        structure: the structures, equally nested.

    Examples:
        >>> import oar
        >>> oar.utils.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)])
        [11, (22,)]
    """
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises unless both are equally nested, with the same types if ``check_types``.

    Args:
        nest1: the first nest.
        nest2: the second nest.
        check_types: whether the types must be the same.

    Examples:
        >>> import oar
        >>> oar.utils.assert_same_structure([1, (2,)], [3, (4,)])
    """
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}.")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"the structures differ in type: {type(nest1).__name__} and {type(nest2).__name__}.")
    keys_differ = isinstance(nest1, dict) and isinstance(nest2, dict) and set(nest1) != set(nest2)
    if len(nest1) != len(nest2) or keys_differ:
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}.")
    for one, other in zip(_items(nest1), _items(nest2)):
        assert_same_structure(one, other, check_types)


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """A number n times, or a list of n numbers as it is.

    Args:
        value: a number, or a list or tuple of n of them.
        n: how many.
        name: what they are, for the error.
        dtype: their type.

    Returns:
        a list.

    Examples:
        >>> from oar.utils import convert_to_list
        >>> convert_to_list(3, 2, 'stride'), convert_to_list((1, 2), 2, 'stride')
        ([3, 3], [1, 2])
    """
    if isinstance(value, dtype):
        return [value] * n
    if not isinstance(value, (list, tuple)) or len(value) != n or not all(isinstance(v, dtype) for v in value):
        raise ValueError(f"{name} must be one {dtype.__name__} or a list of {n} of them, not {value!r}.")
    return list(value)


def is_same_shape(shape1: Sequence[int], shape2: Sequence[int]) -> bool:
    """Whether two shapes may be the same: sizes that are not known, -1 and None, fit any.

    Args:
        shape1: a shape.
        shape2: another.

    Returns:
        a bool.

    Examples:
        >>> from oar.utils import is_same_shape
        >>> is_same_shape([-1, 3], [2, 3]), is_same_shape([2], [2, 3])
        (True, False)
    """
    unknown = (-1, None)
    return len(shape1) == len(shape2) and all(
        a == b or a in unknown or b in unknown for a, b in zip(shape1, shape2))
