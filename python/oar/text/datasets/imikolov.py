"""The Penn Treebank, prepared for models of language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oar._lazy import np
from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.io import Dataset
from oar.text.datasets._words import END, START, UNKNOWN, checked_choice, frequent_words

__all__ = ["Imikolov"]

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"

Words = dict


def sentences(path: str, part: str) -> list[list[bytes]]:
    """The words of each line of a part: train, valid or test."""
    return [line.split() for line in Archive(path, "Imikolov").lines(f"ptb.{part}.txt")]


def number_words(path: str, min_word_freq: int) -> Words:
    """Numbers of the words that the parts for training and validation have more than so many times."""
    counts: Counter[bytes | str] = Counter()
    for part in ("train", "valid"):
        lines = sentences(path, part)
        for words in lines:
            counts.update(words)
        counts.update({START: len(lines), END: len(lines)})
    counts.pop(UNKNOWN, None)
    return frequent_words(counts, min_word_freq)


def grams(lines: list[list[bytes]], numbers: Words, size: int) -> Iterator[tuple[int, ...]]:
    """The runs of ``size`` words, from the start mark to the end mark of each line."""
    other = numbers[UNKNOWN]
    for words in lines:
        line = [numbers.get(word, other) for word in (START, *words, END)]
        for end in range(size, len(line) + 1):
            yield tuple(line[end - size : end])


def sequences(lines: list[list[bytes]], numbers: Words, longest: int) -> Iterator[tuple[list[int], list[int]]]:
    """Each line with a start mark, and with an end mark; lines that are too long are left out."""
    other = numbers[UNKNOWN]
    for words in lines:
        line = [numbers.get(word, other) for word in words]
        if longest <= 0 or len(line) + 1 <= longest:
            yield [numbers.get(START, other), *line], [*line, numbers.get(END, other)]


class Imikolov(Dataset):
    """The Penn Treebank as Mikolov prepared it: runs of words, or whole sentences.

    Args:
        data_file: the path of ``simple-examples.tgz``, or of a folder with ``ptb.train.txt``, ``ptb.valid.txt`` and
            ``ptb.test.txt``; None looks in the folder of datasets and fetches it.
        data_type: ``'NGRAM'`` for runs of ``window_size`` words, ``'SEQ'`` for sentences.
        window_size: the words of a run; of sentences the largest length, or -1 for any.
        mode: ``'train'`` or ``'test'``.
        min_word_freq: words that occur more often have numbers; all others are ``<unk>``.
        download: whether the file may be fetched.

    Returns:
        a dataset of tuples of integer arrays: a scalar for each word of a run, or a sentence after ``<s>`` and the same
        before ``<e>``. ``word_idx`` has the numbers; words are bytes.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> for part in ('train', 'valid', 'test'):
        ...     _ = pathlib.Path(folder, 'ptb.' + part + '.txt').write_text(' a b c \\n')
        ...
        >>> runs = oar.text.Imikolov(data_file=folder, window_size=4, min_word_freq=0)
        >>> [[word.item() for word in run] for run in runs]
        [[1, 2, 3, 4], [2, 3, 4, 0]]
    """

    def __init__(
        self,
        data_file: str | None = None,
        data_type: str = "NGRAM",
        window_size: int = -1,
        mode: str = "train",
        min_word_freq: int = 50,
        download: bool = True,
    ) -> None:
        self.data_type = checked_choice("Imikolov", "data_type", data_type, ("NGRAM", "SEQ"))
        self.mode = checked_choice("Imikolov", "mode", mode, ("train", "test"))
        if self.data_type == "NGRAM" and window_size < 0:
            raise AssertionError(f"[Imikolov] window_size is {window_size}; runs of words need their length, for example 5.")
        self.window_size = window_size
        self.min_word_freq = min_word_freq
        self.data_file = found_or_fetched("Imikolov", "data_file", data_file, URL, MD5, "imikolov", download)
        self.word_idx = number_words(self.data_file, min_word_freq)
        cut = grams if self.data_type == "NGRAM" else sequences
        self.data = list(cut(sentences(self.data_file, self.mode), self.word_idx, window_size))

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)
