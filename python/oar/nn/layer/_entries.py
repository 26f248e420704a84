"""The ordered dictionaries in which a ``Layer`` keeps its parameters, buffers and sublayers.

Every entry is also put into the layer's instance dictionary, so that ``self.weight`` is an ordinary
attribute lookup of a few nanoseconds and not a call of ``__getattr__``. Code that edits one of them
directly (``layer._parameters['weight'] = p``) stays right, because it passes each edit on.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

__all__ = ["LayerEntries"]


class LayerEntries(OrderedDict):
    """An ordered dictionary that mirrors its entries into the ``__dict__`` of the layer owning it."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any, items: Any = ()) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        for key, value in dict(items).items():
            self[key] = value

    def _mirror(self) -> dict[str, Any]:
        owner = self._owner()
        return {} if owner is None else owner.__dict__

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._mirror()[key] = value

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._mirror().pop(key, None)

    def clear(self) -> None:
        mirror = self._mirror()
        for key in self:
            mirror.pop(key, None)
        super().clear()

    def pop(self, key: str, *default: Any) -> Any:
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        key, value = super().popitem(last)
        self._mirror().pop(key, None)
        return key, value

    def copy(self) -> OrderedDict:  # type: ignore[override]
        return OrderedDict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # The copy of a layer builds its own registries from these plain dictionaries.
        return OrderedDict, (), None, None, iter(self.items())
