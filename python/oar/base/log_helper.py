"""Loggers that write to standard error."""

from __future__ import annotations

import logging

__all__ = ["get_logger"]


def get_logger(name: str, level: int | str, fmt: str | None = None) -> logging.Logger:
    """A logger of its own: what it writes does not reach others.

    Args:
        name: the name of the logger.
        level: the least level that is written.
        fmt: the format of a line; None is that of ``logging``.
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(fmt))
        logger.addHandler(handler)
    logger.propagate = False
    return logger
