"""The part of fleet that is for jobs with servers of parameters."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oar.distributed.ps.runtime import Runtime

__all__ = ["ServerCalls"]


class ServerCalls:
    """Starts servers, connects workers with them, and saves what they hold. Without servers the calls do nothing."""

    _servers: Runtime | None = None
    _server_optimizer: Any = None
    _role_maker: Any
    _is_collective: bool
    _user_defined_strategy: Any
    user_defined_optimizer: Any

    def _begin_servers(self) -> None:
        """After the role is known: what this process does with the servers, if there are any."""
        from oar.distributed.ps.runtime import Runtime

        there = not self._is_collective and self._role_maker._server_num() > 0
        self._servers = Runtime(self._role_maker, self._user_defined_strategy) if there else None
        self._server_optimizer = None

    def _servers_of(self, function: str) -> Runtime:
        """What knows the servers; an error if there are none."""
        if self._servers is None:
            raise RuntimeError(f"[{function}] this job has no servers of parameters. hint: start it with python -m "
                               "oar.distributed.launch --server_num 2 --worker_num 2 script.py, and call fleet.init() first.")
        return self._servers

    def _train_with_servers(self, optimizer: Any, strategy: Any) -> Any:
        from oar.distributed.ps.optimizer import ServerOptimizer

        servers = self._servers_of("distributed_optimizer")
        self.user_defined_optimizer = servers.optimizer = optimizer
        if strategy is not None:
            self._user_defined_strategy = servers.strategy = copy.deepcopy(strategy)
        self._server_optimizer = ServerOptimizer(optimizer, servers)
        return self._server_optimizer

    def init_server(self, dirname: str | None = None, var_names: Any = None, **kwargs: Any) -> None:
        """Prepares a server. Call ``run_server`` afterwards.

        Args:
            dirname: a folder that ``save_persistables`` wrote: the server begins with these tables. A server that comes back after a
                failure begins with its own state instead.
            var_names: accepted for compatibility; all tables are read.
            kwargs: accepted for compatibility.

        Examples:
            >>> from oar.distributed import fleet
            >>> def serve():
            ...     fleet.init_server()
            ...     fleet.run_server()
            ...
        """
        self._servers_of("init_server").init_server(dirname)

    def run_server(self) -> None:
        """Serves until all workers have called ``stop_worker``.

        Examples:
            >>> from oar.distributed import fleet
            >>> def main():
            ...     fleet.init(fleet.PaddleCloudRoleMaker())
            ...     if fleet.is_server():
            ...         fleet.init_server()
            ...         fleet.run_server()
            ...
        """
        self._servers_of("run_server").run_server()

    def init_worker(self, scopes: Any = None) -> None:
        """Connects a worker with the servers. If ``distributed_optimizer`` was called before, the parameters of its network get the values
        that all workers begin with. Nothing to do without servers.

        Args:
            scopes: accepted for compatibility.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.init_worker()
        """
        if self._servers is None:
            return
        _ = self._servers.client
        if self._server_optimizer is not None and self._server_optimizer._flat:
            self._server_optimizer.begin()

    def stop_worker(self) -> None:
        """Tells the servers that this worker has ended; they end with the last one. Nothing to do without servers.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.stop_worker()
        """
        if self._servers is not None:
            self._servers.stop()

    def save_persistables(self, executor: Any, dirname: str, main_program: Any = None, mode: int = 0) -> None:
        """Saves the tables of all servers; each writes its part. With one process, the persistable variables of the program.
        All workers call it, after the same step.

        Args:
            executor: of static programs.
            dirname: a folder. Servers on several machines need one that all share, or their parts must be gathered.
            main_program: the program; the default one when None.
            mode: 0 saves everything, 1 the rows that changed since the last save with mode 0.

        Examples:
            >>> from oar.distributed import fleet
            >>> def save_all(step):
            ...     fleet.save_persistables(None, f"tables-{step}")
            ...
        """
        if self._servers is None:
            import oar

            program = main_program if main_program is not None else oar.static.default_main_program()
            oar.static.save(program, os.path.join(dirname, "persistables"))
            return
        if mode not in (0, 1):
            raise ValueError(f"[save_persistables] mode is {mode}; 0 saves everything, 1 what has changed.")
        self._servers.save(dirname, delta=mode == 1)

    def save(self, dirname: str, feed: Any = None, fetch: Any = None, **configs: Any) -> None:
        """Saves the tables of all servers, as ``save_persistables`` does.

        Args:
            dirname: a folder.
            feed: accepted without a value: a program for inference has no rows of servers in it.
            fetch: likewise.
            configs: ``mode``, as for ``save_persistables``.

        Examples:
            >>> from oar.distributed import fleet
            >>> def save_changes():
            ...     fleet.save("tables", mode=1)
            ...
        """
        if feed or fetch:
            raise NotImplementedError("[fleet.save] a program for inference with rows of servers is not there yet. hint: leave feed and "
                                      "fetch out to save the tables; read them with fleet.load_model or init_server.")
        self.save_persistables(None, dirname, mode=int(configs.get("mode", 0)))

    def load_model(self, path: str, mode: int = 0) -> None:
        """Reads saved tables into the servers. Their number may differ from that of the job that saved. All workers call it.

        Args:
            path: the folder.
            mode: accepted for compatibility.

        Examples:
            >>> from oar.distributed import fleet
            >>> def go_on():
            ...     fleet.load_model("tables")
            ...
        """
        self._servers_of("load_model").load(path)

    def shrink(self, threshold: int | None = None) -> None:
        """Ends a period: shows and clicks decay, and rows with low scores, or not pushed for long, are removed. All workers call it.

        Args:
            threshold: accepted for compatibility; ``Score`` of a table sets the limits.

        Examples:
            >>> from oar.distributed import fleet
            >>> def end_of_day():
            ...     fleet.shrink()
            ...
        """
        self._servers_of("shrink").shrink()
