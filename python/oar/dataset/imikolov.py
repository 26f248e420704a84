"""The Penn Treebank, as readers. ``oar.text.Imikolov`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oar.dataset.common import found_or_fetched
from oar.text.datasets.imikolov import MD5, URL, grams, number_words, sentences, sequences

__all__ = ["DataType", "build_dict", "fetch", "test", "train"]


class DataType:
    """What samples are: runs of words, or whole sentences."""

    NGRAM = 1
    SEQ = 2


def build_dict(min_word_freq: int = 50) -> dict:
    """Numbers of the words that occur more often.

    Args:
        min_word_freq: how often.

    Returns:
        a dictionary; words are bytes.
    """
    return number_words(fetch(), min_word_freq)


def _reader(part: str, word_idx: dict, n: int, data_type: int) -> Callable[[], Iterator]:
    cut = {DataType.NGRAM: grams, DataType.SEQ: sequences}.get(data_type)
    if cut is None:
        raise AssertionError(f"[imikolov] data_type is {data_type!r}; it should be DataType.NGRAM or DataType.SEQ.")
    if cut is grams and n < 0:
        raise AssertionError(f"[imikolov] n is {n}; runs of words need their length, for example 5.")
    path = fetch()
    return lambda: iter(cut(sentences(path, part), word_idx, n))


def train(word_idx: dict, n: int, data_type: int = DataType.NGRAM) -> Callable[[], Iterator]:
    """A reader of the sentences for training.

    Args:
        word_idx: the numbers of the words.
        n: the words of a run; of sentences the largest length, or -1 for any.
        data_type: ``DataType.NGRAM`` or ``DataType.SEQ``.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("train", word_idx, n, data_type)


def test(word_idx: dict, n: int, data_type: int = DataType.NGRAM) -> Callable[[], Iterator]:
    """A reader of the sentences for validation.

    Args:
        word_idx: the numbers of the words.
        n: the words of a run; of sentences the largest length, or -1 for any.
        data_type: ``DataType.NGRAM`` or ``DataType.SEQ``.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("valid", word_idx, n, data_type)


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("imikolov", "simple-examples.tgz", None, URL, MD5, "imikolov")
