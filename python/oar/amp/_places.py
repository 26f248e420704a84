"""Where a call is in the user's program: the layer whose ``forward`` runs, as a path from the network, and the line."""

from __future__ import annotations

import os
import sys
import types
from typing import NamedTuple

import oar
from oar import _C

__all__ = ["Place", "current_place"]

_PACKAGE = os.path.dirname(os.path.abspath(oar.__file__)) + os.sep


class Place(NamedTuple):
    """A path such as ``net.blocks.1.fc``, empty outside of layers, and a line such as ``train.py:12``."""

    layer: str
    line: str

    def describe(self) -> str:
        """Both, for a message."""
        parts = [f"in the layer {self.layer}" if self.layer else "", f"called at {self.line}" if self.line else ""]
        return ", ".join(part for part in parts if part)


def current_place() -> Place:
    """The layer and the line that run now."""
    line = ""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not line:
        if _is_users(frame.f_code.co_filename):
            line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return Place(_C.current_layer(), line)


def _is_users(file: str) -> bool:
    return not file.startswith((_PACKAGE, "<frozen")) and os.sep + "oar" + os.sep + "amp" not in file
