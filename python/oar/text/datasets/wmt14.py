"""French sentences with English ones, of the workshop on machine translation in 2014."""

from __future__ import annotations

from itertools import islice
from typing import Any

from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.text.datasets._translations import PairsOfSentences, pairs_of_lines
from oar.text.datasets._words import END, START, checked_choice

__all__ = ["WMT14"]

URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5 = "0791583d57d5beb693b9414c5b36798c"

_UNKNOWN_NUMBER = 2
_LONGEST = 80


class WMT14(PairsOfSentences):
    """Pairs of sentences in two languages: a small part of the data of the workshop in 2014.

    Args:
        data_file: the path of ``wmt14.tgz``, or of its folder, with ``src.dict``, ``trg.dict`` and ``train/train``;
            None looks in the folder of datasets and fetches it.
        mode: ``'train'``, ``'test'`` or ``'gen'``.
        dict_size: how many words of the dictionaries are used; others are ``<unk>``. It has to be given.
        download: whether the file may be fetched.

    Returns:
        a dataset of three integer arrays: the source between ``<s>`` and ``<e>``, the target after ``<s>``, and the
        target before ``<e>``. Sentences of more than 80 words are left out.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> (folder / 'train').mkdir()
        >>> for name, content in {'src.dict': '<s> <e> <unk> oui', 'trg.dict': '<s> <e> <unk> yes'}.items():
        ...     _ = (folder / name).write_text(content.replace(' ', '\\n'))
        ...
        >>> _ = (folder / 'train' / 'train').write_text('oui merci\\tyes thanks')
        >>> [part.tolist() for part in oar.text.WMT14(data_file=str(folder), dict_size=4)[0]]
        [[0, 3, 2, 1], [0, 3, 2], [3, 2, 1]]
    """

    def __init__(self, data_file: str | None = None, mode: str = "train", dict_size: int = -1, download: bool = True) -> None:
        super().__init__()
        self.mode = checked_choice("WMT14", "mode", mode, ("train", "test", "gen"))
        self.data_file = found_or_fetched("WMT14", "data_file", data_file, URL, MD5, "wmt14", download)
        if dict_size <= 0:
            raise AssertionError(f"[WMT14] dict_size is {dict_size}; it should be a positive number, such as 30000.")
        self.dict_size = dict_size
        archive = Archive(self.data_file, "WMT14")
        self.src_dict = self._dictionary(archive, "src.dict")
        self.trg_dict = self._dictionary(archive, "trg.dict")
        for _, content in archive.files(f"{self.mode}/{self.mode}"):
            self._read(line.strip() for line in content.split(b"\n"))
        if not self.src_ids:
            raise ValueError(f"[WMT14] {self.data_file!r} has no sentences in a file {self.mode}/{self.mode}.")

    def _dictionary(self, archive: Archive, name: str) -> dict[str, int]:
        # Names may have something before: wmt14/dict/src.dict, or train.src.dict.
        found = [content for _, content in archive.files(rf"[^/]*{name}")]
        if len(found) != 1:
            raise AssertionError(f"[WMT14] {self.data_file!r} has {len(found)} files {name}; one was expected.")
        lines = [line.strip().decode() for line in found[0].split(b"\n")]
        return {word: number for number, word in enumerate(islice(lines if lines[-1] else lines[:-1], self.dict_size))}

    def _read(self, lines: Any) -> None:
        for source, target in pairs_of_lines(lines):
            source_ids = [self.src_dict.get(word, _UNKNOWN_NUMBER) for word in (START, *source, END)]
            target_ids = [self.trg_dict.get(word, _UNKNOWN_NUMBER) for word in target]
            if len(source_ids) <= _LONGEST and len(target_ids) <= _LONGEST:
                self._add(source_ids, target_ids, self.trg_dict[START], self.trg_dict[END])

    def get_dict(self, reverse: bool = False) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """The dictionaries of the source and the target.

        Args:
            reverse: whether they give words by number, instead of numbers by word.

        Returns:
            two dictionaries.
        """
        if not reverse:
            return self.src_dict, self.trg_dict
        return {n: word for word, n in self.src_dict.items()}, {n: word for word, n in self.trg_dict.items()}
