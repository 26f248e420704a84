"""Timers with a name each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from oar.distributed.fleet.utils.log_util import logger

__all__ = ["Timers", "get_timers", "is_timer_initialized", "set_timers"]

_timers: list[Timers] = []


class _Timer:
    """Adds up the seconds between ``start`` and ``stop``."""

    def __init__(self, name: str) -> None:
        self.name, self.elapsed_, self._begin = name, 0.0, None  # type: str, float, float | None

    def start(self) -> None:
        """Starts counting."""
        if self._begin is not None:
            raise RuntimeError(f"[Timers] timer '{self.name}' runs already. hint: stop it first.")
        self._begin = time.perf_counter()

    def stop(self) -> None:
        """Stops counting."""
        if self._begin is None:
            raise RuntimeError(f"[Timers] timer '{self.name}' does not run. hint: start it first.")
        self.elapsed_ += time.perf_counter() - self._begin
        self._begin = None

    def reset(self) -> None:
        """Forgets what was counted."""
        self.elapsed_, self._begin = 0.0, None

    def elapsed(self, reset: bool = True) -> float:
        """The seconds so far; ``reset`` starts again from 0."""
        running = self._begin is not None
        if running:
            self.stop()
        seconds = self.elapsed_
        if reset:
            self.reset()
        if running:
            self.start()
        return seconds


class Timers:
    """Timers with a name each.

    Examples:
        >>> from oar.distributed.fleet.utils.timer_helper import Timers
        >>> timers = Timers()
        >>> timers("forward").start()
        >>> timers("forward").stop()
        >>> timers("forward").elapsed() >= 0
        True
    """

    def __init__(self) -> None:
        self.timers: dict[str, _Timer] = {}

    def __call__(self, name: str) -> _Timer:
        return self.timers.setdefault(name, _Timer(name))

    def log(self, names: Sequence[str], normalizer: float = 1.0, reset: bool = True) -> None:
        """Logs the milliseconds of some timers.

        Args:
            names: their names.
            normalizer: what the times are divided by.
            reset: whether to start again from 0.
        """
        times = [f"{name}: {self.timers[name].elapsed(reset) * 1000 / normalizer:.2f}" for name in names]
        logger.info("time (ms) | %s", " | ".join(times))


def is_timer_initialized() -> bool:
    """Whether ``set_timers`` was called.

    Returns:
        a bool.

    Examples:
        >>> from oar.distributed.fleet.utils import timer_helper
        >>> isinstance(timer_helper.is_timer_initialized(), bool)
        True
    """
    return bool(_timers)


def set_timers() -> None:
    """Makes the timers of this program.

    Examples:
        >>> from oar.distributed.fleet.utils import timer_helper
        >>> timer_helper.set_timers()
        >>> timer_helper.is_timer_initialized()
        True
    """
    if not _timers:
        _timers.append(Timers())


def get_timers() -> Timers:
    """The timers of this program.

    Returns:
        ``Timers``.

    Examples:
        >>> from oar.distributed.fleet.utils import timer_helper
        >>> timer_helper.set_timers()
        >>> timer_helper.get_timers() is timer_helper.get_timers()
        True
    """
    if not _timers:
        raise RuntimeError("[get_timers] there are no timers. hint: call set_timers() first.")
    return _timers[0]
