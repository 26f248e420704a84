"""A layer whose copies in several processes are trained together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oar._C import Tensor
from oar.distributed import parallel_helper
from oar.distributed.communication.group import Group, check_alone
from oar.distributed.environment import get_world_size
from oar.nn.layer.layers import Layer

__all__ = ["DataParallel", "parallel_helper", "sync_params_buffers"]


def sync_params_buffers(
    model: Layer, comm_group: Group | None = None, src_rank: int = 0, is_model_parallel: bool = False,
    fuse_params: bool = True,
) -> None:  # fmt: skip
    """Gives the copies of a network the weights of one process: nothing to do if there is one.

    Args:
        model: the network.
        comm_group: the processes.
        src_rank: the number of the process that has the weights.
        is_model_parallel: accepted for compatibility.
        fuse_params: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed.parallel import sync_params_buffers
        >>> sync_params_buffers(oar.nn.Linear(2, 1))
    """
    check_alone("sync_params_buffers", comm_group)


class DataParallel(Layer):
    """Wraps a layer that is trained on a different part of each batch in each process. Today there is one process, whose gradients
    are those of the whole batch already.

    Args:
        layers: the layer.
        strategy: accepted for compatibility.
        comm_buffer_size: accepted for compatibility: there is nothing to send.
        last_comm_buffer_size: accepted for compatibility.
        find_unused_parameters: accepted for compatibility.
        group: accepted for compatibility.

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
        if get_world_size() > 1:
            raise NotImplementedError(f"[DataParallel] Oar does not train in {get_world_size()} processes yet. "
                                      "hint: start the program without a launcher.")
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters
        self.group = group

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of the block stay in this process until a later backward pass sends them."""
        yield

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
