"""Pairs of sentences as numbers of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oar._lazy import np
from oar.io import Dataset

__all__ = ["PairsOfSentences", "pairs_of_lines"]


def pairs_of_lines(lines: Iterable[bytes]) -> Iterator[list[list[str]]]:
    """The words of both sentences of each line; they are separated by a tab. Lines without one are left out."""
    for line in lines:
        parts = line.decode().split("\t")
        if len(parts) == 2:
            yield [part.split() for part in parts]


class PairsOfSentences(Dataset):
    """Samples of three arrays: a sentence, its translation after the start mark, and the same before the end mark."""

    def __init__(self) -> None:
        self.src_ids: list[list[int]] = []
        self.trg_ids: list[list[int]] = []
        self.trg_ids_next: list[list[int]] = []

    def _add(self, source: list[int], target: list[int], start: int, end: int) -> None:
        self.src_ids.append(source)
        self.trg_ids.append([start, *target])
        self.trg_ids_next.append([*target, end])

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array(self.src_ids[idx]), np.array(self.trg_ids[idx]), np.array(self.trg_ids_next[idx])

    def __len__(self) -> int:
        return len(self.src_ids)
