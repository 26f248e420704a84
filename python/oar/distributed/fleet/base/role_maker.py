"""The role of this process: a worker of how many, read from what a launcher set or given by the user."""

from __future__ import annotations

import os
from typing import Any

from oar.distributed import _launched

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

    A class that derives from it says which role that is: the base has none.

    Examples:
        >>> from oar.distributed.fleet import PaddleCloudRoleMaker
        >>> from oar.distributed.fleet.base.role_maker import RoleMakerBase
        >>> isinstance(PaddleCloudRoleMaker(is_collective=True), RoleMakerBase)
        True
    """

    def __init__(self) -> None:
        self._is_collective = False
        self._role: int | None = None
        self._current_id = -1
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._heter_trainer_endpoints: list[str] = []
        self._heter_trainer_device = "cpu"
        self._is_heter_parameter_server_mode = False
        self._role_is_generated = False

    def _missing(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"[{type(self).__name__}] {method} is for a class that knows its role. "
                                   "hint: use PaddleCloudRoleMaker or UserDefinedRoleMaker.")

    def _generate_role(self) -> None:
        """Reads what has not been read yet; called when fleet starts, or with the first question."""
        raise self._missing("_generate_role")

    def _is_worker(self) -> bool:
        raise self._missing("_is_worker")

    def _is_server(self) -> bool:
        raise self._missing("_is_server")

    def _is_coordinator(self) -> bool:
        raise self._missing("_is_coordinator")

    def _is_first_worker(self) -> bool:
        raise self._missing("_is_first_worker")

    def _is_non_distributed(self) -> bool:
        raise self._missing("_is_non_distributed")

    def _worker_index(self) -> int:
        raise self._missing("_worker_index")

    def _server_index(self) -> int:
        raise self._missing("_server_index")

    def _role_id(self) -> int:
        raise self._missing("_role_id")

    def _worker_num(self) -> int:
        raise self._missing("_worker_num")

    def _server_num(self) -> int:
        raise self._missing("_server_num")

    def _node_num(self) -> int:
        raise self._missing("_node_num")

    def _get_trainer_endpoints(self) -> list[str]:
        return self._worker_endpoints

    def _get_pserver_endpoints(self) -> list[str]:
        return self._server_endpoints

    def _all_gather(self, input: Any, comm_world: str = "worker") -> Any:
        """None: a process without a role is in no group."""
        return None

    def _all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """None: a process without a role is in no group."""
        return None

    def _barrier(self, comm_world: str) -> None:
        """Nothing: a process without a role waits for no other."""

    def to_string(self) -> str:
        """The role as text."""
        return (f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
                f"server_endpoints: {self._server_endpoints}")


_ROLES = {"TRAINER": Role.WORKER, "PSERVER": Role.SERVER, "HETER_TRAINER": Role.HETER_WORKER, "COORDINATOR": Role.COORDINATOR}


def _listed(name: str) -> list[str]:
    return [endpoint for endpoint in os.environ.get(name, "").split(",") if endpoint]


def _required(name: str) -> str:
    """The value of an environment variable that a launcher sets."""
    if name not in os.environ:
        raise ValueError(f"[PaddleCloudRoleMaker] the environment has no {name}. hint: start the process with a launcher, or set "
                         "it yourself.")
    return os.environ[name]


def _hosts(endpoints: list[str]) -> int:
    return len({endpoint.split(":")[0] for endpoint in endpoints})


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that a launcher set in environment variables; without one, the only worker. They are read with the first question.

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
        self._non_distributed = False
        self._trainers_num = 1
        self._nodes_num = 1
        self._cur_endpoint = ""
        self._coordinator_endpoints: list[str] = []

    def _generate_role(self) -> None:
        if self._role_is_generated:
            return
        if self._is_collective:
            self._read_workers()
        else:
            self._read_workers_and_servers()
        self._role_is_generated = True

    def _read_workers(self) -> None:
        place = _launched.place()
        self._role, self._current_id = Role.WORKER, place.rank
        self._worker_endpoints = _listed("PADDLE_TRAINER_ENDPOINTS")
        self._cur_endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")
        if not self._worker_endpoints and place.size == 1:
            self._worker_endpoints = ["127.0.0.1:6170"]
            self._cur_endpoint, self._non_distributed = self._worker_endpoints[0], True
        self._trainers_num = place.size if place.size > 1 else len(self._worker_endpoints)
        self._nodes_num = max(_hosts(self._worker_endpoints), 1)

    def _read_workers_and_servers(self) -> None:
        if "PADDLE_PSERVERS_IP_PORT_LIST" not in os.environ:
            self._role, self._current_id, self._non_distributed = Role.WORKER, 0, True
            return
        self._server_endpoints = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
        self._worker_endpoints = _listed("PADDLE_TRAINER_ENDPOINTS")
        self._coordinator_endpoints = _listed("PADDLE_COORDINATOR_ENDPOINTS")
        self._heter_trainer_endpoints = _listed("PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST")
        self._is_heter_parameter_server_mode = bool(self._heter_trainer_endpoints)
        workers = int(_required("PADDLE_TRAINERS_NUM"))
        name = _required("TRAINING_ROLE")
        if name not in _ROLES:
            raise ValueError(f"[PaddleCloudRoleMaker] the environment variable TRAINING_ROLE must be one of {', '.join(_ROLES)}, "
                             f"not {name!r}.")
        role = _ROLES[name]
        if role != Role.COORDINATOR:
            self._cur_endpoint = f"{os.environ.get('POD_IP', '')}:{os.environ.get('PADDLE_PORT', '')}"
        self._current_id = self._number(role, workers)
        self._role, self._trainers_num, self._nodes_num = role, workers, _hosts(self._worker_endpoints)

    def _number(self, role: int, workers: int) -> int:
        """The number of this process among those of its role; processes with another kind of device follow the workers."""
        if role == Role.WORKER:
            return int(_required("PADDLE_TRAINER_ID"))
        if role == Role.COORDINATOR:
            return int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        endpoints = self._server_endpoints if role == Role.SERVER else self._heter_trainer_endpoints
        here = f"{_required('POD_IP')}:{_required('PADDLE_PORT')}"
        if here not in endpoints:
            raise ValueError(f"[PaddleCloudRoleMaker] this process is at {here}, which is not among {endpoints}. hint: POD_IP and "
                             "PADDLE_PORT must give one of them.")
        return endpoints.index(here) + (workers if role == Role.HETER_WORKER else 0)

    def _has_role(self, role: int) -> bool:
        self._generate_role()
        return self._role == role

    def _is_worker(self) -> bool:
        return self._has_role(Role.WORKER)

    def _is_server(self) -> bool:
        return self._has_role(Role.SERVER)

    def _is_coordinator(self) -> bool:
        return self._has_role(Role.COORDINATOR)

    def _is_heter_worker(self) -> bool:
        return self._has_role(Role.HETER_WORKER)

    def _is_first_worker(self) -> bool:
        return self._is_worker() and self._current_id == 0

    def _is_non_distributed(self) -> bool:
        self._generate_role()
        return self._non_distributed

    def _role_id(self) -> int:
        self._generate_role()
        return self._current_id

    _worker_index = _server_index = _role_id

    def _worker_num(self) -> int:
        self._generate_role()
        return self._trainers_num

    def _server_num(self) -> int:
        return len(self._get_pserver_endpoints())

    def _heter_worker_num(self) -> int:
        self._generate_role()
        return len(self._heter_trainer_endpoints)

    def _node_num(self) -> int:
        self._generate_role()
        return self._nodes_num

    _get_node_num = _node_num

    def _get_trainer_endpoints(self) -> list[str]:
        self._generate_role()
        return self._worker_endpoints

    def _get_trainer_endpoint(self) -> str:
        if not self._is_worker():
            raise AssertionError("[_get_trainer_endpoint] this process is not a worker.")
        return self._cur_endpoint

    def _get_pserver_endpoints(self) -> list[str]:
        self._generate_role()
        return self._server_endpoints

    def _get_coordinator_endpoints(self) -> list[str]:
        self._generate_role()
        return self._coordinator_endpoints

    def _get_heter_worker_endpoints(self) -> list[str]:
        if not self._heter_worker_num():
            raise AssertionError("[_get_heter_worker_endpoints] no worker with another kind of device was named.")
        return self._heter_trainer_endpoints

    def _get_local_rank(self) -> str | None:
        return os.environ.get("PADDLE_RANK_IN_NODE")

    def _get_local_device_ids(self) -> str | None:
        return os.environ.get("PADDLE_LOCAL_DEVICE_IDS")

    def _get_world_device_ids(self) -> str | None:
        return os.environ.get("PADDLE_WORLD_DEVICE_IDS")

    def _all_gather(self, input: Any, comm_world: str = "worker") -> Any:
        """The value of this process: a group that has not been connected consists of it alone."""
        return input

    def _all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """The value of this process: a group that has not been connected consists of it alone."""
        return input


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
        self._init_gloo = init_gloo

    def _generate_role(self) -> None:
        if self._role_is_generated:
            return
        given = self._kwargs
        self._worker_endpoints = list(given.get("worker_endpoints") or [])
        self._server_endpoints = list(given.get("server_endpoints") or [])
        self._trainers_num = given.get("worker_num", 0) or len(self._worker_endpoints)
        if not self._trainers_num:
            raise AssertionError("[UserDefinedRoleMaker] there is no worker. hint: pass worker_endpoints or worker_num.")
        self._role = Role.WORKER if self._is_collective else given.get("role", Role.WORKER)
        self._current_id = given.get("current_id", 0)
        endpoints = self._server_endpoints if self._role == Role.SERVER else self._worker_endpoints
        if self._current_id < len(endpoints):
            self._cur_endpoint = endpoints[self._current_id]
        self._nodes_num = _hosts(self._worker_endpoints)
        self._role_is_generated = True
