"""Counts what a registry test compares, so that a test which compares nothing does not pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from registry.records import Record


class Tally:
    """What one test found out about one op.

    Failures are collected, so that one run shows every dtype and sample. `nothing` names the ops of which there is
    nothing to compare, each with the reason; an op that is on the list and is compared all the same fails too.
    """

    def __init__(self, record: Record, nothing: Mapping[str, str] = {}):  # noqa: B006  (never written)
        self.record, self.reason = record, nothing.get(record.name)
        self.compared, self.tried = 0, 0
        self.failures: list[str] = []

    @contextmanager
    def sample(self, what: str) -> Iterator[None]:
        """One sample: an error inside is a failure of the test, reported at its end."""
        self.tried += 1
        try:
            yield
        except AssertionError as error:
            self.failures.append(str(error))
        except Exception as error:  # noqa: BLE001
            self.failures.append(f"{what}: {error!r}")

    def add(self, count: int) -> None:
        """So many numbers, calls or errors were compared with what they must be."""
        self.compared += int(count)

    def close(self) -> None:
        """Fails on failures and on a test that did nothing."""
        assert not self.failures, f"{len(self.failures)} of {self.tried} failed\n" + "\n".join(self.failures[:12])
        if self.reason is None:
            assert self.compared > 0, f"{self.record.name}: nothing was compared ({self.tried} samples tried)"
        else:
            assert self.compared == 0, \
                f"{self.record.name}: listed as having nothing to compare ({self.reason}), but {self.compared} were"
