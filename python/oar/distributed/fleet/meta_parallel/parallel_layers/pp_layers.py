"""A network as a list of layers that a pipeline of processes divides. A single process runs them all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oar.nn.layer.container import LayerDict
from oar.nn.layer.layers import Layer

__all__ = ["LayerDesc", "PipelineLayer", "SharedLayerDesc"]


class LayerDesc:
    """A layer that is made later, in the process that runs it.

    Args:
        layer_func: its class.
        inputs: arguments of the class.
        kwargs: arguments of the class.

    Examples:
        >>> from oar import nn
        >>> from oar.distributed.fleet.meta_parallel import LayerDesc
        >>> LayerDesc(nn.Linear, 2, 3).build_layer().weight.shape
        [2, 3]
    """

    def __init__(self, layer_func: type[Layer], *inputs: Any, **kwargs: Any) -> None:
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise TypeError(f"[LayerDesc] layer_func must be a class of layers, not {layer_func!r}.")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self) -> Layer:
        """Makes the layer."""
        return self.layer_func(*self.inputs, **self.kwargs)

    def __repr__(self) -> str:
        arguments = [*map(repr, self.inputs), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.layer_func.__name__}({', '.join(arguments)})"


class SharedLayerDesc(LayerDesc):
    """A layer that stands at several places of a list.

    Args:
        key: its name: descriptions with one name are one layer.
        layer_func: its class.
        forward_func: what is called with the layer and the input, instead of the layer itself.
        shared_weight_attr: the name of the weight that all places share.
        inputs: arguments of the class.
        kwargs: arguments of the class.

    Examples:
        >>> from oar import nn
        >>> from oar.distributed.fleet.meta_parallel import SharedLayerDesc
        >>> SharedLayerDesc("words", nn.Embedding, None, "weight", 10, 4).layer_name
        'words'
    """

    def __init__(
        self, key: str, layer_func: type[Layer], forward_func: Callable[..., Any] | None = None,
        shared_weight_attr: str | list[str] = "weight", *inputs: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func, self.shared_weight_attr = key, forward_func, shared_weight_attr


class PipelineLayer(Layer):
    """A network as a list of layers that a pipeline of processes divides. A single process runs them all.

    Args:
        layers: layers, descriptions of layers and functions, in order.
        num_stages: how many processes divide them: 1.
        topology: the grid of processes, instead of ``num_stages``.
        loss_fn: the loss.
        seg_method: accepted for compatibility: nothing is divided.
        recompute_interval: accepted if 0: use ``fleet.utils.recompute`` in layers instead.
        recompute_ctx: accepted for compatibility.
        num_virtual_pipeline_stages: 1 or None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> from oar.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
        >>> net = PipelineLayer([LayerDesc(nn.Linear, 2, 3), nn.ReLU(), lambda x: x.sum()], num_stages=1)
        >>> net(oar.ones([1, 2])).shape, list(net.state_dict())
        ([], ['0.weight', '0.bias'])
    """

    def __init__(
        self, layers: list[Any], num_stages: int | None = None, topology: Any = None, loss_fn: Any = None,
        seg_method: Any = "uniform", recompute_interval: int = 0, recompute_ctx: Any = None,
        num_virtual_pipeline_stages: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_stages is None and topology is None:
            raise ValueError("[PipelineLayer] num_stages and topology are both None. hint: pass num_stages=1.")
        stages = topology.get_dim("pipe") if topology is not None else num_stages
        if stages != 1 or (num_virtual_pipeline_stages or 1) != 1:
            raise NotImplementedError(f"[PipelineLayer] {stages} stages need as many processes, and Oar does not connect processes "
                                      "yet. hint: pass num_stages=1.")
        if recompute_interval:
            raise NotImplementedError(f"[PipelineLayer] recompute_interval is {recompute_interval}, which Oar does not have yet. "
                                      "hint: pass 0, and call fleet.utils.recompute in the layers.")
        self._loss_fn, self._layers_desc, self._num_stages, self._topo = loss_fn, list(layers), 1, topology
        self.shared_layers = LayerDict()
        self.run_function: list[Callable[..., Any]] = [self._built(i, given) for i, given in enumerate(layers)]

    def _built(self, index: int, given: Any) -> Callable[..., Any]:
        if isinstance(given, SharedLayerDesc):
            if given.layer_name not in self.shared_layers:
                self.shared_layers[given.layer_name] = given.build_layer()
            layer = self.shared_layers[given.layer_name]
            return layer if given.forward_func is None else functools.partial(given.forward_func, layer)
        if isinstance(given, LayerDesc):
            given = given.build_layer()
        if isinstance(given, Layer):
            self.add_sublayer(str(index), given)
        elif not callable(given):
            raise TypeError(f"[PipelineLayer] layers[{index}] must be a layer, a LayerDesc or a function, not {type(given).__name__}.")
        return given

    def get_num_virtual_stages(self) -> int:
        """How many pieces each process has: 1."""
        return 1

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The process that runs a layer: 0."""
        return 0

    def forward(self, input: Any, chunk_id: int | None = None) -> Any:
        for run in self.run_function:
            input = run(input)
        return input
