"""Calls run at once; what Paddle's programs say about that."""

from oar.base.dygraph import base
from oar.base.dygraph.base import disable_dygraph, enable_dygraph, enabled, grad, guard, no_grad, to_variable

__all__ = ["base", "disable_dygraph", "enable_dygraph", "enabled", "grad", "guard", "no_grad", "to_variable"]
