"""What a captured function found outside of its arguments, and whether it is still so.

While a function is captured, the Python functions that run are observed. The names that their code reads
(globals, variables of enclosing functions, attributes) are looked up when they begin, and what was found is written
down: simple values to be compared, containers by their content, everything else by identity.
"""

from __future__ import annotations

import marshal
import types
import zlib
from collections.abc import Iterator
from typing import Any

from oar._C import Dim
from oar.jit.structure import is_array
from oar.nn.layer._registry import layer_changes

__all__ = ["Guards"]

_SIMPLE = frozenset({int, float, str, bool, complex, bytes, type(None), type(Ellipsis)})
_CONTAINERS = (list, dict, set, frozenset, tuple)
_ABSENT: Any = type("_Absent", (), {"__repr__": lambda self: "absent"})()
_HOOKS = ("_forward_pre_hooks", "_forward_post_hooks")
_REGISTRIES = ("_parameters", "_buffers", "_sub_layers")


def is_simple(value: Any) -> bool:
    kind = type(value)
    return kind in _SIMPLE or (kind in (tuple, frozenset) and all(map(is_simple, value)))


def _plain(value: Any) -> bool:
    """Simple values in containers that can be written down as bytes."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return all(map(_plain, value))
    if kind is dict:
        return all(map(_plain, value)) and all(map(_plain, value.values()))
    return kind in _SIMPLE


def _written(value: Any) -> bytes:
    return marshal.dumps(value, 2)  # the version without back references: equal content, equal bytes


def _equal(now: Any, then: Any) -> bool:
    if now is then:
        return True
    return type(now) is type(then) and is_simple(then) and is_simple(now) and _written(now) == _written(then)


def _items(container: Any) -> tuple[Any, ...]:
    if isinstance(container, dict):
        return (*container.keys(), *container.values())
    return tuple(container)


def _describe(value: Any) -> str:
    if value is _ABSENT or is_simple(value):
        return repr(value)
    return f"{type(value).__name__} at {id(value):#x}"


class Guards:
    """A list of findings. ``changed()`` names the first that is no longer so."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []  # a mapping, a key in it, the value
        self._labels: list[str] = []
        self._layer_entries: list[tuple[Any, Any, Any, str]] = []
        self._layers: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._cells: list[tuple[types.CellType, Any, str]] = []
        self._slots: list[tuple[Any, str, Any, str]] = []
        self._contents: list[tuple[Any, tuple[Any, ...], str]] = []
        self._plain: list[tuple[Any, bytes, str]] = []
        self._live: list[Any] = []
        self._live_bytes = _written([])
        self._arrays: list[tuple[Any, int, str]] = []
        self._noted: set[Any] = set()
        self._kept: list[Any] = []  # so that no other object gets the id of one that was noted
        self._epoch = layer_changes.now

    # taking note -------------------------------------------------------------------------------

    def _first(self, *key: Any) -> bool:
        if key in self._noted:
            return False
        self._noted.add(key)
        return True

    def entry(self, mapping: Any, key: str, label: str, content: bool = True) -> Any:
        """Notes what a mapping (the globals of a module, the attributes of an object) has under a key."""
        value = mapping.get(key, _ABSENT)
        if self._first("entry", id(mapping), key):
            self._kept.append(mapping)
            self._entries.append((mapping, key, value))
            self._labels.append(label)
            if content:
                self.content(value, label)
        return value

    def layer_entry(self, layer: Any, key: str, label: str) -> Any:
        """The same for an attribute of a Layer, whose changes are counted."""
        own = layer.__dict__
        value = own.get(key, _ABSENT)
        if self._first("entry", id(own), key):
            self._layer_entries.append((own, key, value, label))
            if key not in _HOOKS + _REGISTRIES:  # what these hold is counted too
                self.content(value, label)
        return value

    def layer(self, layer: Any) -> None:
        """Notes what a Layer consists of: mode, hooks, parameters, buffers, sublayers."""
        if id(layer) not in self._layers and "_sub_layers" in layer.__dict__:
            self._layers[id(layer)] = (layer, _parts(layer))

    def cell(self, cell: types.CellType, label: str) -> Any:
        """Notes a variable of an enclosing function."""
        value = _content_of(cell)
        if self._first("cell", id(cell)):
            self._cells.append((cell, value, label))
            self.content(value, label)
        return value

    def slot(self, owner: Any, name: str, label: str) -> Any:
        """Notes an attribute that is not kept in a dictionary."""
        value = getattr(owner, name, _ABSENT)
        if self._first("slot", id(owner), name):
            self._slots.append((owner, name, value, label))
            self.content(value, label)
        return value

    def content(self, value: Any, label: str) -> None:
        """Notes what a container or an array holds."""
        if is_array(value):
            if self._first("array", id(value)):
                self._arrays.append((value, _checksum(value), label))
            return
        if not isinstance(value, _CONTAINERS) or is_simple(value) or not self._first("content", id(value)):
            return
        self._kept.append(value)
        if _plain(value):
            self._plain.append((value, _written(value), label))
            self._live.append(value)
            self._live_bytes = _written(self._live)
            return
        held = _items(value)
        self._contents.append((value, held, label))
        for item in held:
            self.content(item, f"an item of {label}")

    # looking again -----------------------------------------------------------------------------

    def changed(self) -> str | None:
        """The first finding that is no longer so, in words."""
        for i, (mapping, key, then) in enumerate(self._entries):
            now = mapping.get(key, _ABSENT)
            if now is not then and not _equal(now, then):
                return _change(self._labels[i], then, now)
        for cell, then, label in self._cells:
            now = _content_of(cell)
            if now is not then and not _equal(now, then):
                return _change(label, then, now)
        if self._live and self._live_differs():
            return next((f"the content of {label} has changed" for value, then, label in self._plain
                         if _written_or_none(value) != then), "the content of a container has changed")
        for rest in (self._slots, self._contents, self._arrays):
            if rest:
                return self._changed_rest() or self._changed_layers()
        return self._changed_layers()

    def _live_differs(self) -> bool:
        return _written_or_none(self._live) != self._live_bytes

    def _changed_rest(self) -> str | None:
        for owner, name, then, label in self._slots:
            now = getattr(owner, name, _ABSENT)
            if not _equal(now, then):
                return _change(label, then, now)
        for value, then, label in self._contents:
            now = _items(value)
            if len(now) != len(then) or not all(map(_equal, now, then)):
                return f"the content of {label} has changed"
        for array, then, label in self._arrays:
            if _checksum(array) != then:
                return f"the content of the array {label} has changed"
        return None

    def _changed_layers(self) -> str | None:
        epoch = layer_changes.now
        if epoch == self._epoch:
            return None
        for own, key, then, label in self._layer_entries:
            now = own.get(key, _ABSENT)
            if not _equal(now, then):
                return _change(label, then, now)
        for layer, then in self._layers.values():
            now = _parts(layer)
            if len(now) != len(then) or not all(map(_equal, now, then)):
                return _layer_change(layer, then, now)
        self._epoch = epoch
        return None

    # putting back ------------------------------------------------------------------------------

    def restore(self) -> None:
        """Puts simple values and containers back as they were found: the function is to run once more."""
        for mapping, key, then in self._entries:
            if not _equal(mapping.get(key, _ABSENT), then) and isinstance(mapping, dict):
                _put(mapping, key, then)
        for own, key, then, _ in self._layer_entries:
            if not _equal(own.get(key, _ABSENT), then):
                _put_into_layer(own, key, then)
        for cell, then, _ in self._cells:
            if not _equal(_content_of(cell), then) and then is not _ABSENT:
                cell.cell_contents = then
        for value, written, _ in self._plain:
            if _written_or_none(value) != written:
                _refill(value, marshal.loads(written))
        for value, held, _ in self._contents:
            now = _items(value)
            if len(now) != len(held) or not all(map(_equal, now, held)):
                _refill(value, _as_content(value, held))

    def holds_open_size(self) -> str | None:
        """The name of a place in which the function has left a size that is open."""
        for mapping, key, _ in self._entries:
            if isinstance(mapping.get(key), Dim):
                return str(key)
        return next((key for own, key, _, _ in self._layer_entries if isinstance(own.get(key), Dim)), None)

    def __iter__(self) -> Iterator[str]:
        yield from self._labels
        yield from (label for *_, label in self._layer_entries)
        yield from (label for *_, label in self._cells)


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _parts(layer: Any) -> tuple[Any, ...]:
    own = layer.__dict__
    parts: list[Any] = [own.get("training")]
    for name in _HOOKS + _REGISTRIES:
        parts.append(name)
        parts.extend(own[name].values())
    return tuple(parts)


