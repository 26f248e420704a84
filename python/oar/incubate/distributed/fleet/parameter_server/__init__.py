"""Servers of parameters: which server keeps which parameter. ``oar.distributed.fleet`` has the servers."""

from oar.incubate.distributed.fleet.parameter_server import ir

__all__ = ["ir"]
