"""Tensors that are laid out over a grid of processes.

Over several processes they are sharded: each process has a piece, and ops work on pieces. A process that is alone holds the whole
value of each tensor, with its layout as a note."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.distributed.auto_parallel import _sharded
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, current_mesh
from oar.distributed.environment import get_rank
from oar.distributed.placement import Placement, Replicate, Shard
from oar.framework.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oar import nn

__all__ = ["dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "reshard", "shard_layer", "shard_tensor", "unshard_dtensor"]


def _laid_out(tensor: Tensor, attr: DistAttr) -> Tensor:
    tensor.__dict__["_dist_attr"] = attr
    return tensor


def layout(tensor: Tensor) -> DistAttr | None:
    """How a sharded tensor is laid out; None for another."""
    found = _sharded.layout_of(tensor)
    return None if found is None else DistAttr.of("dist_attr", found[0], found[1], tensor.ndim)


def _check_eager(where: str) -> None:
    if not oar.in_dynamic_mode():
        raise NotImplementedError(f"[{where}] static graphs hold no tensors that are cut over processes. "
                                  "hint: call oar.disable_static(), and oar.jit.to_static for programs.")


def shard_tensor(
    data: Any, mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any = None, place: Any = None,
    stop_gradient: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor laid out over a grid of processes. It starts a graph of its own: gradients do not flow to ``data``.

    Args:
        data: a tensor, or what ``to_tensor`` takes.
        mesh: the grid.
        placements: for each axis of the grid, ``Shard(dim)``, ``Replicate()`` or ``Partial()``.
        dtype: the dtype; by default that of ``data``.
        place: the device.
        stop_gradient: whether it gets no gradients; by default as ``data``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> mesh = dist.ProcessMesh([0], dim_names=["x"])
        >>> x = dist.shard_tensor(oar.ones([4, 2]), mesh, [dist.Shard(0)])
        >>> x.is_dist(), x.placements
        (True, [Shard(dim=0)])
    """
    if stop_gradient is None:
        stop_gradient = getattr(data, "stop_gradient", True)
    tensor = data
    if not isinstance(data, Tensor) or dtype is not None:
        tensor = oar.to_tensor(data, dtype=dtype, place=place, stop_gradient=stop_gradient)
    attr = DistAttr.of("shard_tensor", mesh, placements, tensor.ndim)
    if _sharded.is_real():
        _check_eager("shard_tensor")
        piece = _sharded.lay_out("shard_tensor", tensor.detach(), mesh, attr.placements)
        if isinstance(data, Parameter):
            return Parameter.from_tensor(piece, name=data.name, **data._settings())
        piece.stop_gradient = stop_gradient
        return piece
    if not oar.in_dynamic_mode():
        return _laid_out(oar.assign(tensor), attr)
    if isinstance(data, Parameter):
        laid_out: Tensor = Parameter.from_tensor(tensor, name=data.name, **data._settings())
    else:
        laid_out = tensor.detach().clone() if tensor is data else tensor
        laid_out.stop_gradient = stop_gradient
    return _laid_out(laid_out, attr)


