"""The role of this process: a worker of how many, read from what a launcher set or given by the user."""

from __future__ import annotations

import os
from typing import Any

from oar.distributed.environment import ParallelEnv

__all__ = ["PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedRoleMaker"]


class Role:
    """What a process does.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.Role.WORKER, fleet.Role.SERVER
        (1, 2)
    """

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4
    COORDINATOR = 5


class RoleMakerBase:
    """The role of this process, and the places of all. ``worker_endpoints`` and ``server_endpoints`` are lists of ``host:port``.

    Examples:
        >>> from oar.distributed.fleet import PaddleCloudRoleMaker
        >>> from oar.distributed.fleet.base.role_maker import RoleMakerBase
        >>> isinstance(PaddleCloudRoleMaker(is_collective=True), RoleMakerBase)
        True
    """

    def __init__(self) -> None:
        self._is_collective = False
        self._role: int = Role.WORKER
        self._current_id = 0
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._workers = 1

    def _generate_role(self) -> None:
        """Reads what has not been read yet; called when fleet starts."""

    def _is_worker(self) -> bool:
        return self._role == Role.WORKER

    def _is_server(self) -> bool:
        return self._role == Role.SERVER

    def _is_coordinator(self) -> bool:
        return self._role == Role.COORDINATOR

    def _is_first_worker(self) -> bool:
        return self._is_worker() and self._current_id == 0

    def _is_non_distributed(self) -> bool:
        return self._worker_num() == 1 and not self._server_endpoints

    def _worker_index(self) -> int:
        return self._current_id

    def _server_index(self) -> int:
        return self._current_id

    def _role_id(self) -> int:
        return self._current_id

    def _worker_num(self) -> int:
        return max(self._workers, 1)

    def _server_num(self) -> int:
        return len(self._server_endpoints)

    def _node_num(self) -> int:
        return max(len({endpoint.split(":")[0] for endpoint in self._worker_endpoints}), 1)

    def _get_trainer_endpoints(self) -> list[str]:
        return self._worker_endpoints

    def _get_pserver_endpoints(self) -> list[str]:
        return self._server_endpoints

    def to_string(self) -> str:
        """The role as text."""
        return (f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
                f"server_endpoints: {self._server_endpoints}")


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that a launcher set in environment variables; without one, the only worker.

    Args:
        is_collective: whether there are workers only, without servers of parameters.
        kwargs: accepted for compatibility.

    Examples:
        >>> from oar.distributed import fleet
        >>> role = fleet.PaddleCloudRoleMaker(is_collective=True)
        >>> role._worker_num(), role._is_first_worker()
        (1, True)
    """

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        super().__init__()
        self._is_collective = is_collective
        self._kwargs = kwargs

    def _generate_role(self) -> None:
        env = ParallelEnv()
        self._current_id = env.rank
        self._worker_endpoints = env.trainer_endpoints
        self._workers = env.world_size
        if not self._is_collective:
            servers = os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "")
            self._server_endpoints = [endpoint for endpoint in servers.split(",") if endpoint]
            self._role = Role.SERVER if os.environ.get("TRAINING_ROLE", "TRAINER") == "PSERVER" else Role.WORKER


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """A role that the user gives.

    Args:
        is_collective: whether there are workers only, without servers of parameters.
        init_gloo: accepted for compatibility.
        kwargs: ``current_id``, ``role``, ``worker_num``, ``worker_endpoints``, ``server_endpoints``.

    Examples:
        >>> from oar.distributed import fleet
        >>> role = fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_endpoints=["127.0.0.1:6003"])
        >>> role._worker_num()
        1
    """

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs: Any) -> None:
        super().__init__(is_collective, **kwargs)
        self._current_id = kwargs.get("current_id", 0)
        self._role = kwargs.get("role", Role.WORKER)
        self._worker_endpoints = list(kwargs.get("worker_endpoints") or [])
        self._server_endpoints = list(kwargs.get("server_endpoints") or [])
        self._workers = kwargs.get("worker_num", 0) or len(self._worker_endpoints)

    def _generate_role(self) -> None:
        """Nothing: the user has given all."""
