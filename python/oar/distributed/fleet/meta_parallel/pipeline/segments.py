"""Where a list of layers is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["boundaries"]


def boundaries(layers: list[Any], pieces: int, method: Any, counts: Callable[[], list[int]] | None) -> list[int]:
    """The numbers of the first layers of the pieces, and that after the last layer.

    Args:
        layers: the layers or their descriptions.
        pieces: how many pieces.
        method: see ``PipelineLayer``.
        counts: tells the numbers of parameters.
    """
    if len(layers) < pieces:
        raise ValueError(f"[PipelineLayer] {len(layers)} layers cannot be cut into {pieces} pieces. hint: use fewer stages, or "
                         "fewer virtual stages.")
    if isinstance(method, (list, tuple)):
        return _given(list(method), pieces, len(layers))
    if method == "uniform":
        return _uniform(len(layers), pieces)
    if method == "parameters":
        assert counts is not None
        return _least_largest(counts(), pieces)
    if isinstance(method, str) and method.startswith("layer:"):
        return _by_class(layers, pieces, method.removeprefix("layer:"))
    raise ValueError(f"[PipelineLayer] seg_method is {method!r}, but it must be 'uniform', 'layer:' and the name of a class, 'parameters', or "
                     "a list of numbers.")


def _given(begins: list[int], pieces: int, count: int) -> list[int]:
    result = begins if begins and begins[-1] == count else [*begins, count]
    if len(result) != pieces + 1 or result[0] != 0 or any(a >= b for a, b in zip(result, result[1:])):
        raise ValueError(f"[PipelineLayer] seg_method is {begins}, but it must have the numbers of the first layers of {pieces} pieces, "
                         f"from 0 on, rising, below {count}.")
    return result


def _uniform(count: int, pieces: int) -> list[int]:
    """The last pieces have one layer more, if need be."""
    size, more = divmod(count, pieces)
    result = [0]
    for piece in range(pieces):
        result.append(result[-1] + size + (piece >= pieces - more))
    return result


def _name_of(layer: Any) -> str:
    kind = getattr(layer, "layer_func", None) or type(layer)
    return kind.__name__


def _by_class(layers: list[Any], pieces: int, name: str) -> list[int]:
    """A piece ends with its last layer of the class; what follows belongs to the next one."""
    places = [index for index, layer in enumerate(layers) if re.search(name, _name_of(layer), re.IGNORECASE)]
    if not places or len(places) % pieces:
        raise ValueError(f"[PipelineLayer] seg_method is 'layer:{name}': {len(places)} layers match, which {pieces} pieces do not divide.")
    each = len(places) // pieces
    return [0, *(places[piece * each - 1] + 1 for piece in range(1, pieces)), len(layers)]


def _least_largest(counts: list[int], pieces: int) -> list[int]:
    """Pieces whose largest sum is as small as possible."""
    total = [0]
    for count in counts:
        total.append(total[-1] + count)
    least: list[tuple[int, list[int]]] = [(total[end], [0, end]) for end in range(len(counts) + 1)]
    for piece in range(2, pieces + 1):
        least = [min(((max(least[cut][0], total[end] - total[cut]), [*least[cut][1], end]) for cut in range(piece - 1, end)),
                     default=(total[-1] + 1, [])) for end in range(len(counts) + 1)]
    return least[-1][1]
