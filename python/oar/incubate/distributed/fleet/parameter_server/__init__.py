"""Servers of parameters: which server keeps which parameter. Servers themselves are not available yet."""

from oar.incubate.distributed.fleet.parameter_server import ir

__all__ = ["ir"]
