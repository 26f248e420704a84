"""A network as a list of layers that a pipeline of processes divides."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.distributed.communication import ReduceOp, broadcast, stream
from oar.distributed.communication.group import Group, new_group
from oar.distributed.environment import get_rank, get_world_size
from oar.distributed.fleet.base.topology import CommunicateTopology
from oar.distributed.fleet.meta_parallel.pipeline.segments import boundaries
from oar.distributed.fleet.recompute.recompute import run_block
from oar.framework import unique_name
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
    """A network as a list of layers that a pipeline of processes divides. Each process keeps its own layers; a single one has all.

    Every process makes all layers, one after another, and drops those of others: so the weights are the same for any number of
    processes, if all use the same seed.

    Args:
        layers: layers, descriptions of layers and functions, in order.
        num_stages: how many processes divide them.
        topology: the grid of processes, instead of ``num_stages``.
        loss_fn: the loss: called with the result of the last layer and the labels.
        seg_method: where to cut: ``'uniform'`` into lists of about equal length; ``'layer:Block'`` so that each piece has as many layers of a
            class whose name matches; ``'parameters'`` so that the largest piece has as few parameters as possible; or a list of the numbers
            of the first layers.
        recompute_interval: in training, so many layers at a time keep nothing but their input; 0 switches that off.
        recompute_ctx: ``{'preserve_rng_state': False}`` saves the copies of the random state.
        num_virtual_pipeline_stages: into how many pieces the layers of a process are cut, for the interleaved schedule.

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
        self._topo = _grid(num_stages, topology)
        self._num_stages = self._topo.get_dim("pipe")
        self._stage_id: int = self._topo.get_coord(get_rank()).pipe
        self._num_virtual_pipeline_stages = 1 if num_virtual_pipeline_stages is None else num_virtual_pipeline_stages
        if self._num_virtual_pipeline_stages < 1:
            raise ValueError(f"[PipelineLayer] num_virtual_pipeline_stages is {num_virtual_pipeline_stages}, but there must be 1 or more.")
        self._loss_fn, self._layers_desc = loss_fn, list(layers)
        self._recompute_interval = recompute_interval
        self._preserves_random_state = bool((recompute_ctx or {}).get("preserve_rng_state", True))
        pieces = self._num_stages * self._num_virtual_pipeline_stages
        self.segment_parts = boundaries(self._layers_desc, pieces, seg_method, self._counts if seg_method == "parameters" else None)
        self.shared_layers = LayerDict()
        self._chunks: list[list[Callable[..., Any]]] = self._build()
        self.run_function = [run for chunk in self._chunks for run in chunk]
        self.shared_comm = self._join_shared()

    # making layers -----------------------------------------------------------------------------

    def _counts(self) -> list[int]:
        """How many parameters each layer has; a shared one counts where it stands first."""
        random, seen, counts = _C.rng_state(), set(), []
        with unique_name.guard():  # the names are given again
            for given in self._layers_desc:
                key = getattr(given, "layer_name", None)
                layer = given.build_layer() if isinstance(given, LayerDesc) and key not in seen else given
                seen.add(key if isinstance(given, SharedLayerDesc) else object())
                counts.append(sum(p.numel().item() for p in layer.parameters()) if isinstance(layer, Layer) else 0)
        _C.set_rng_state(*random)
        return counts

    def _parts(self) -> list[range]:
        """The numbers of the layers of each piece of this process."""
        pieces = range(self._stage_id, self._num_stages * self._num_virtual_pipeline_stages, self._num_stages)
        return [range(self.segment_parts[piece], self.segment_parts[piece + 1]) for piece in pieces]

    def _build(self) -> list[list[Callable[..., Any]]]:
        parts = self._parts()
        own = {index for part in parts for index in part}
        wanted = {given.layer_name for index, given in enumerate(self._layers_desc) if index in own and isinstance(given, SharedLayerDesc)}
        made: set[str] = set()
        runs: dict[int, Callable[..., Any]] = {}
        for index, given in enumerate(self._layers_desc):
            if isinstance(given, SharedLayerDesc):
                if given.layer_name not in made:
                    made.add(given.layer_name)
                    layer = given.build_layer()
                    if given.layer_name in wanted:
                        self.shared_layers[given.layer_name] = layer
                if index in own:
                    layer = self.shared_layers[given.layer_name]
                    runs[index] = layer if given.forward_func is None else functools.partial(given.forward_func, layer)
                continue
            run = given.build_layer() if isinstance(given, LayerDesc) else given
            if not callable(run):
                raise TypeError(f"[PipelineLayer] layers[{index}] must be a layer, a LayerDesc or a function, not {type(given).__name__}.")
            if index in own:
                if isinstance(run, Layer):
                    self.add_sublayer(str(index), run)
                runs[index] = run
        return [[runs[index] for index in part] for part in parts]

    # shared layers -----------------------------------------------------------------------------

    def _join_shared(self) -> dict[str, dict[str, Any]]:
        """Connects the processes that have a layer in common. All processes make all groups."""
        stages: dict[str, set[int]] = {}
        attributes: dict[str, list[str]] = {}
        for piece in range(len(self.segment_parts) - 1):
            for given in self._layers_desc[self.segment_parts[piece] : self.segment_parts[piece + 1]]:
                if isinstance(given, SharedLayerDesc):
                    stages.setdefault(given.layer_name, set()).add(piece % self._num_stages)
                    names = given.shared_weight_attr
                    attributes[given.layer_name] = [names] if isinstance(names, str) else list(names)
        joined: dict[str, dict[str, Any]] = {}
        for name, places in stages.items():
            if len(places) < 2:
                continue
            for line in self._topo.get_comm_list("pipe"):
                group = new_group([line[stage] for stage in sorted(places)])
                if get_rank() in group.ranks:
                    layer = self.shared_layers[name]
                    weights = [functools.reduce(getattr, attribute.split("."), layer) for attribute in attributes[name]]
                    for weight in weights:
                        weight.is_firstly_shared = group.rank == 0
                        broadcast(weight.detach(), group.ranks[0], group)
                    joined[name] = {"ranks": group.ranks, "group": group, "weights": weights, "layer": layer}
        return joined

    def allreduce_shared_weight_gradients(self) -> None:
        """Adds up the gradients of weights that several stages have."""
        for shared in self.shared_comm.values():
            for weight in shared["weights"]:
                _add_up(weight, shared["group"])

    # the parts of the network ------------------------------------------------------------------

    def get_num_virtual_stages(self) -> int:
        """How many pieces each process has."""
        return self._num_virtual_pipeline_stages

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The process that runs a layer."""
        for piece in range(len(self.segment_parts) - 1):
            if self.segment_parts[piece] <= layer_idx < self.segment_parts[piece + 1]:
                return piece % self._num_stages
        raise ValueError(f"[get_stage_from_index] layer_idx is {layer_idx}, but there are {len(self._layers_desc)} layers.")

    def forward(self, input: Any, chunk_id: int | None = None) -> Any:
        """Runs the layers of this process, or a piece of them.

        Args:
            input: what the first of them gets.
            chunk_id: the number of the piece; None needs a process with one.
        """
        if chunk_id is None and len(self._chunks) > 1 and self._num_stages > 1:
            raise ValueError(f"[PipelineLayer] this process has {len(self._chunks)} pieces of the network. hint: pass chunk_id.")
        runs = self.run_function if chunk_id is None else self._chunks[chunk_id]
        every = self._recompute_interval
        if not every or not self.training:
            return _run_all(runs, input)
        for begin in range(0, len(runs), every):
            function = functools.partial(_run_all, runs[begin : begin + every])
            input = run_block(function, (input,), {}, self._preserves_random_state)
        return input


def _run_all(runs: list[Callable[..., Any]], value: Any) -> Any:
    for run in runs:
        value = run(value)
    return value


def _add_up(weight: Tensor, group: Group) -> None:
    import oar

    with oar.no_grad():
        gradient = oar.zeros_like(weight) if weight.grad is None else weight.grad
        if not gradient.is_dense():
            gradient = gradient.to_dense()
        stream.all_reduce(gradient, ReduceOp.SUM, group)
        weight.grad = gradient


def _grid(num_stages: int | None, topology: Any) -> Any:
    """The grid of processes, with an axis ``pipe``."""
    if topology is None:
        if num_stages is None:
            raise ValueError("[PipelineLayer] num_stages and topology are both None. hint: pass num_stages=1.")
        if num_stages == 1:
            return _Alone()
        from oar.distributed.fleet import _process

        groups = getattr(_process.fleet, "_hcg", None)
        if groups is not None and groups.topology().get_dim("pipe") == num_stages:
            topology = groups.topology()
        else:
            topology = CommunicateTopology(["pipe"], [num_stages])
    if topology.world_size() != get_world_size():
        count = get_world_size()
        raise ValueError(f"[PipelineLayer] {topology.get_dim('pipe')} stages in a grid of {topology.world_size()} processes, but there "
                         f"{'is 1' if count == 1 else f'are {count}'}. hint: start as many, or pass num_stages=1.")
    return topology


class _Alone(CommunicateTopology):
    """Each process has a whole pipeline."""

    def __init__(self) -> None:
        super().__init__(["pipe"], [1])

    def get_coord(self, rank: int) -> Any:
        return super().get_coord(0)
