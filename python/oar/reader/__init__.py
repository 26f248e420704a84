"""Readers: functions without arguments that return an iterator over samples, and what combines them."""

from oar.reader import decorator
from oar.reader.decorator import (
    ComposeNotAligned, buffered, cache, chain, compose, firstn, map_readers, multiprocess_reader, shuffle, xmap_readers)

__all__ = ["ComposeNotAligned", "buffered", "cache", "chain", "compose", "decorator", "firstn", "map_readers",
           "multiprocess_reader", "shuffle", "xmap_readers"]  # fmt: skip
