"""Which layer of a network runs: a path such as ``net.blocks.1.fc``.

A stack of layers is kept for each thread, only while something watches: a profiler, a checker of values, anomaly mode, a
capture. Otherwise a call of a layer pays one test of a global variable. The native library is told the path, for the events of
a profile, for errors, and for the calls that are recorded on the tape: their backward belongs to the same layer.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oar import _C

__all__ = ["current", "enter", "follow_flags", "inside", "inside_method", "is_reader", "is_watching", "leave", "unwatch", "watch", "watched",
           "watched_globals"]  # fmt: skip

_WORD_START = re.compile("(.)([A-Z][a-z]+)")
_CAMEL = re.compile("([a-z0-9])([A-Z])")

# Namespaces of modules that test `_watched`. A global of their own is the cheapest test there is.
_readers: list[dict[str, Any]] = []
_lock = threading.Lock()
_watchers = 0


class _Stack(threading.local):
    """The layers whose ``forward`` runs in this thread, outermost first, with their paths."""

    def __init__(self) -> None:
        self.entries: list[tuple[Any, str, Any]] = []  # with when they began, if a profile runs


_stack = _Stack()
# For a layer, the names of the layers below it: {id: (weak reference, name)}. Emptied when nothing watches any more.
_names: weakref.WeakKeyDictionary[Any, dict[int, tuple[Any, str]]] = weakref.WeakKeyDictionary()


def watched_globals(namespace: dict[str, Any]) -> None:
    """Have ``_watched`` in the namespace of a module follow whether something watches."""
    namespace["_watched"] = _watchers > 0
    _readers.append(namespace)


def is_reader(namespace: dict[str, Any]) -> bool:
    """Whether ``_watched`` of this namespace is ours. A capture does not depend on its value."""
    return any(namespace is one for one in _readers)


def _tell(on: bool) -> None:
    _C.keep_layers(on)
    for namespace in _readers:
        namespace["_watched"] = on


def watch() -> None:
    """Keep the stack of layers until ``unwatch`` is called as often."""
    global _watchers
    with _lock:
        _watchers += 1
        _tell(True)


def unwatch() -> None:
    """Undo one ``watch``."""
    global _watchers
    with _lock:
        if _watchers == 0:
            raise RuntimeError("[nn._path.unwatch] nothing watches layers. Call watch() first.")
        _watchers -= 1
        if _watchers == 0:
            _tell(False)
            _names.clear()


@contextmanager
def watched() -> Iterator[None]:
    """Keep the stack of layers inside a ``with``.

    Examples:
        >>> import oar
        >>> from oar.nn import _path
        >>> class Net(oar.nn.Layer):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.blocks = oar.nn.LayerList([oar.nn.ReLU(), oar.nn.ReLU()])
        ...         self.blocks[1].register_forward_post_hook(lambda *_: print(_path.current()))
        ...     def forward(self, x):
        ...         return self.blocks[1](self.blocks[0](x))
        ...
        >>> with _path.watched():
        ...     _ = Net()(oar.ones([2]))
        ...
        net.blocks.1
    """
    watch()
    try:
        yield
    finally:
        unwatch()


def is_watching() -> bool:
    """Whether the stack is kept."""
    return _watchers > 0


def current() -> str:
    """The path of the layer that runs in this thread; empty outside of layers, and while nothing watches."""
    entries = _stack.entries
    return entries[-1][1] if entries else ""


def _own_name(layer: Any) -> str:
    return _CAMEL.sub(r"\1_\2", _WORD_START.sub(r"\1_\2", type(layer).__name__)).lower()


def _name_below(parent: Any, layer: Any) -> str | None:
    """The name of a layer in the layer that calls it; None if it is not a part of it."""
    found = _names.get(parent, {}).get(id(layer))
    if found is None or found[0]() is not layer:  # not known yet, or layers were added since
        names = {id(one): (weakref.ref(one), name) for name, one in parent.named_sublayers()}
        _names[parent] = names
        found = names.get(id(layer))
    return found[1] if found is not None else None


def enter(layer: Any) -> None:
    """Note that the forward of ``layer`` begins in this thread."""
    entries = _stack.entries
    path = _path_below(entries, layer)
    entries.append((layer, path, _C.enter_layer(path)))


def _path_below(entries: list[tuple[Any, str, Any]], layer: Any) -> str:
    for parent, path, _ in reversed(entries):
        if parent is layer:
            return path  # one of its other methods calls it
        name = _name_below(parent, layer)
        if name is not None:
            return f"{path}.{name}"
    own = _own_name(layer)
    return f"{entries[-1][1]}.{own}" if entries else own


def leave() -> None:
    """Note that the forward that began last ends."""
    entries = _stack.entries
    _, _, begun = entries.pop()
    _C.leave_layer(entries[-1][1] if entries else "", begun)


@contextmanager
def inside(layer: Any) -> Iterator[None]:
    """The time during which the forward of ``layer`` runs."""
    enter(layer)
    try:
        yield
    finally:
        leave()


@contextmanager
def inside_method(function: Any) -> Iterator[None]:
    """As ``inside``, for the layer that ``function`` is a method of, if it is one and is not running already."""
    owner = getattr(function, "__self__", None)
    entries = _stack.entries
    if not hasattr(owner, "named_sublayers") or (entries and entries[-1][0] is owner):
        yield
        return
    with inside(owner):
        yield


_flag_watches = False


def follow_flags() -> None:
    """Watch while the flag ``check_nan_inf`` is on: its errors name the layer."""
    global _flag_watches
    wanted = bool(_C.get_flag("check_nan_inf"))
    if wanted != _flag_watches:
        _flag_watches = wanted
        watch() if wanted else unwatch()


follow_flags()  # it may be set by the environment
