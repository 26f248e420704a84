"""Pairs of sentences of 2016, as readers. ``oar.text.WMT16`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oar.dataset.common import found_or_fetched
from oar.text.datasets.wmt16 import DATA_MD5, DATA_URL, WMT16

__all__ = ["fetch", "get_dict", "test", "train", "validation"]


def _reader(mode: str, src_dict_size: int, trg_dict_size: int, src_lang: str) -> Callable[[], Iterator]:
    pairs = WMT16(fetch(), mode, src_dict_size, trg_dict_size, src_lang)
    return lambda: zip(pairs.src_ids, pairs.trg_ids, pairs.trg_ids_next)


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator]:
    """A reader of the pairs for training.

    Args:
        src_dict_size: how many words the source's dictionary has.
        trg_dict_size: how many the target's has.
        src_lang: the language of the source, ``'en'`` or ``'de'``.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator]:
    """A reader of the pairs for testing.

    Args:
        src_dict_size: how many words the source's dictionary has.
        trg_dict_size: how many the target's has.
        src_lang: the language of the source, ``'en'`` or ``'de'``.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator]:
    """A reader of the pairs for validation.

    Args:
        src_dict_size: how many words the source's dictionary has.
        trg_dict_size: how many the target's has.
        src_lang: the language of the source, ``'en'`` or ``'de'``.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[Any, Any]:
    """The dictionary of a language.

    Args:
        lang: ``'en'`` or ``'de'``.
        dict_size: how many words.
        reverse: whether it gives words by number, instead of numbers by word.

    Returns:
        a dictionary.
    """
    return WMT16(fetch(), "test", dict_size, dict_size, lang).get_dict(lang, reverse)


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("wmt16", "wmt16.tar.gz", None, DATA_URL, DATA_MD5, "wmt16")
