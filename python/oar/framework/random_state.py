"""The random numbers of a process: Oar's, NumPy's and Python's."""

from __future__ import annotations

import random
from typing import Any

from oar import _C
from oar._lazy import np

__all__ = ["get_random_states", "set_random_states"]


def get_random_states() -> dict[str, Any]:
    """Where the streams of Oar, NumPy and Python are, as numbers and arrays that ``save`` takes.

    Examples:
        >>> import random
        >>> from oar.framework.random_state import get_random_states, set_random_states
        >>> states = get_random_states()
        >>> first = random.random()
        >>> set_random_states(states)
        >>> random.random() == first
        True
    """
    version, words, gauss = random.getstate()
    name, key, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "oar": [int(word) for word in _C.rng_state()],
        "numpy": [str(name), np.asarray(key, np.uint32), int(position), int(has_gauss), float(cached)],
        "python": [version, np.asarray(words, np.uint32), gauss],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Goes back to places that ``get_random_states`` returned.

    Args:
        states: what it returned.
    """
    _C.set_rng_state(*(int(word) for word in states["oar"]))
    name, key, position, has_gauss, cached = states["numpy"]
    np.random.set_state((name, _words(key), int(position), int(has_gauss), float(cached)))
    version, words, gauss = states["python"]
    random.setstate((int(version), tuple(int(word) for word in _words(words)), gauss))


def _words(value: Any) -> Any:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value).astype(np.uint32)
