"""``oar.framework.core`` under its other path."""

from oar.framework.core import *  # noqa: F403
from oar.framework.core import __all__ as __all__
