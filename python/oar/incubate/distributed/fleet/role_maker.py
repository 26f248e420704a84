"""Roles of processes under their older names: public methods, and values that the user gives are checked at once."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.base import role_maker as newer
from oar.distributed.fleet.base.role_maker import Role

__all__ = ["PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedCollectiveRoleMaker", "UserDefinedRoleMaker"]


class RoleMakerBase:
    """The role of this process, and the places of all.

    Examples:
        >>> from oar.incubate.distributed.fleet import role_maker
        >>> role_maker.RoleMakerBase().get_trainer_endpoints()
        []
    """

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role: int | None = None
        self._current_id = -1
        self._workers = 0
        self._role_is_generated = False

    def generate_role(self) -> None:
        """Reads what has not been read yet."""
        self._role_is_generated = True

    def _known_role(self) -> int:
        if not self._role_is_generated:
            self.generate_role()
        if self._role is None:
            raise NotImplementedError(f"[{type(self).__name__}] this class does not know its role. hint: use PaddleCloudRoleMaker or "
                                      "UserDefinedRoleMaker.")
        return self._role

    def is_worker(self) -> bool:
        """Whether this process trains."""
        return self._known_role() == Role.WORKER

    def is_server(self) -> bool:
        """Whether this process keeps parameters for others."""
        return self._known_role() == Role.SERVER

    def is_first_worker(self) -> bool:
        """Whether this is the worker with the number 0."""
        return self.is_worker() and self._current_id == 0

    def worker_num(self) -> int:
        """How many workers there are."""
        self._known_role()
        return self._workers

    def role_id(self) -> int:
        """The number of this process among those of its role."""
        self._known_role()
        return self._current_id

    def worker_index(self) -> int:
        """The number of this worker."""
        return self.role_id()

    def server_index(self) -> int:
        """The number of this server."""
        return self.role_id()

    def get_trainer_endpoints(self) -> list[str]:
        """Where all workers listen."""
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """Where all servers listen."""
        return self._server_endpoints

    def to_string(self) -> str:
        """The role as text."""
        return (f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
                f"server_endpoints: {self._server_endpoints}")


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that a launcher set in environment variables.

    Args:
        is_collective: whether there are workers only, without servers of parameters.

    Examples:
        >>> from oar.incubate.distributed.fleet import role_maker
        >>> role_maker.PaddleCloudRoleMaker()._is_collective
        False
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective

    def generate_role(self) -> None:
        if self._role_is_generated:
            return
        role = newer.PaddleCloudRoleMaker(is_collective=self._is_collective)
        role._generate_role()
        if role._is_non_distributed():
            raise ValueError("[PaddleCloudRoleMaker] the environment names no processes. hint: start the process with a launcher.")
        self._role, self._current_id, self._workers = role._role, role._role_id(), role._worker_num()
        self._worker_endpoints, self._server_endpoints = role._get_trainer_endpoints(), role._get_pserver_endpoints()
        self._role_is_generated = True

    def get_pserver_endpoints(self) -> list[str]:
        self._known_role()
        return self._server_endpoints


def _checked_endpoints(where: str, name: str, endpoints: Any) -> list[str]:
    if not isinstance(endpoints, list) or not all(isinstance(endpoint, str) for endpoint in endpoints):
        raise TypeError(f"[{where}] {name} must be a list of strings 'host:port', not {endpoints!r}.")
    if not endpoints or len(endpoints) != len(set(endpoints)):
        raise ValueError(f"[{where}] {name} must name at least one place, and each once, not {endpoints!r}.")
    return endpoints


def _checked_number(where: str, name: str, number: Any, least: int, limit: int | None = None) -> int:
    if not isinstance(number, int):
        raise TypeError(f"[{where}] {name} must be an integer, not {type(number).__name__}.")
    if number < least or (limit is not None and number >= limit):
        raise ValueError(f"[{where}] {name} is {number}; it must be at least {least}"
                         + (f" and less than {limit}." if limit is not None else "."))
    return number


class UserDefinedRoleMaker(RoleMakerBase):
    """A role that the user gives, with servers of parameters.

    Args:
        current_id: the number of this process among those of its role.
        role: ``Role.WORKER`` or ``Role.SERVER``.
        worker_num: how many workers there are.
        server_endpoints: where the servers listen.

    Examples:
        >>> from oar.incubate.distributed.fleet.role_maker import Role, UserDefinedRoleMaker
        >>> role = UserDefinedRoleMaker(0, Role.SERVER, 2, ["127.0.0.1:6001"])
        >>> role.is_server(), role.worker_num()
        (True, 2)
    """

    def __init__(
        self, current_id: int = 0, role: int = Role.WORKER, worker_num: int = 0, server_endpoints: list[str] | None = None
    ) -> None:
        super().__init__()
        where = "UserDefinedRoleMaker"
        self._server_endpoints = _checked_endpoints(where, "server_endpoints", server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise TypeError(f"[{where}] role must be Role.WORKER or Role.SERVER, not {role!r}.")
        self._role = role
        servers = len(self._server_endpoints)
        self._current_id = _checked_number(where, "current_id", current_id, 0, servers if role == Role.SERVER else None)
        self._workers = _checked_number(where, "worker_num", worker_num, 1)


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """A role that the user gives, among workers only.

    Args:
        current_id: the number of this worker.
        worker_endpoints: where the workers listen.

    Examples:
        >>> from oar.incubate.distributed.fleet.role_maker import UserDefinedCollectiveRoleMaker
        >>> UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6001"]).is_first_worker()
        True
    """

    def __init__(self, current_id: int = 0, worker_endpoints: list[str] | None = None) -> None:
        super().__init__()
        where = "UserDefinedCollectiveRoleMaker"
        self._worker_endpoints = _checked_endpoints(where, "worker_endpoints", worker_endpoints)
        self._workers = len(self._worker_endpoints)
        self._role = Role.WORKER
        self._current_id = _checked_number(where, "current_id", current_id, 0, self._workers)
