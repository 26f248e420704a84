"""Mixed precision in programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oar.static import amp_nn

__all__ = ["amp_nn", "fp16_guard"]


@contextlib.contextmanager
def fp16_guard() -> Iterator[None]:
    """Calls inside are those that a program of pure float16 casts. Programs are as they were written otherwise, and so is
    what is inside: ``oar.amp.auto_cast`` is what casts.

    Examples:
        >>> import oar
        >>> with oar.static.amp.fp16_guard():
        ...     y = oar.ones([2]) + 1
        ...
        >>> y.dtype
        oar.float32
    """
    yield
