"""Pairs of sentences of 2014, as readers. ``oar.text.WMT14`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oar.dataset.common import found_or_fetched
from oar.text.datasets.wmt14 import MD5, URL, WMT14

__all__ = ["fetch", "gen", "get_dict", "test", "train"]


def _reader(mode: str, dict_size: int) -> Callable[[], Iterator]:
    pairs = WMT14(fetch(), mode, dict_size)
    return lambda: zip(pairs.src_ids, pairs.trg_ids, pairs.trg_ids_next)


def train(dict_size: int) -> Callable[[], Iterator]:
    """A reader of the pairs for training.

    Args:
        dict_size: how many words of the dictionaries are used.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("train", dict_size)


def test(dict_size: int) -> Callable[[], Iterator]:
    """A reader of the pairs for testing.

    Args:
        dict_size: how many words of the dictionaries are used.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("test", dict_size)


def gen(dict_size: int) -> Callable[[], Iterator]:
    """A reader of the pairs for generating.

    Args:
        dict_size: how many words of the dictionaries are used.

    Returns:
        a function without arguments that returns an iterator over samples, three lists of numbers.
    """
    return _reader("gen", dict_size)


def get_dict(dict_size: int, reverse: bool = True) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The dictionaries of source and target.

    Args:
        dict_size: how many words.
        reverse: whether they give words by number, instead of numbers by word.

    Returns:
        two dictionaries.
    """
    return WMT14(fetch(), "test", dict_size).get_dict(reverse)


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("wmt14", "wmt14.tgz", None, URL, MD5, "wmt14")
