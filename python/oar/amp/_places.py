"""Where a call is in the user's program: the layer whose ``forward`` runs, as a path from the network, and the line."""

from __future__ import annotations

import os
import sys
import types
from typing import Any, NamedTuple

import oar

__all__ = ["Place", "current_place"]

_PACKAGE = os.path.dirname(os.path.abspath(oar.__file__)) + os.sep


class Place(NamedTuple):
    """A path such as ``net.blocks.1.fc``, empty outside of layers, and a line such as ``train.py:12``."""

    layer: str
    line: str

    def describe(self) -> str:
        """Both, for a message."""
        parts = [f"in layer {self.layer}" if self.layer else "", f"called at {self.line}" if self.line else ""]
        return ", ".join(part for part in parts if part)


def current_place() -> Place:
    """The layer and the line that run now."""
    layers: list[tuple[Any, types.FrameType]] = []
    line = ""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not line and _is_users(code.co_filename):
            line = f"{code.co_filename}:{frame.f_lineno}"
        owner = _layer_of(frame)
        if owner is not None:
            layers.append((owner, frame))
        frame = frame.f_back
    return Place(_path(layers), line)


def _is_users(file: str) -> bool:
    return not file.startswith((_PACKAGE, "<frozen")) and os.sep + "oar" + os.sep + "amp" not in file


def _layer_of(frame: types.FrameType) -> Any:
    code = frame.f_code
    if not code.co_argcount or code.co_varnames[0] != "self":
        return None
    owner = frame.f_locals.get("self")
    return owner if isinstance(owner, oar.nn.Layer) else None


def _path(layers: list[tuple[Any, types.FrameType]]) -> str:
    """The path of the innermost layer from the outermost one that it is a part of."""
    if not layers:
        return ""
    inner = layers[0][0]
    for root, frame in reversed(layers):
        for name, layer in root.named_sublayers(include_self=True):
            if layer is inner:
                return ".".join(part for part in (_name_of(root, frame), name) if part)
    return type(inner).__name__


def _name_of(root: Any, frame: types.FrameType) -> str:
    """What the code that calls the network calls it; the name of its class if that cannot be told."""
    outside = frame.f_back
    while outside is not None:
        for names in (outside.f_locals, outside.f_globals):
            for name, value in list(names.items()):
                if value is root and name != "self" and not name.startswith("_"):
                    return name
        owner = outside.f_locals.get("self")
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            if value is root:
                return name.lstrip("_") or name
        outside = outside.f_back
    return type(root).__name__
