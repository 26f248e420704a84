"""Which server keeps which parameter."""

from __future__ import annotations

from typing import Any

__all__ = ["HashName", "PSDispatcher", "RoundRobin"]


class PSDispatcher:
    """Assigns variables to servers. A class that derives from it has the rule, in ``dispatch``.

    Args:
        pserver_endpoints: where the servers listen.

    Examples:
        >>> from oar.incubate.distributed.fleet.parameter_server.ir.ps_dispatcher import PSDispatcher
        >>> PSDispatcher(["127.0.0.1:6007"]).eps
        ['127.0.0.1:6007']
    """

    def __init__(self, pserver_endpoints: list[str]) -> None:
        self._eps = pserver_endpoints
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """Where the servers listen."""
        return self._eps

    def reset(self) -> None:
        """Starts again with the first server."""
        self._step = 0

    def dispatch(self, varlist: list[Any]) -> list[str]:
        """The server of each variable."""
        raise NotImplementedError("[PSDispatcher] dispatch has no rule here. hint: use HashName or RoundRobin.")


class HashName(PSDispatcher):
    """The hash of a variable's name chooses its server.

    Args:
        pserver_endpoints: where the servers listen.

    Examples:
        >>> from oar.incubate.distributed.fleet.parameter_server.ir.ps_dispatcher import HashName
        >>> HashName(["127.0.0.1:6007"]).dispatch([])
        []
    """

    def _hash_block(self, block_str: str, total: int) -> int:
        return hash(block_str) % total

    def dispatch(self, varlist: list[Any]) -> list[str]:
        """The server of each variable; a variable says its name by ``name()``."""
        return [self._eps[self._hash_block(variable.name(), len(self._eps))] for variable in varlist]


class RoundRobin(PSDispatcher):
    """Servers take turns.

    Args:
        pserver_endpoints: where the servers listen.

    Examples:
        >>> from oar.incubate.distributed.fleet.parameter_server.ir.ps_dispatcher import RoundRobin
        >>> RoundRobin(["a:1", "b:1"]).dispatch(["x", "y", "z"])
        ['a:1', 'b:1', 'a:1']
    """

    def dispatch(self, varlist: list[Any]) -> list[str]:
        """The server of each variable."""
        servers = []
        for _ in varlist:
            servers.append(self._eps[self._step])
            self._step = (self._step + 1) % len(self._eps)
        return servers
