"""Which Python frames are the user's: messages and tracebacks speak of those."""

from __future__ import annotations

import traceback
import types

from oar._C import is_users_file

__all__ = ["is_users_file", "last_users_frame"]


def last_users_frame(trace: types.TracebackType | None) -> traceback.FrameSummary | None:
    """The innermost line of the user's code that an error passed through."""
    frames = [frame for frame in traceback.extract_tb(trace) if is_users_file(frame.filename)]
    return frames[-1] if frames else None
