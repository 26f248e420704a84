"""Small helpers of training in several processes."""

from __future__ import annotations

from typing import Any

import oar
from oar._lazy import np
from oar.distributed import communication
from oar.distributed.communication import ReduceOp
from oar.distributed.environment import get_world_size
from oar.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, RoleMakerBase

__all__ = ["UtilBase"]


class UtilBase:
    """Helpers that know the role of this process.

    Examples:
        >>> from oar.distributed import fleet
        >>> fleet.util.get_file_shard(["a.txt", "b.txt"])
        ['a.txt', 'b.txt']
    """

    def __init__(self) -> None:
        self.role_maker: RoleMakerBase = PaddleCloudRoleMaker(is_collective=True)
        self.dist_strategy: Any = None

    def _set_strategy(self, dist_strategy: Any) -> None:
        self.dist_strategy = dist_strategy

    def _set_role_maker(self, role_maker: RoleMakerBase) -> None:
        self.role_maker = role_maker

    def _check(self, function: str, comm_world: str) -> None:
        if comm_world not in ("worker", "server", "all"):
            raise ValueError(f"[{function}] comm_world must be 'worker', 'server' or 'all', not {comm_world!r}.")

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """Combines numbers of all processes.

        Args:
            input: a number, or numbers: a list, tuple or array.
            mode: ``'sum'``, ``'min'`` or ``'max'``.
            comm_world: which processes: ``'worker'``, ``'server'`` or ``'all'``.

        Returns:
            an array.
        """
        self._check("all_reduce", comm_world)
        if mode not in ("sum", "min", "max"):
            raise ValueError(f"[all_reduce] mode must be 'sum', 'min' or 'max', not {mode!r}.")
        numbers = np.array(input)
        if get_world_size() == 1:
            return numbers
        tensor = oar.to_tensor(numbers)
        communication.all_reduce(tensor, {"sum": ReduceOp.SUM, "min": ReduceOp.MIN, "max": ReduceOp.MAX}[mode])
        return tensor.numpy().reshape(numbers.shape)

    def barrier(self, comm_world: str = "worker") -> None:
        """Waits until all processes have come this far.

        Args:
            comm_world: which processes: ``'worker'``, ``'server'`` or ``'all'``.
        """
        self._check("barrier", comm_world)
        communication.group.barrier()

    def all_gather(self, input: Any, comm_world: str = "worker") -> list[Any]:
        """Collects numbers of all processes.

        Args:
            input: the number of this process, or any object: it is pickled.
            comm_world: which processes: ``'worker'``, ``'server'`` or ``'all'``.

        Returns:
            a list with one number for each process.
        """
        self._check("all_gather", comm_world)
        collected: list[Any] = []
        communication.all_gather_object(collected, input)
        return collected

    def get_file_shard(self, files: list[str]) -> list[str]:
        """The files that this worker reads: neighbours, as many for each worker as possible.

        Args:
            files: all files.

        Returns:
            a list.
        """
        if not isinstance(files, list):
            raise TypeError(f"[get_file_shard] files must be a list, not {type(files).__name__}.")
        workers, index = self.role_maker._worker_num(), self.role_maker._worker_index()
        each, more = divmod(len(files), workers)
        begin = index * each + min(index, more)
        return files[begin : begin + each + (index < more)]

    get_heter_file_shard = get_file_shard

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Prints a message in one worker.

        Args:
            message: the message.
            rank_id: the number of the worker.
        """
        if self.role_maker._worker_index() == rank_id:
            print(message)
