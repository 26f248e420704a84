"""A logger for programs that train."""

from __future__ import annotations

import logging
import os
import sys

__all__ = ["setup_logger"]


def setup_logger(output: str | None = None, name: str = "hapi", log_level: int = logging.INFO) -> logging.Logger:
    """A logger that writes to the standard output, and to a file.

    Args:
        output: a path that ends in ``.txt`` or ``.log``, or a folder for ``log.txt``; None writes no file. Other
            processes than the first append ``.rank`` and their number.
        name: the name of the logger.
        log_level: the least level that is written.

    Returns:
        the logger. A second call with the same name returns the same one.

    Examples:
        >>> from oar.hapi.logger import setup_logger
        >>> setup_logger(name='training').name
        'training'
    """
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(log_level)
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    handlers: list[logging.Handler] = []
    if rank == 0 and not logger.handlers:
        handlers.append(logging.StreamHandler(sys.stdout))
    if output is not None:
        path = output if output.endswith((".txt", ".log")) else os.path.join(output, "log.txt")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        handlers.append(logging.FileHandler(path + (f".rank{rank}" if rank else "")))
    for handler in handlers:
        handler.setLevel(log_level)
        handler.setFormatter(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s"))
        logger.addHandler(handler)
    return logger
