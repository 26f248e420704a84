"""House prices in Boston, as readers. ``oar.text.UCIHousing`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oar.dataset.common import found_or_fetched
from oar.text.datasets.uci_housing import MD5, URL, feature_names, read_houses

__all__ = ["feature_names", "fetch", "predict_reader", "test", "train"]


def _reader(mode: str) -> Callable[[], Iterator[Any]]:
    rows = read_houses(fetch(), mode)
    return lambda: ((row[:-1], row[-1:]) for row in rows)


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the rows for training: 13 features and the price.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("train")


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the rows for testing.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return _reader("test")


def predict_reader() -> tuple[Any]:
    """The features of the first row for testing.

    Returns:
        a tuple of one array.
    """
    return (read_houses(fetch(), "test")[0][:-1],)


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("uci_housing", "data_file", None, URL, MD5, "uci_housing")
