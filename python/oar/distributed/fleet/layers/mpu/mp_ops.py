"""What the processes of a cut layer exchange, with derivatives. The processes compute one loss together: each of them has its value.
A group of one gives everything back as it is."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.distributed.communication import ReduceOp
from oar.distributed.communication._reduce_op import NAMES
from oar.distributed.communication.group import Group, get_group
from oar.nn import functional as F

__all__ = ["added_part", "group_of", "joined", "own_part", "split"]


def group_of(group: Group | None) -> Group:
    """The group, or that of all processes."""
    found = get_group(0) if group is None else group
    assert found is not None
    return found


def _cut(function: str, x: Tensor, axis: int, count: int) -> Tensor:
    """The parts of a tensor along an axis, in a new first axis."""
    axis = axis % x.ndim
    size = x.shape[axis]
    if isinstance(size, int) and size % count:
        raise ValueError(f"[{function}] axis {axis} of a tensor of shape {list(x.shape)} cannot be cut into {count} equal parts, one for each "
                         "process. hint: choose a size that the number of processes divides.")
    shape = [*x.shape[:axis], count, size // count, *x.shape[axis + 1 :]]
    return oar.moveaxis(oar.reshape(x, shape), axis, 0)


def _paste(parts: Tensor, axis: int) -> Tensor:
    """The parts, in a first axis, joined along an axis."""
    axis = axis % (parts.ndim - 1)
    moved = oar.moveaxis(parts, 0, axis)
    return oar.reshape(moved, [*moved.shape[:axis], moved.shape[axis] * moved.shape[axis + 1], *moved.shape[axis + 2 :]])


def own_part(x: Tensor, axis: int, group: Group, function: str = "own_part") -> Tensor:
    """The part of this process along an axis, of a tensor that all have. The gradient joins the parts."""
    if group.nranks == 1:
        return x
    return ops.own_part(_cut(function, x, axis, group.nranks), group.id, group.nranks)


def joined(x: Tensor, axis: int, group: Group, shared: bool) -> Tensor:
    """The parts of all processes joined along an axis.

    Args:
        x: the part of this process.
        axis: the axis.
        group: the processes.
        shared: whether all processes go on to compute the same. Then the gradient is the own part of theirs; otherwise the
            gradients of all processes are added first.

    Returns:
        a tensor.
    """
    if group.nranks == 1:
        return x
    return _paste(ops.all_gather(x, group.id, group.nranks, shared), axis)


def added_part(x: Tensor, axis: int, group: Group, function: str = "added_part") -> Tensor:
    """The part of this process along an axis, of the sum of the tensors of all processes. The gradient joins the parts."""
    if group.nranks == 1:
        return x
    return ops.reduce_scatter(_cut(function, x, axis, group.nranks), "sum", group.id, group.nranks)


def _c_identity(tensor: Tensor, group: Group | None = None, skip_c_identity_dynamic: bool = False) -> Any:
    """The tensor; its gradient is added up over the processes."""
    if group is not None and group.rank < 0:
        return None
    among = group_of(group)
    if among.nranks == 1 or skip_c_identity_dynamic:
        return tensor
    return ops.join_gradients(tensor, among.id, among.nranks)


def _c_concat(tensor: Tensor, group: Group | None = None) -> Any:
    """The pieces of all processes joined along the last axis."""
    if group is not None and group.rank < 0:
        return None
    return joined(tensor, -1, group_of(group), shared=True)


def _c_split(tensor: Tensor, group: Group | None = None) -> Any:
    """The piece of this process along the last axis."""
    if group is not None and group.rank < 0:
        return None
    return own_part(tensor, -1, group_of(group), "_c_split")


def _mp_allreduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, use_calc_stream: bool = True,
    use_model_parallel: bool = True, skip_c_identity_dynamic: bool = False,
) -> Any:  # fmt: skip
    """The sum over the processes; its gradient is passed on as it is."""
    if group is not None and group.rank < 0:
        return None
    among = group_of(group)
    if among.nranks == 1:
        return tensor
    return ops.all_reduce(tensor, NAMES[op], among.id, among.nranks, not skip_c_identity_dynamic)


def _c_lookup_table(table: Tensor, index: Tensor, start_index: int = 0, vocab_size: int = -1, name: str | None = None) -> Tensor:
    """Rows of a table that has the rows from ``start_index`` on; zeros for indices that it does not have.

    An index that no process has is an error in the first or the last process.
    """
    end = start_index + table.shape[0]
    is_first, is_last = start_index == 0, vocab_size < 0 or end >= vocab_size
    has = oar.ones_like(index, dtype="bool")
    if not is_first:
        has = index >= start_index
    if not (is_last and vocab_size >= 0):
        has = oar.logical_and(has, index < end)
    rows = F.embedding(oar.where(has, index - start_index, oar.zeros_like(index)), table)
    return oar.where(has.unsqueeze(-1), rows, oar.zeros_like(rows))


def _c_softmax_with_cross_entropy(
    logits: Tensor, label: Tensor, group: Group | None = None, return_softmax: bool = False, ignore_index: int = -100
) -> Any:
    """The cross entropy of classes that are cut into pieces: each process has its classes' logits, and all labels.

    A label that no process has is an error in the first or the last process.
    """
    if group is not None and group.rank < 0:
        return None
    among = group_of(group)
    if label.ndim == logits.ndim - 1:
        label = label.unsqueeze(-1)
    if label.ndim != logits.ndim or label.shape[-1] != 1:
        raise ValueError(f"[_c_softmax_with_cross_entropy] label has shape {list(label.shape)}, but logits of shape {list(logits.shape)} need one "
                         "label for each row. hint: pass class numbers, not probabilities.")
    if among.nranks == 1:
        return F.softmax_with_cross_entropy(logits, label, ignore_index=ignore_index, return_softmax=return_softmax)
    wide = logits.astype("float32") if logits.dtype in (oar.float16, oar.bfloat16) else logits
    with oar.no_grad():
        top = ops.all_reduce(oar.max(wide, axis=-1, keepdim=True), "max", among.id, among.nranks)
    shifted = wide - top
    powers = oar.exp(shifted)
    ignored = label == ignore_index
    both = oar.concat([oar.sum(powers, axis=-1, keepdim=True), _of_label(shifted, label, ignored, among)], axis=-1)
    total, chosen = oar.split(_mp_allreduce(both, group=among), 2, axis=-1)
    loss = oar.where(ignored, oar.zeros_like(total), oar.log(total) - chosen).astype(logits.dtype)
    return (loss, (powers / total).astype(logits.dtype)) if return_softmax else loss


def _of_label(logits: Tensor, label: Tensor, ignored: Tensor, group: Group) -> Tensor:
    """The logit of each label, where this process has its class; zero elsewhere."""
    classes = logits.shape[-1]
    local = label - group.rank * classes
    has = local >= 0 if group.rank == group.nranks - 1 else oar.logical_and(local >= 0, local < classes)
    if group.rank == 0:  # no process has a negative label: looking it up is an error
        local = oar.where(local < 0, oar.full_like(local, classes), local)
        has = oar.logical_or(has, label < 0)
    has = oar.logical_and(has, oar.logical_not(ignored))
    found = oar.take_along_axis(logits, oar.where(has, local, oar.zeros_like(local)), -1)
    return oar.where(has, found, oar.zeros_like(found))


def split(
    x: Tensor, size: Any, operation: str, axis: int = 0, num_partitions: int = 1, gather_out: bool = True, weight_attr: Any = None,
    bias_attr: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """A linear layer or an embedding whose weight is cut into pieces, one for each process. For static programs.

    Args:
        x: the input.
        size: the shape of the whole weight: two numbers.
        operation: ``'linear'`` or ``'embedding'``.
        axis: the axis of the weight that is cut: 0, or 1 for ``'linear'`` only.
        num_partitions: the number of pieces: that of the processes along the axis of tensors.
        gather_out: whether each process needs the whole result.
        weight_attr: the attributes of the weight.
        bias_attr: the attributes of the bias; False leaves it out.
        name: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.distributed as dist
        >>> _ = dist.fleet.init(is_collective=True)
        >>> oar.enable_static()
        >>> with oar.static.program_guard(oar.static.Program()):
        ...     ids = oar.static.data("ids", [2, 3], "int64")
        ...     dist.split(ids, (8, 4), "embedding", num_partitions=1).shape
        [2, 3, 4]
        >>> oar.disable_static()
    """
    from oar.distributed.fleet._process import fleet
    from oar.distributed.fleet.layers.mpu.mp_layers import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding

    if oar.in_dynamic_mode():
        raise ValueError("[split] outside of static programs each call would make new weights. hint: use the layers ColumnParallelLinear, "
                         "RowParallelLinear and VocabParallelEmbedding of fleet.meta_parallel.")
    if operation not in ("linear", "embedding"):
        raise AssertionError(f"[split] operation must be 'linear' or 'embedding', not {operation!r}.")
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise AssertionError(f"[split] size must be the two sizes of the weight, not {size!r}.")
    if axis not in ((0, 1) if operation == "linear" else (0,)):
        raise AssertionError(f"[split] axis is {axis}, but the weight of '{operation}' is cut along axis "
                             f"{'0 or 1' if operation == 'linear' else '0'}.")
    pieces = fleet.get_hybrid_communicate_group().get_model_parallel_world_size()
    if num_partitions != pieces:
        raise AssertionError(f"[split] num_partitions is {num_partitions}, but there are {pieces} processes along the axis of tensors. "
                             "hint: set mp_degree of hybrid_configs to the number of pieces.")
    if operation == "embedding":
        return VocabParallelEmbedding(size[0], size[1], weight_attr)(x)
    has_bias = bias_attr is not False
    if axis == 1:
        return ColumnParallelLinear(size[0], size[1], weight_attr, has_bias, gather_out)(x)
    if not gather_out:
        raise NotImplementedError("[split] gather_out=False with axis=0 would return each process's part of a sum. hint: pass gather_out=True.")
    return RowParallelLinear(size[0], size[1], weight_attr, has_bias, input_is_parallel=False)(x)
