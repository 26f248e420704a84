"""The types of a schema in Python's words. The generator of the reference pages reads this file too."""

from __future__ import annotations

import re

_TYPES = {"Scalar": "int | float | bool | complex", "dtype": "str | dtype", "shape": "list[int]"}


def python_type(schema_type: str, broadcasts: bool) -> str:
    """The Python type of an argument: ``int | list[int] | None`` for ``int[]?``.

    An op that broadcasts takes numbers where it reads tensors.
    """
    found = re.fullmatch(r"(\w+)(?:\(\w!?\))?(\??)(\[\])?(\??)", schema_type)
    if found is None:
        raise ValueError(f"{schema_type!r} is not a type of a schema.")
    word, elements, listed, optional = found.groups()
    if not listed:
        elements, optional = "", elements or optional
    number = broadcasts and word == "Tensor" and not listed and "!" not in schema_type
    text = _TYPES.get(word, word) + (" | float" if number else "")
    if listed:
        text = ("int | " if word == "int" else "") + f"list[{text}{' | None' if elements else ''}]"
    return text + (" | None" if optional else "")


def result_type(results: int, returns_list: bool) -> str:
    """The Python type of what an op returns."""
    single = "list[Tensor]" if returns_list else "Tensor"
    return single if results == 1 else f"tuple[{', '.join(['Tensor'] * results)}]"
