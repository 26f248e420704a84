"""Reviews of films, with their verdict."""

from __future__ import annotations

import string
from collections import Counter

from oar._lazy import np
from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.io import Dataset
from oar.text.datasets._words import UNKNOWN, checked_choice, frequent_words

__all__ = ["Imdb"]

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

_PUNCTUATION = string.punctuation.encode()


def read_reviews(path: str, pattern: str) -> list[list[bytes]]:
    """The words of the files that a pattern matches, in lower case, without punctuation."""
    found = Archive(path, "Imdb").files(rf"aclImdb/{pattern}/.*\.txt")
    return [text.rstrip(b"\n\r").translate(None, _PUNCTUATION).lower().split() for _, text in found]


def number_words(path: str, cutoff: int) -> dict[bytes | str, int]:
    """Numbers of the words that are in all reviews more than ``cutoff`` times."""
    counts: Counter[bytes | str] = Counter()
    for words in read_reviews(path, "(?:train|test)/(?:pos|neg)"):
        counts.update(words)
    return frequent_words(counts, cutoff)


class Imdb(Dataset):
    """Reviews of films: the numbers of their words, and 0 for a positive or 1 for a negative verdict.

    Args:
        data_file: the path of ``aclImdb_v1.tar.gz``, or of the folder ``aclImdb`` that it unpacks to; None looks in the
            folder of datasets and fetches it.
        mode: ``'train'`` or ``'test'``.
        cutoff: words that occur more often have numbers; all others are ``<unk>``.
        download: whether the file may be fetched.

    Returns:
        a dataset of pairs of integer arrays, [words] and [1]. ``word_idx`` has the numbers; its keys are bytes.

    Examples:
        >>> import os, pathlib, tempfile
        >>> import oar
        >>> folder = pathlib.Path(tempfile.mkdtemp(), 'aclImdb')
        >>> for verdict in ('pos', 'neg'):
        ...     (folder / 'train' / verdict).mkdir(parents=True)
        ...     _ = (folder / 'train' / verdict / '0.txt').write_text('A film, a ' + verdict + ' film!')
        ...
        >>> reviews = oar.text.Imdb(data_file=str(folder), cutoff=1)
        >>> reviews.word_idx
        {b'a': 0, b'film': 1, '<unk>': 2}
        >>> reviews[1][0].tolist(), reviews[1][1].tolist()
        ([0, 1, 0, 2, 1], [1])
    """

    def __init__(self, data_file: str | None = None, mode: str = "train", cutoff: int = 150, download: bool = True) -> None:
        self.mode = checked_choice("Imdb", "mode", mode, ("train", "test"))
        self.data_file = found_or_fetched("Imdb", "data_file", data_file, URL, MD5, "imdb", download)
        self.word_idx = number_words(self.data_file, cutoff)
        other = self.word_idx[UNKNOWN]
        self.docs: list[list[int]] = []
        self.labels: list[int] = []
        for label, verdict in enumerate(("pos", "neg")):
            for words in read_reviews(self.data_file, f"{self.mode}/{verdict}"):
                self.docs.append([self.word_idx.get(word, other) for word in words])
                self.labels.append(label)
        if not self.docs:
            raise ValueError(f"[Imdb] {self.data_file!r} has no files aclImdb/{self.mode}/pos/*.txt or neg/*.txt.")

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.docs[idx]), np.array([self.labels[idx]])

    def __len__(self) -> int:
        return len(self.docs)
