"""``InputSpec`` and ``data`` under Paddle's inner path."""

from oar.static.input_spec import InputSpec
from oar.static.variable import data

__all__ = ["InputSpec", "data"]
