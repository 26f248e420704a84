"""Small helpers: unique names, extensions."""

from oar.framework import unique_name
from oar.utils.register_op import register_op

__all__ = ["register_op", "unique_name"]
