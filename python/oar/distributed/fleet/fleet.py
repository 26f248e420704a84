"""One object that knows the processes, their roles and the strategy of training."""

from __future__ import annotations

import copy
from typing import Any

from oar.distributed import _launched
from oar.distributed.environment import get_world_size, init_parallel_env, is_initialized
from oar.distributed.fleet._servers import ServerCalls
from oar.distributed.fleet.base.degrees import AXES, sizes_of_grid
from oar.distributed.fleet.base.distributed_strategy import DistributedStrategy
from oar.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, RoleMakerBase
from oar.distributed.fleet.base.topology import CommunicateTopology, HybridCommunicateGroup
from oar.distributed.fleet.base.util_factory import UtilBase
from oar.distributed.fleet.utils.log_util import set_log_level

__all__ = ["Fleet"]

# What would change the result of a static program; Paddle's single process applies them there.
_REWRITES = ("amp", "recompute", "gradient_merge", "lars", "lamb", "dgc", "localsgd", "adaptive_localsgd", "asp", "qat")


class Fleet(ServerCalls):
    """The processes that train together.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> net = fleet.distributed_model(oar.nn.Linear(2, 1))
        >>> optimizer = fleet.distributed_optimizer(oar.optimizer.SGD(0.1, parameters=net.parameters()))
        >>> fleet.worker_num(), fleet.worker_index(), fleet.is_first_worker()
        (1, 0, True)
    """

    def __init__(self) -> None:
        self._role_maker: RoleMakerBase | None = None
        self._is_collective = False
        self._user_defined_strategy = DistributedStrategy()
        self._hcg: HybridCommunicateGroup | None = None
        self._topology: CommunicateTopology | None = None
        self._util = UtilBase()
        self._context: dict[str, Any] = {}
        self.user_defined_optimizer: Any = None

    def init(
        self, role_maker: RoleMakerBase | None = None, is_collective: bool = False, strategy: DistributedStrategy | None = None,
        log_level: int | str = "INFO",
    ) -> Fleet:  # fmt: skip
        """Reads the role of this process and prepares the groups.

        Args:
            role_maker: the role of this process; by default what a launcher set.
            is_collective: whether there are workers only, without servers of parameters.
            strategy: the settings of training.
            log_level: what is logged: a name or a number of ``logging``.

        Returns:
            this object.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.worker_num()
            1
        """
        set_log_level(log_level)
        if not isinstance(is_collective, bool):
            raise ValueError(f"[fleet.init] is_collective must be a bool, not {type(is_collective).__name__}.")
        if role_maker is None:
            role_maker = PaddleCloudRoleMaker(is_collective=is_collective)
        if not isinstance(role_maker, RoleMakerBase):
            raise ValueError(f"[fleet.init] role_maker must be a role maker, such as PaddleCloudRoleMaker, not "
                             f"{type(role_maker).__name__}.")
        self._user_defined_strategy = copy.deepcopy(strategy) if strategy is not None else DistributedStrategy()
        self._role_maker, self._is_collective = role_maker, role_maker._is_collective
        role_maker._generate_role()
        self._begin_servers()
        if self._servers is not None:
            self._util._set_role_maker(role_maker)
            return self
        self._check_roles()
        self._util._set_role_maker(role_maker)
        if not is_initialized():
            self._topology = None  # groups of an earlier connection are gone
            init_parallel_env()
        self._init_hybrid_parallel_env()
        return self

    def _check_roles(self) -> None:
        role, processes = self._roles(), get_world_size()
        if role._server_num() > 0 or (not self._is_collective and role._worker_num() > 1):
            raise ValueError(
                f"[fleet.init] there are {role._worker_num()} workers and {role._server_num()} servers. hint: pass is_collective=True and start "
                "workers only, or is_collective=False and at least one server.")
        if self._is_collective and role._worker_num() != processes:
            raise ValueError(f"[fleet.init] the role maker names {role._worker_num()} workers, but the launcher of this process has started "
                             f"{processes}. hint: start as many with python -m oar.distributed.launch --nproc_per_node N.")

    def _init_hybrid_parallel_env(self) -> None:
        """Makes the grid and its groups; the earlier ones stay if the strategy asks for the same."""
        sizes = sizes_of_grid(self._user_defined_strategy.hybrid_configs, get_world_size())
        names = [AXES[short] for short in sizes]
        grid = self._topology
        if grid is not None and (grid.get_hybrid_group_names(), grid._dims) == (names, list(sizes.values())):
            return
        self._topology = CommunicateTopology(names, list(sizes.values()))
        self._hcg = HybridCommunicateGroup(self._topology)
        if self._hcg.get_model_parallel_world_size() > 1:
            from oar.distributed.fleet.layers.mpu.random import model_parallel_random_seed

            seed = self._user_defined_strategy.tensor_parallel_configs["tensor_init_seed"]
            model_parallel_random_seed(None if seed == -1 else seed)

    def _roles(self) -> RoleMakerBase:
        if self._role_maker is None:
            self._role_maker = PaddleCloudRoleMaker(is_collective=True)
            self._role_maker._generate_role()
        return self._role_maker

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        """The groups that this process belongs to.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.get_hybrid_communicate_group().get_data_parallel_world_size()
            1
        """
        if self._hcg is None:
            raise RuntimeError("[get_hybrid_communicate_group] fleet has not been started. hint: call fleet.init() first.")
        return self._hcg

    def get_hybrid_parallel_topology(self) -> CommunicateTopology:
        """The grid of processes."""
        return self.get_hybrid_communicate_group().topology()

    def is_first_worker(self) -> bool:
        """Whether this is the worker with the number 0.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.is_first_worker()
            True
        """
        return self._roles()._is_first_worker()

    def worker_index(self) -> int:
        """The number of this worker.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.worker_index()
            0
        """
        return self._roles()._worker_index()

    def worker_num(self) -> int:
        """How many workers there are.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.worker_num()
            1
        """
        return self._roles()._worker_num()

    def node_num(self) -> int:
        """How many machines there are.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.node_num()
            1
        """
        return self._roles()._node_num()

    def local_rank(self) -> int:
        """The number of this process on its machine.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.local_rank()
            0
        """
        return _launched.place().local_rank

    def local_device_ids(self) -> list[int]:
        """The numbers of the devices of this process.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.local_device_ids()
            [0]
        """
        return [0]

    def world_device_ids(self) -> list[list[int]]:
        """The numbers of the devices of all processes.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.world_device_ids()
            [[0]]
        """
        return [[0]] * self.worker_num()

    def is_worker(self) -> bool:
        """Whether this process is a worker.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.is_worker()
            True
        """
        return self._roles()._is_worker()

    def is_coordinator(self) -> bool:
        """Whether this process is a coordinator.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.is_coordinator()
            False
        """
        return self._roles()._is_coordinator()

    def is_server(self) -> bool:
        """Whether this process is a server of parameters.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.is_server()
            False
        """
        return self._roles()._is_server()

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Where the workers listen: a list, or text with commas if ``to_string``.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.worker_endpoints()
            ['127.0.0.1:6170']
        """
        places = self._roles()._get_trainer_endpoints()
        return ",".join(places) if to_string else places

    def server_num(self) -> int:
        """How many servers there are.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.server_num()
            0
        """
        return self._roles()._server_num()

    def server_index(self) -> int:
        """The number of this server.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.server_index()
            0
        """
        return self._roles()._server_index()

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Where the servers listen: a list, or text with commas if ``to_string``.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.server_endpoints()
            []
        """
        places = self._roles()._get_pserver_endpoints()
        return ",".join(places) if to_string else places

    @property
    def util(self) -> UtilBase:
        """Small helpers that know the role of this process."""
        return self._util

    def barrier_worker(self) -> None:
        """Waits until all workers have come this far.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.barrier_worker()
        """
        if self._servers is not None:
            return self._servers.barrier()
        self._util.barrier("worker")

    def all_reduce(self, input: Any, mode: str = "sum") -> Any:
        """Combines numbers of all workers: see ``UtilBase.all_reduce``.

        Examples:
            >>> from oar.distributed import fleet
            >>> _ = fleet.init(is_collective=True)
            >>> fleet.all_reduce(3.0)
            array(3.)
        """
        return self._util.all_reduce(input, mode, "worker")

    def distributed_optimizer(self, optimizer: Any, strategy: DistributedStrategy | None = None) -> Fleet:
        """Keeps an optimiser, whose ``minimize`` this object then offers. For static programs.

        Args:
            optimizer: the optimiser.
            strategy: the settings of training, instead of those of ``init``.

        Returns:
            this object.
        """
        self.user_defined_optimizer = optimizer
        if strategy is not None:
            self._user_defined_strategy = copy.deepcopy(strategy)
        if self._servers is not None:
            self._train_with_servers(optimizer, strategy)
        return self

    def minimize(self, loss: Any, startup_program: Any = None, parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Adds gradients and updates to a static program.

        Args:
            loss: the loss, or a list with one.
            startup_program: the program that fills the states.
            parameter_list: what to update.
            no_grad_set: what to leave out.

        Returns:
            what ``minimize`` of the optimiser returns.

        Examples:
            >>> import oar
            >>> from oar.distributed import fleet
            >>> oar.enable_static()
            >>> main = oar.static.Program()
            >>> with oar.static.program_guard(main):
            ...     loss = oar.nn.Linear(2, 1)(oar.static.data('x', [4, 2])).mean()
            ...     _ = fleet.init(is_collective=True)
            ...     optimizer = fleet.distributed_optimizer(oar.optimizer.SGD(0.1))
            ...     _, pairs = optimizer.minimize(loss)
            ...
            >>> len(pairs)
            2
            >>> oar.disable_static()
        """
        if self.user_defined_optimizer is None:
            raise RuntimeError("[fleet.minimize] there is no optimiser. hint: call fleet.distributed_optimizer(optimizer) first.")
        if self._servers is not None:
            from oar.distributed.ps.program import minimize

            return minimize(self._servers, loss, startup_program, parameter_list, no_grad_set)
        rewrites = [name for name in _REWRITES if getattr(self._user_defined_strategy, name)]
        if rewrites:
            raise NotImplementedError(f"[fleet.minimize] the strategy sets {', '.join(rewrites)}, which Oar does not apply to static "
                                      "programs yet. hint: use the optimisers and oar.static.amp directly.")
        if isinstance(loss, (list, tuple)):
            (loss,) = loss
        return self.user_defined_optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def __getattr__(self, name: str) -> Any:
        # As in Paddle, the object stands for the optimiser that it keeps.
        optimizer = self.__dict__.get("user_defined_optimizer")
        if optimizer is None or name.startswith("__"):
            raise AttributeError(f"Fleet has no attribute '{name}'")
        return getattr(optimizer, name)