def _layer_change(layer: Any, then: tuple, now: tuple) -> str:
    name = layer.full_name()
    if then[0] != now[0]:
        return f"{name}.training was {then[0]} and is {now[0]}"
    return f"the parameters, buffers, sublayers or hooks of {name} have changed"


def _change(label: str, then: Any, now: Any) -> str:
    return f"{label} was {_describe(then)} and is {_describe(now)}"


def _written_or_none(value: Any) -> bytes | None:
    try:
        return _written(value)
    except ValueError:  # something else than simple values is in it now
        return None


def _checksum(array: Any) -> int:
    return zlib.crc32(repr((array.shape, array.dtype.str)).encode(), zlib.crc32(array.tobytes()))


def _put(mapping: dict, key: Any, value: Any) -> None:
    if value is _ABSENT:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _put_into_layer(own: dict, key: str, value: Any) -> None:
    registry = next((own[name] for name in _REGISTRIES if key in own.get(name, ())), own)
    _put(registry, key, value)
    layer_changes.note()


def _as_content(value: Any, held: tuple[Any, ...]) -> Any:
    if isinstance(value, dict):
        half = len(held) // 2
        return dict(zip(held[:half], held[half:]))
    return held


def _refill(value: Any, content: Any) -> None:
    if isinstance(value, list):
        value[:] = content
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(content)
