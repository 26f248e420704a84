"""The line that tells how far a pass over the data is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any

__all__ = ["ProgressBar"]


class ProgressBar:
    """Prints steps, values and times: as a bar that is drawn again, or line by line.

    Args:
        num: the number of steps; None if it is unknown.
        width: the width of the bar in characters; a narrow terminal makes it shorter.
        verbose: 1 draws a bar, 2 and 3 print a line for every update, 0 prints nothing.
        start: whether time counts from now; otherwise from ``start()``.
        file: the file whose kind says whether a bar can be drawn over.
        name: what a step is called.

    Examples:
        >>> from oar.hapi.progressbar import ProgressBar
        >>> bar = ProgressBar(num=2, verbose=2)
        >>> bar.update(1, [('loss', [0.5])])  # doctest: +ELLIPSIS
        step 1/2 - loss: 0.5000 - .../step
    """

    def __init__(self, num: int | None = None, width: int = 30, verbose: int = 1, start: bool = True,
                 file: Any = sys.stdout, name: str = "step") -> None:
        if isinstance(num, int) and num <= 0:
            raise TypeError(f"[ProgressBar] num should be None or a positive integer, not {num}.")
        self._num = num
        self._width = min(width, self._get_max_width())
        self._total_width = 0
        self._verbose = verbose
        self.file = file
        self.name = name
        if start:
            self._start = time.time()
        self._last_update = 0.0
        self._dynamic_display = (
            (hasattr(file, "isatty") and file.isatty()) or "posix" in sys.modules or "ipykernel" in sys.modules
            or "PYCHARM_HOSTED" in os.environ)

    def _get_max_width(self) -> int:
        columns = shutil.get_terminal_size().columns
        columns = columns if columns > 0 else 80
        return min(int(columns * 0.6), columns - 50)

    def start(self) -> None:
        """Time counts from now."""
        self.file.flush()
        self._start = time.time()

    def update(self, current_num: int, values: Any = ()) -> None:
        """Prints the state.

        Args:
            current_num: how many steps are done.
            values: pairs of a name and a value, or a list of values, to print beside it.
        """
        each = (time.time() - self._start) / current_num if current_num else 0.0
        told = "".join(f" - {name}:{_text(value)}" for name, value in values)
        if self._verbose == 1:
            self._draw(current_num, told, each)
        elif self._verbose in (2, 3):
            sys.stdout.write(f"{self._count(current_num)}{told}{self._pace(each)}\n")
            sys.stdout.flush()

    def _count(self, current: int) -> str:
        if self._num is None:
            return f"{self.name} {current:3}"
        return f"{self.name} {current:{len(str(self._num))}d}/{self._num}"

    def _pace(self, each: float) -> str:
        if each >= 1 or each == 0:
            return f" - {each:.0f}s/{self.name}"
        if each >= 1e-3:
            return f" - {each * 1e3:.0f}ms/{self.name}"
        return f" - {each * 1e6:.0f}us/{self.name}"

    def _draw(self, current: int, told: str, each: float) -> None:
        line = self._count(current)
        done = self._num is None or current >= self._num
        if self._num is not None:
            filled = int(self._width * current / self._num)
            bar = "=" * (filled - 1) + ("=" if done else ">") if filled > 0 else ""
            line += f" [{bar}{'.' * (self._width - filled)}]"
            told += "" if done else f" - ETA: {_left(int(each * (self._num - current)))}"
        line += told + self._pace(each)
        before, self._total_width = self._total_width, len(line)
        # Spaces cover what is left of a longer line.
        line += " " * (before - self._total_width) + ("\n" if done else "")
        sys.stdout.write(("\b" * before + "\r" if self._dynamic_display else "\n") + line)
        sys.stdout.flush()
        self._last_update = time.time()


def _text(value: Any) -> str:
    """The values of a name: numbers in four digits, all else as it is."""
    import numpy as np

    text = ""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, np.ndarray) and item.size == 1 and item.dtype.kind == "f":
            item = item.item()
        if isinstance(item, (float, np.floating)):
            number = float(item)
            text += f" {number:.4f}" if abs(number) > 1e-3 else f" {number:.4e}"
        else:
            text += f" {item}"
    return text


def _left(seconds: int) -> str:
    if seconds > 3600:
        return f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    return f"{seconds // 60}:{seconds % 60:02}" if seconds > 60 else f"{seconds}s"
