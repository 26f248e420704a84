"""The log of training in several processes."""

from __future__ import annotations

import logging
import sys

__all__ = ["check_memory_usage", "get_log_level_code", "get_log_level_name", "logger", "set_log_level"]

logger = logging.getLogger("oar.distributed.fleet")
if not logger.handlers:
    _handler = logging.StreamHandler(sys.stderr)
    _handler.setFormatter(logging.Formatter("%(levelname)s %(asctime)s %(filename)s:%(lineno)d] %(message)s"))
    logger.addHandler(_handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def set_log_level(level: int | str) -> None:
    """Sets what is logged.

    Args:
        level: a name or a number of ``logging``, such as ``'INFO'`` or 20.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.set_log_level("INFO")
    """
    if isinstance(level, bool) or not isinstance(level, (int, str)):
        raise TypeError(f"[set_log_level] level must be a name or a number, not {type(level).__name__}.")
    logger.setLevel(level.upper() if isinstance(level, str) else level)


def get_log_level_code() -> int:
    """The number of what is logged.

    Returns:
        an integer.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.set_log_level("INFO")
        >>> fleet.get_log_level_code()
        20
    """
    return logger.getEffectiveLevel()


def get_log_level_name() -> str:
    """The name of what is logged.

    Returns:
        a string.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.set_log_level("INFO")
        >>> fleet.get_log_level_name()
        'INFO'
    """
    return logging.getLevelName(get_log_level_code())


def check_memory_usage(msg: str = "") -> None:
    """Logs how much memory this process uses.

    Args:
        msg: what to say with it.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.check_memory_usage("before training")
    """
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    logger.info("memory %s: at most %.2f GB so far", msg, peak)
