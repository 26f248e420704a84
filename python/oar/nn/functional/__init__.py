"""Functions of networks: activations, convolutions, pooling, normalisation, losses.

Nearly all of them are ops of the core and come from the op registry: when ``oar`` is imported it attaches
each op whose record names this module (``attach``). What stands here in Python is only what is no op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oar.nn.functional import activation as _activation
from oar.nn.functional import loss as _loss
from oar.nn.functional.activation import *  # noqa: F403
from oar.nn.functional.loss import *  # noqa: F403
from oar.nn.functional.window import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, conv2d, max_pool2d

__all__: list[str] = ["adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d", "conv2d", "max_pool2d"]

__all__ += [*_activation.__all__, *_loss.__all__]


def attach(functions: Mapping[str, Callable]) -> None:
    """Add functions to this module. A name that Python code here defines already is left alone."""
    names = globals()
    for name, function in functions.items():
        if name not in names:
            names[name] = function
            __all__.append(name)
