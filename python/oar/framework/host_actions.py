"""What a captured function does on the host, to be done again after every run of its program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["collecting", "defer"]

_local = threading.local()


class collecting:  # noqa: N801
    """Within it, this thread's deferred actions go to a list instead of being done."""

    def __enter__(self) -> list[Callable[[], Any]]:
        self._before = getattr(_local, "actions", None)
        _local.actions = []
        return _local.actions

    def __exit__(self, *exc: Any) -> None:
        _local.actions = self._before


def defer(action: Callable[[], Any]) -> bool:
    """Records the action while a capture is running; False if the caller has to do it itself."""
    actions = getattr(_local, "actions", None)
    if actions is None:
        return False
    actions.append(action)
    return True
