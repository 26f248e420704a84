"""Which tenth of the ops the slowest tests take: another one each day, all of them with OAR_TEST_MODE=full."""

from __future__ import annotations

import os
import time

PARTS = 10


def choose() -> int | None:
    """The part of this run, None for all. OAR_TEST_ROTATION=0 to 9 repeats a run; else the day (UTC) chooses."""
    if os.environ.get("OAR_TEST_MODE") == "full":
        return None
    given = os.environ.get("OAR_TEST_ROTATION")
    if given is None:
        return int(time.time() // 86400) % PARTS
    if given not in {str(part) for part in range(PARTS)}:
        raise ValueError(f"OAR_TEST_ROTATION is '{given}'; it can be 0 to {PARTS - 1}")
    return int(given)


def this_tenth(records: list) -> list:
    part = choose()
    return records if part is None else records[part::PARTS]


def told() -> str:
    part = choose()
    if part is None:
        return "third-order derivatives: of every op"
    return f"third-order derivatives: part {part} of {PARTS}; OAR_TEST_ROTATION={part} repeats it"
