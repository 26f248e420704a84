"""Programs that turn lines of text into samples of several slots, one line each: the count of a slot's values, then the values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Sample = Any  # a list or tuple of (name, values)


class DataGenerator:
    """Reads lines, and writes the samples that ``generate_sample`` makes of them.

    Examples:
        >>> from oar.distributed import fleet
        >>> class Words(fleet.MultiSlotDataGenerator):
        ...     def generate_sample(self, line):
        ...         def samples():
        ...             yield [("words", [1, 2, 3]), ("label", [0])]
        ...         return samples
        >>> words = Words()
        >>> words.set_batch(1)
        >>> words.run_from_memory()
        3 1 2 3 1 0
    """

    def __init__(self) -> None:
        self.batch_size_ = 32
        self._kinds: list[tuple[str, str]] = []

    def set_batch(self, batch_size: int) -> None:
        """Sets how many samples ``generate_batch`` gets at once."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Callable[[], Iterable[Sample]]:
        """Makes samples of a line. A subclass defines it.

        Args:
            line: the line; None for ``run_from_memory``.

        Returns:
            a function that yields samples: lists of pairs, a name and a list of values.
        """
        raise NotImplementedError("[generate_sample] a subclass must define it, and return a function that yields lists of "
                                  "(name, values).")

    def generate_batch(self, samples: list[Sample]) -> Callable[[], Iterable[Sample]]:
        """Changes samples of a batch. By default they stay as they are.

        Args:
            samples: the samples.

        Returns:
            a function that yields samples.
        """
        return lambda: iter(samples)

    def run_from_memory(self) -> None:
        """Writes the samples of ``generate_sample(None)``."""
        self._write(self.generate_sample(None)())

    def run_from_stdin(self) -> None:
        """Writes the samples of the lines that come in."""
        self._write(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def _write(self, samples: Iterable[Sample]) -> None:
        for batch in self._batches(sample for sample in samples if sample is not None):
            for sample in self.generate_batch(batch)():
                sys.stdout.write(self._gen_str(sample))

    def _batches(self, samples: Iterable[Sample]) -> Iterator[list[Sample]]:
        batch: list[Sample] = []
        for sample in samples:
            batch.append(sample)
            if len(batch) == self.batch_size_:
                yield batch
                batch = []
        if batch:
            yield batch

    def _gen_str(self, line: Sample) -> str:
        """A sample as a line."""
        raise NotImplementedError("[DataGenerator] use MultiSlotDataGenerator or MultiSlotStringDataGenerator.")


def _slots(line: Sample) -> list[tuple[str, list[Any]]]:
    line = list(line) if isinstance(line, zip) else line
    if not isinstance(line, (list, tuple)):
        raise ValueError(f"[generate_sample] a sample must be a list or tuple of (name, values), not {type(line).__name__}.")
    for name, values in line:
        if not isinstance(name, str) or not isinstance(values, list):
            raise ValueError(f"[generate_sample] a slot must be a name and a list, not ({name!r}, {values!r}).")
    return list(line)


class MultiSlotStringDataGenerator(DataGenerator):
    """A generator whose values are strings, written as they are.

    Examples:
        >>> from oar.distributed import fleet
        >>> class Words(fleet.MultiSlotStringDataGenerator):
        ...     def generate_sample(self, line):
        ...         return lambda: iter([[("words", ["1", "7"])]])
        >>> Words().run_from_memory()
        2 1 7
    """

    def _gen_str(self, line: Sample) -> str:
        return " ".join(" ".join([str(len(values)), *values]) for _, values in _slots(line)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """A generator whose values are numbers. Every sample has the same slots; a slot with a float stays one of floats.

    Examples:
        >>> from oar.distributed import fleet
        >>> class Words(fleet.MultiSlotDataGenerator):
        ...     def generate_sample(self, line):
        ...         return lambda: iter([[("words", [1, 7]), ("weight", [0.5])]])
        >>> Words().run_from_memory()
        2 1 7 1 0.5
    """

    def _gen_str(self, line: Sample) -> str:
        slots = _slots(line)
        names = [name for name, _ in self._kinds]
        if names and names != [name for name, _ in slots]:
            raise ValueError(f"[generate_sample] a sample has the slots {[name for name, _ in slots]}, but earlier ones had {names}.")
        kinds = [self._kind(name, values) for name, values in slots]
        before = dict(self._kinds)
        self._kinds = [(name, "float" if before.get(name) == "float" else kind) for (name, _), kind in zip(slots, kinds)]
        return " ".join(" ".join(map(str, [len(values), *values])) for _, values in slots) + "\n"

    @staticmethod
    def _kind(name: str, values: list[Any]) -> str:
        if not values:
            raise ValueError(f"[generate_sample] slot '{name}' has no values. hint: pass one that means nothing, such as 0.")
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
            raise ValueError(f"[generate_sample] values of slot '{name}' must be numbers, but are {values!r}.")
        return "float" if any(isinstance(value, float) for value in values) else "uint64"
