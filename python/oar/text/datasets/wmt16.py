"""English descriptions of pictures with German ones (Multi30K), of the workshop on machine translation in 2016."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.text.datasets._translations import PairsOfSentences, pairs_of_lines
from oar.text.datasets._words import END, START, UNKNOWN, checked_choice

__all__ = ["WMT16"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"

TOTAL_EN_WORDS = 11250
TOTAL_DE_WORDS = 19220

_COLUMNS = {"en": 0, "de": 1}


class WMT16(PairsOfSentences):
    """Descriptions of pictures in English and German (Multi30K).

    Args:
        data_file: the path of ``wmt16.tar.gz``, or of its folder, with ``train``, ``val`` and ``test``; None looks in the
            folder of datasets and fetches it.
        mode: ``'train'``, ``'test'`` or ``'val'``.
        src_dict_size: how many words the source's dictionary has, ``<s>``, ``<e>`` and ``<unk>`` included. It has to be given.
        trg_dict_size: the same of the target's.
        lang: the language of the source, ``'en'`` or ``'de'``.
        download: whether the file may be fetched.

    Returns:
        a dataset of three integer arrays: the source between ``<s>`` and ``<e>``, the target after ``<s>``, and the
        target before ``<e>``. Each dictionary has the most frequent words of its own language.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = pathlib.Path(tempfile.mkdtemp(), 'wmt16')
        >>> folder.mkdir()
        >>> _ = (folder / 'train').write_text('a dog\\tein Hund\\na cat\\teine Katze')
        >>> pairs = oar.text.WMT16(data_file=str(folder), src_dict_size=5, trg_dict_size=9)
        >>> [part.tolist() for part in pairs[1]]
        [[0, 3, 2, 1], [0, 5, 6], [5, 6, 1]]
        >>> pairs.get_dict('en')
        {'<s>': 0, '<e>': 1, '<unk>': 2, 'a': 3, 'dog': 4}
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        src_dict_size: int = -1,
        trg_dict_size: int = -1,
        lang: str = "en",
        download: bool = True,
    ) -> None:
        super().__init__()
        self.mode = checked_choice("WMT16", "mode", mode, ("train", "test", "val"))
        self.lang = checked_choice("WMT16", "lang", lang, _COLUMNS)
        self.data_file = found_or_fetched("WMT16", "data_file", data_file, DATA_URL, DATA_MD5, "wmt16", download)
        for name, size in (("src_dict_size", src_dict_size), ("trg_dict_size", trg_dict_size)):
            if size <= 0:
                raise AssertionError(f"[WMT16] {name} is {size}; it should be a positive number, such as 10000.")
        words = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}
        other = "de" if self.lang == "en" else "en"
        self.src_dict_size = min(src_dict_size, words[self.lang])
        self.trg_dict_size = min(trg_dict_size, words[other])
        archive = Archive(self.data_file, "WMT16")
        self.src_dict = _dictionary(archive, self.lang, self.src_dict_size)
        self.trg_dict = _dictionary(archive, other, self.trg_dict_size)
        self._read(archive)

    def _read(self, archive: Archive) -> None:
        start, end, unknown = (self.src_dict.get(mark, number) for number, mark in enumerate((START, END, UNKNOWN)))
        column = _COLUMNS[self.lang]
        for pair in pairs_of_lines(archive.lines(f"wmt16/{self.mode}")):
            source = [self.src_dict.get(word, unknown) for word in pair[column]]
            target = [self.trg_dict.get(word, unknown) for word in pair[1 - column]]
            self._add([start, *source, end], target, start, end)

    def get_dict(self, lang: str, reverse: bool = False) -> dict[Any, Any]:
        """The dictionary of a language.

        Args:
            lang: ``'en'`` or ``'de'``.
            reverse: whether it gives words by number, instead of numbers by word.

        Returns:
            a dictionary.
        """
        chosen = self.src_dict if checked_choice("WMT16", "lang", lang, _COLUMNS) == self.lang else self.trg_dict
        return {number: word for word, number in chosen.items()} if reverse else chosen


def _dictionary(archive: Archive, lang: str, size: int) -> dict[str, int]:
    """The most frequent words of a language in the sentences for training, after the marks."""
    counts: Counter[str] = Counter()
    for pair in pairs_of_lines(archive.lines("wmt16/train")):
        counts.update(pair[_COLUMNS[lang]])
    frequent = sorted(counts, key=lambda word: -counts[word])[: max(size - 3, 0)]
    return {word: number for number, word in enumerate((START, END, UNKNOWN, *frequent))}
