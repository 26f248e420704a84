"""Which server keeps which parameter."""

from oar.incubate.distributed.fleet.parameter_server.ir import ps_dispatcher

__all__ = ["ps_dispatcher"]
