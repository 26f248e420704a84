"""The class of what ``iter(loader)`` returns."""

from oar.io.reader import BatchIterator as _DataLoaderIterBase

__all__ = ["_DataLoaderIterBase"]
