"""Reviews of films, as readers. ``oar.text.Imdb`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oar.dataset.common import found_or_fetched
from oar.text.datasets.imdb import MD5, URL, number_words, read_reviews

__all__ = ["fetch", "test", "train", "word_dict"]


def word_dict() -> dict:
    """Numbers of the words that occur more than 150 times.

    Returns:
        a dictionary; words are bytes.
    """
    return number_words(fetch(), 150)


def _reader(part: str, word_idx: dict) -> Callable[[], Iterator]:
    other = word_idx["<unk>"]
    samples = [
        ([word_idx.get(word, other) for word in words], label)
        for label, verdict in enumerate(("pos", "neg"))
        for words in read_reviews(fetch(), f"{part}/{verdict}")
    ]
    return lambda: iter(samples)


def train(word_idx: dict) -> Callable[[], Iterator]:
    """A reader of the reviews for training: numbers of words, and 0 for a positive or 1 for a negative verdict.

    Args:
        word_idx: the numbers of the words.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("train", word_idx)


def test(word_idx: dict) -> Callable[[], Iterator]:
    """A reader of the reviews for testing.

    Args:
        word_idx: the numbers of the words.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("test", word_idx)


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("imdb", "aclImdb_v1.tar.gz", None, URL, MD5, "imdb")
