"""``oar.framework.core`` under the name of Paddle's native module."""

from oar.framework import core as _core
from oar.framework.core import *  # noqa: F403
from oar.framework.core import __all__ as __all__


def __getattr__(name: str):
    return getattr(_core, name)
