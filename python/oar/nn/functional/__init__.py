"""Functions of networks: activations, convolutions, pooling, normalisation, losses.

Nearly all of them are ops of the core and come from the op registry: when ``oar`` is imported it attaches
each op whose record names this module (``attach``). What stands here in Python is only what is no op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oar.nn.functional.vision import fold, interpolate, pad, unfold, upsample, zeropad2d
from oar.nn.functional.window import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, conv2d, max_pool2d

__all__: list[str] = [
    "adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d", "conv2d", "fold", "interpolate", "max_pool2d", "pad",
    "unfold", "upsample", "zeropad2d"]


def attach(functions: Mapping[str, Callable]) -> None:
    """Add functions to this module. A name that Python code here defines already is left alone."""
    names = globals()
    for name, function in functions.items():
        if name not in names:
            names[name] = function
            __all__.append(name)
