"""Files between the processes; used on both sides, so it imports neither Oar nor a peer.

A file holds plain values and arrays by name. Thousands of small arrays are written and read far faster than as .npz.
"""

from __future__ import annotations

import pickle

import numpy as np


def write(path: str, content, arrays: dict[str, np.ndarray]) -> None:
    with open(path, "wb") as file:
        pickle.dump((content, {key: (a.dtype.str, a.shape, a.tobytes()) for key, a in arrays.items()}), file)


def read(path: str) -> tuple:
    """The content, and the arrays, which are read-only."""
    with open(path, "rb") as file:
        content, packed = pickle.load(file)
    return content, {key: np.frombuffer(data, dtype).reshape(shape) for key, (dtype, shape, data) in packed.items()}