def dtensor_from_fn(fn: Callable[..., Tensor], mesh: ProcessMesh, placements: Sequence[Placement], *args: Any, **kwargs: Any) -> Tensor:
    """What a function returns, laid out over a grid of processes.

    Args:
        fn: the function, such as ``oar.ones``.
        mesh: the grid.
        placements: the placement for each axis of the grid.
        args, kwargs: the arguments of the function.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> x = dist.dtensor_from_fn(oar.ones, dist.ProcessMesh([0]), [dist.Replicate()], shape=[2])
        >>> x.tolist(), x.is_dist()
        ([1.0, 1.0], True)
    """
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def dtensor_from_local(local_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The tensor whose piece in this process is ``local_tensor``.

    Args:
        local_tensor: the piece.
        mesh: the grid.
        placements: the placement for each axis of the grid.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> from oar.distributed.auto_parallel.api import dtensor_from_local
        >>> dtensor_from_local(oar.ones([2]), dist.ProcessMesh([0]), [dist.Shard(0)]).shape
        [2]
    """
    attr = DistAttr.of("dtensor_from_local", mesh, placements, local_tensor.ndim)
    if _sharded.is_real():
        _check_eager("dtensor_from_local")
        shape = _whole_shape(local_tensor, mesh, attr.placements)
        return _sharded.from_pieces("dtensor_from_local", local_tensor, mesh, attr.placements, shape)
    elsewhere = [size for size, placement in zip(mesh.shape, attr.placements) if size > 1 and not placement.is_replicated()]
    if elsewhere:
        raise NotImplementedError(f"[dtensor_from_local] {attr.placements} says that other processes have parts of the tensor, but this "
                                  "process is alone. hint: use a mesh with one process along these axes, or Replicate().")
    return _laid_out(oar.assign(local_tensor), attr)


def _whole_shape(piece: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> list[int]:
    """As in Paddle, all pieces have one size."""
    shape = list(piece.shape)
    for size, placement in zip(mesh.shape, placements):
        if isinstance(placement, Shard):
            shape[placement.get_dim()] *= size
    return shape


def dtensor_to_local(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The piece of a tensor in this process, as a plain tensor; gradients flow through it.

    Args:
        dist_tensor: a tensor that is laid out over processes.
        mesh: the grid to take it from.
        placements: the placement for each axis of the grid that the pieces are to have.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> from oar.distributed.auto_parallel.api import dtensor_to_local
        >>> mesh = dist.ProcessMesh([0])
        >>> x = dist.shard_tensor(oar.ones([2]), mesh, [dist.Shard(0)])
        >>> dtensor_to_local(x, mesh, [dist.Shard(0)]).is_dist()
        False
    """
    DistAttr.of("dtensor_to_local", mesh, placements, dist_tensor.ndim)
    moved = reshard(dist_tensor, mesh, placements)
    return _sharded.own_piece(moved) if _sharded.is_real() else oar.assign(moved)


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The same tensor, laid out in another way.

    Args:
        dist_tensor: the tensor.
        mesh: the grid.
        placements: the placement for each axis of the grid.

    Returns:
        a tensor; gradients flow through it.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> mesh = dist.ProcessMesh([0], dim_names=["x"])
        >>> x = dist.shard_tensor(oar.ones([4, 2]), mesh, [dist.Shard(0)])
        >>> dist.reshard(x, mesh, [dist.Replicate()]).placements
        [Replicate()]
    """
    attr = DistAttr.of("reshard", mesh, placements, dist_tensor.ndim)
    if _sharded.is_real():
        _check_eager("reshard")
        return _sharded.lay_out("reshard", dist_tensor, mesh, attr.placements)
    return _laid_out(oar.assign(dist_tensor), attr)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The whole value as a plain tensor.

    Args:
        dist_tensor: a tensor that is laid out over processes.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> x = dist.shard_tensor(oar.ones([2]), dist.ProcessMesh([0]), [dist.Shard(0)])
        >>> dist.unshard_dtensor(x).is_dist()
        False
    """
    if not dist_tensor.is_dist():
        raise ValueError("[unshard_dtensor] the tensor is a plain one. hint: shard_tensor lays it out over processes.")
    if not oar.in_dynamic_mode():
        return oar.assign(dist_tensor)
    if _sharded.layout_of(dist_tensor) is not None:
        found = _sharded.whole(dist_tensor.detach())
        if isinstance(dist_tensor, Parameter):
            return Parameter.from_tensor(found, name=dist_tensor.name, **dist_tensor._settings())
        return found
    if isinstance(dist_tensor, Parameter):
        return Parameter.from_tensor(dist_tensor, name=dist_tensor.name, **dist_tensor._settings())
    return dist_tensor.detach()


def _replicate(layer: nn.Layer, mesh: ProcessMesh) -> None:
    placements = [Replicate()] * mesh.ndim
    for name, parameter in list(layer._parameters.items()):
        if parameter is not None and not parameter.is_dist():
            layer.add_parameter(name, shard_tensor(parameter, mesh, placements))  # type: ignore[arg-type]  # it stays a parameter
    for name, buffer in list(layer._buffers.items()):
        if buffer is not None and not buffer.is_dist():
            layer.register_buffer(name, shard_tensor(buffer, mesh, placements))


def shard_layer(
    layer: nn.Layer, process_mesh: ProcessMesh, shard_fn: Callable[[str, nn.Layer, ProcessMesh], None] | None = None,
    input_fn: Callable[[Any, ProcessMesh], Any] | None = None, output_fn: Callable[[Any, ProcessMesh], Any] | None = None,
) -> nn.Layer:  # fmt: skip
    """Lays out the parameters and buffers of a layer over a grid of processes.

    Args:
        layer: the layer, which is changed.
        process_mesh: the grid.
        shard_fn: gets the name of each sublayer, the sublayer and the grid, and lays out what it wants to; the rest is replicated.
        input_fn: gets the inputs of each call and the grid, and returns the inputs to use.
        output_fn: gets the outputs of each call and the grid, and returns the outputs to use.

    Returns:
        the layer.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> layer = dist.shard_layer(oar.nn.Linear(2, 2), dist.ProcessMesh([0]))
        >>> layer.weight.is_dist()
        True
    """
    if not isinstance(process_mesh, ProcessMesh):
        raise ValueError(f"[shard_layer] process_mesh must be a ProcessMesh, not {type(process_mesh).__name__}.")
    if not oar.in_dynamic_mode():
        raise NotImplementedError("[shard_layer] is for eager mode. hint: call oar.disable_static() first.")
    for name, sublayer in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sublayer, process_mesh)
        _replicate(sublayer, process_mesh)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, process_mesh))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def annotate(x: Tensor, process_mesh: ProcessMesh | None = None, shard_spec: list[str | None] | None = None) -> Tensor:
    """Lays out a tensor over a grid of processes by the names of the grid's axes; the tensor itself is changed.

    Args:
        x: the tensor.
        process_mesh: the grid; by default that of the ``with mesh:`` around the call.
        shard_spec: for each axis of the tensor, the name of the axis of the grid that cuts it, or None; by default none is cut.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet import auto
        >>> mesh = auto.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
        >>> auto.shard_tensor(oar.ones([4, 6]), mesh, ["x", None]).placements
        [Shard(dim=0), Replicate()]
    """
    mesh = process_mesh if process_mesh is not None else current_mesh()
    if mesh is None:
        raise AssertionError("[shard_tensor] pass process_mesh, or call it inside `with mesh:`.")
    specs: list[str | None] = list(shard_spec) if shard_spec is not None else [None] * x.ndim
    if _sharded.is_real():
        raise NotImplementedError("[shard_tensor] notes by names of axes are for one process. hint: use oar.distributed.shard_tensor.")
    if len(specs) != x.ndim:
        raise AssertionError(f"[shard_tensor] shard_spec must have one entry for each of the {x.ndim} axes, not {specs}.")
    return _laid_out(x, DistAttr(mesh, specs))


def local_value(tensor: Tensor) -> Tensor:
    """The piece of this process; of a tensor that is not laid out over processes, the tensor."""
    found = _sharded.layout_of(tensor)
    if found is not None:
        return found[2]
    attr = tensor.dist_attr()
    if attr is None:
        return tensor
    piece = attr.piece(get_rank(), list(tensor.shape))
    if piece is None:
        return oar.empty([0], tensor.dtype)
    return tensor[tuple(piece)] * 0 if attr.has_others_parts(get_rank()) else tensor[tuple(piece)]
