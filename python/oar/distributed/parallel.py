"""A layer whose copies in several processes are trained together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oar._C import Tensor
from oar.distributed import parallel_helper
from oar.distributed._reducer import Reducer
from oar.distributed.communication import stream
from oar.distributed.communication.group import Group, _get_global_group, get_group
from oar.distributed.environment import get_world_size, job
from oar.nn.layer.layers import Layer

__all__ = ["DataParallel", "parallel_helper", "sync_params_buffers"]


def sync_params_buffers(
    model: Layer, comm_group: Group | None = None, src_rank: int = 0, is_model_parallel: bool = False,
    fuse_params: bool = True,
) -> None:  # fmt: skip
    """Gives the copies of a network the parameters and buffers of one process, but for those with ``no_sync``.

    Args:
        model: the network.
        comm_group: the processes; None means all.
        src_rank: the number of the process that has the weights.
        is_model_parallel: whether to leave out parameters that are parts of others (``is_distributed``).
        fuse_params: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed.parallel import sync_params_buffers
        >>> sync_params_buffers(oar.nn.Linear(2, 1))
    """
    among = get_group(0) if comm_group is None else comm_group
    if among is None or among.nranks == 1:
        return
    tensors = [t for t in (*model.parameters(), *model.buffers())
               if t is not None and t.numel().item() and not getattr(t, "no_sync", False)]
    if is_model_parallel:
        tensors = [t for t in tensors if not getattr(t, "is_distributed", False)]
    tasks = [stream.broadcast(tensor, src_rank, comm_group, sync_op=False) for tensor in tensors]
    for task in tasks:
        if task is not None:
            task.wait()


class DataParallel(Layer):
    """Wraps a layer that is trained on a different part of each batch in each process. The processes begin with the weights of
    the first one. During a backward pass their gradients are averaged, and sent while the pass still computes others. A parameter
    with the attribute ``no_sync``, such as those of experts, stays a process's own.

    Args:
        layers: the layer.
        strategy: accepted for compatibility.
        comm_buffer_size: how many megabytes of gradients are sent together.
        last_comm_buffer_size: the same for the gradients that are computed first: those of the last layers.
        find_unused_parameters: whether a backward pass may leave out parameters. Without it, that is an error.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = oar.DataParallel(nn.Linear(3, 2))
        >>> net(oar.ones([1, 3])).shape, list(net.state_dict())
        ([1, 2], ['weight', 'bias'])
    """

    def __init__(
        self, layers: Layer, strategy: Any = None, comm_buffer_size: int = 25, last_comm_buffer_size: float = 1,
        find_unused_parameters: bool = False, group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(layers.full_name() + "_data_parallel")
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters
        self.group = group
        self._reducer: Reducer | None = None
        among: Group = _get_global_group() if group is None else group
        if among.nranks == 1:
            return
        if not job.started:
            raise RuntimeError(f"[DataParallel] the {get_world_size()} processes are not connected. "
                               "hint: call init_parallel_env() first.")
        if among.rank < 0:
            return
        sync_params_buffers(layers, among, among.ranks[0])
        trained = [p for p in layers.parameters() if not p.stop_gradient and not getattr(p, "no_sync", False)]
        self._reducer = Reducer(trained, among, last_comm_buffer_size * (1 << 20), comm_buffer_size * (1 << 20),
                                find_unused_parameters)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of the block stay in this process. A later backward pass outside sends them, with its own."""
        if self._reducer is None:
            yield
            return
        before, self._reducer.is_on = self._reducer.is_on, False
        try:
            yield
        finally:
            self._reducer.is_on = before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss itself: Paddle's older scripts divided it by the number of processes here."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: Paddle's older scripts added gradients up here."""

    def state_dict(
        self, destination: Any = None, include_sublayers: bool = True, structured_name_prefix: str = "", use_hook: bool = True,
        keep_vars: bool = True,
    ) -> Any:
        """The states of the wrapped layer, under its own names."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Sets the states of the wrapped layer."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict
