"""How many processes stand along each axis of the grid."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["AXES", "sizes_of_grid"]

AXES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "sep": "sep", "mp": "model"}  # by the names in hybrid_configs


def sizes_of_grid(settings: dict[str, Any], processes: int) -> dict[str, int]:
    """The size of each axis, in the order of the axes. A degree of -1 takes what the others leave."""
    order = list(settings["order"])
    unknown = [short for short in order if short not in AXES]
    if unknown or len(set(order)) != len(order):
        raise ValueError(f"[fleet.init] order of hybrid_configs is {order}. hint: name each of {', '.join(AXES)} once.")
    degrees = {short: settings[f"{short}_degree"] for short in AXES}
    for short, degree in degrees.items():
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < -1:
            raise ValueError(f"[fleet.init] {short}_degree of hybrid_configs is {degree!r}. hint: pass a number of processes, or -1 for "
                             "what the others leave.")
        if short not in order and degree not in (-1, 0, 1):
            raise ValueError(f"[fleet.init] {short}_degree of hybrid_configs is {degree}, but order, {order}, does not have {short}.")
    known = math.prod(max(degree, 1) for degree in degrees.values())
    left_open = [short for short in order if degrees[short] == -1]
    sizes = {short: max(degrees[short], 1) for short in order}
    if left_open and processes % known == 0:
        sizes[left_open[0]] = processes // known
    if math.prod(sizes.values()) != processes:
        asked = ", ".join(f"{short}_degree={degrees[short]}" for short in order)
        wanted = f"a multiple of {known}" if left_open else str(known)
        raise ValueError(f"[fleet.init] hybrid_configs has {asked}, which needs {wanted} processes, but there "
                         f"{'is 1' if processes == 1 else f'are {processes}'}. hint: the product of the degrees must be the number of "
                         "processes; dp_degree=-1 takes what the others leave.")
    return sizes
