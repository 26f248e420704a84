"""A network that processes divide."""

from __future__ import annotations

from typing import Any

from oar.nn.layer.layers import Layer

__all__ = ["MetaParallelBase"]


class MetaParallelBase(Layer):
    """A network that processes divide. It has the states of the network that it wraps, under their names.

    Args:
        layers: the network.
        hcg: the groups of this process.
        strategy: the settings of training.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> net = fleet.meta_parallel.TensorParallel(oar.nn.Linear(2, 1), groups, strategy=fleet.DistributedStrategy())
        >>> net(oar.ones([3, 2])).shape, list(net.state_dict())
        ([3, 1], ['weight', 'bias'])
    """

    def __init__(self, layers: Layer, hcg: Any, strategy: Any) -> None:
        super().__init__(layers.full_name() + "_meta_parallel_base")
        self._layers, self._hcg, self._strategy = layers, hcg, strategy
        self._prepare_for_model()

    def _prepare_for_model(self) -> None:
        """Gives the processes the weights that they share."""

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> None:
        """Prepares the inputs."""

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        self._pre_forward(*inputs, **kwargs)
        return self._layers(*inputs, **kwargs)

    def state_dict(
        self, destination: Any = None, include_sublayers: bool = True, structured_name_prefix: str = "", use_hook: bool = True,
        keep_vars: bool = True,
    ) -> Any:
        """The states of the wrapped network, under its own names."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Sets the states of the wrapped network."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict
