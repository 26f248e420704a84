"""What capture did: counters, and the trace of ``OAR_TRACE=capture``."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from oar import _C
from oar.framework.frames import last_users_frame

__all__ = ["as_dict", "must_capture", "options", "reason_of", "say", "telling", "total"]


def as_dict(counts: Any) -> dict[str, int]:
    """Captures, and calls by how they ran: as one program, as several with Python between, as plain Python."""
    return {name: getattr(counts, name) for name in ("captures", "whole", "segments", "eager")}


class _Options:
    verbosity = 0
    code_level = 0
    enabled = True


total = _C.total_calls
options = _Options()


def telling() -> bool:
    """Whether the trace is on."""
    return options.verbosity > 0 or "capture" in _C.get_flag("trace")


def say(text: str) -> None:
    """A line of the trace, if it is on."""
    if telling():
        print(f"[capture] {text}", file=sys.stderr, flush=True)


def reason_of(error: BaseException) -> str:
    """An error in one line, with the user's line that led to it."""
    first = (str(error).strip().splitlines() or [""])[0]
    frame = last_users_frame(error.__traceback__)
    where = f" ({frame.filename}:{frame.lineno}: {frame.line})" if frame else ""
    return f"{type(error).__name__}: {first}{where}"


def must_capture() -> bool:
    """Whether falling back to Python, in segments or not, is an error."""
    return os.environ.get("OAR_TEST_MODE") == "captured"


def _print_at_exit() -> Any:
    counted = ", ".join(f"{name} {number}" for name, number in as_dict(total).items())
    print(f"[capture] {counted}", file=sys.stderr, flush=True)


if must_capture():
    atexit.register(_print_at_exit)
