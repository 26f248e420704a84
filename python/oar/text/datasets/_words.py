"""What datasets of words have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

__all__ = ["START", "END", "UNKNOWN", "checked_choice", "frequent_words"]

START, END, UNKNOWN = "<s>", "<e>", "<unk>"


def checked_choice(owner: str, argument: str, value: str, choices: Iterable[str]) -> str:
    """``value`` if it is one of the choices, whatever its case."""
    for choice in choices:
        if isinstance(value, str) and value.lower() == choice.lower():
            return choice
    raise AssertionError(f"[{owner}] {argument} is {value!r}; it should be one of {', '.join(map(repr, choices))}.")


def frequent_words(counts: Counter[Any], more_than: int) -> dict[Any, int]:
    """Numbers of the words that are counted more than so many times, the most frequent first, and one for all others."""
    kept = [word for word, count in counts.items() if count > more_than]
    kept.sort(key=lambda word: (-counts[word], word if isinstance(word, bytes) else word.encode()))
    return {word: number for number, word in enumerate([*kept, UNKNOWN])}
