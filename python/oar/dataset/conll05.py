"""Sentences with the roles of their parts, as readers. ``oar.text.Conll05st`` is the dataset for ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oar.text.datasets.conll05 import Conll05st, load_dict, load_label_dict

__all__ = ["fetch", "get_dict", "get_embedding", "load_dict", "load_label_dict", "test"]


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The numbers of words, verbs and marks.

    Returns:
        three dictionaries.
    """
    return Conll05st().get_dict()


def get_embedding() -> str:
    """The path of the file of embeddings.

    Returns:
        a path.
    """
    return Conll05st().get_embedding()


def test() -> Callable[[], Iterator]:
    """A reader of the sentences, the only ones that are public.

    Returns:
        a function without arguments that returns an iterator over samples, nine lists of numbers.
    """
    sentences = Conll05st()
    return lambda: (tuple(field.tolist() for field in sentences[number]) for number in range(len(sentences)))


def fetch() -> None:
    """Finds or fetches the files."""
    Conll05st()
