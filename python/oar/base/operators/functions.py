"""Ops whose form in Paddle's inner interfaces differs in more than names from Oar's functions.

A function has the arguments of ``table.py``; the docstring of the public function of the same name applies here too.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn import functional as F

# values and copies -------------------------------------------------------------------------------


def assign_value(shape, dtype, values):
    return ops.reshape(oar.to_tensor(list(values), dtype), list(shape))


def assign_value_(output, shape, dtype, values):
    return _put(output, assign_value(shape, dtype, values))


def assign_out_(x, output):
    return _put(output, ops.assign(x))


def full_(output, shape, value, dtype):
    return _put(output, oar.full(shape, value, dtype))


def full_int_array(value, dtype):
    return oar.to_tensor(list(value), dtype)


def full_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0):
    sizes = list(shape)
    sizes[output_dim_idx] = input.shape[input_dim_idx]
    return oar.full(sizes, value, dtype)


def fill(x, value):
    return oar.full_like(x, value)


def fill_diagonal(x, value=0.0, offset=0, wrap=False):
    return x.clone().fill_diagonal_(value, offset, wrap)


def gaussian_inplace(x, mean=0.0, std=1.0, seed=0):
    return ops.gaussian(list(x.shape), mean, std, seed, x.dtype)


def uniform_inplace(x, min=-1.0, max=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0):
    return ops.uniform(list(x.shape), x.dtype, min, max, seed)


def _put(output: Tensor, value: Tensor) -> Tensor:
    from oar.base.operators import put

    return put(output, value)


# reductions and scans ----------------------------------------------------------------------------


def _axes(axis: Any, reduce_all: bool) -> Any:
    return None if reduce_all or isinstance(axis, (list, tuple)) and not axis else axis


def prod(x, axis=None, keepdim=False, reduce_all=False):
    return oar.prod(x, _axes(axis, reduce_all), keepdim)


def logsumexp(x, axis=None, keepdim=False, reduce_all=False):
    return oar.logsumexp(x, _axes(axis, reduce_all), keepdim)


def frobenius_norm(x, axis=None, keep_dim=False, reduce_all=False):
    return ops.root_sum_square(x, _axes(axis, reduce_all), keep_dim)


def p_norm(x, porder=2.0, axis=-1, epsilon=1e-12, keepdim=False, asvector=False):
    return ops.p_norm(x, porder, None if asvector else axis, keepdim)


def norm(x, axis, epsilon, is_test=False):
    length = ops.sqrt(ops.sum(x * x, axis, None, True) + epsilon)
    return x / length, length


def l1_norm(x):
    return ops.sum(ops.abs(x))


def squared_l2_norm(x):
    return ops.reshape(ops.sum(x * x), [1])


def clip_by_norm(x, max_norm):
    length = ops.sqrt(ops.sum(x * x))
    return x * (max_norm / ops.maximum(length, ops.full_like(length, max_norm)))


def _along(scan: Callable, x: Tensor, axis: Any, flatten: bool, exclusive: bool, reverse: bool, first: float) -> Tensor:
    """A scan, from the end where that is wanted; an exclusive one begins with ``first`` and leaves the last out."""
    x, axis = (ops.reshape(x, [-1]), 0) if flatten else (x, int(axis))
    x = ops.flip(x, [axis]) if reverse else x
    if exclusive:
        shape = list(x.shape)
        shape[axis] = 1
        kept = ops.slice(x, [axis], [0], [-1])
        x = ops.concat([ops.full(shape, first, x.dtype), kept], axis)
    made = scan(x, axis)
    return ops.flip(made, [axis]) if reverse else made


def cumsum(x, axis=-1, flatten=False, exclusive=False, reverse=False):
    return _along(ops.cumsum, x, axis, flatten, exclusive, reverse, 0)


def cumprod(x, dim=-1, exclusive=False, reverse=False):
    return _along(ops.cumprod, x, dim, False, exclusive, reverse, 1)


def logcumsumexp(x, axis=-1, flatten=False, exclusive=False, reverse=False):
    return _along(oar.logcumsumexp, x, axis, flatten, exclusive, reverse, -math.inf)


def argmax(x, axis=None, keepdims=False, flatten=False, dtype="int64"):
    return oar.argmax(x, None if flatten else int(axis), keepdims, dtype)


def argmin(x, axis=None, keepdims=False, flatten=False, dtype="int64"):
    return oar.argmin(x, None if flatten else int(axis), keepdims, dtype)


def argsort(x, axis=-1, descending=False, stable=False):
    places = oar.argsort(x, axis, descending, stable)
    return oar.take_along_axis(x, places, axis), places


def nanmedian(x, axis=None, keepdim=True, mode="avg"):
    made = oar.nanmedian(x, axis, keepdim, mode)
    return made if isinstance(made, (list, tuple)) else (made, None)


# shapes and indices ------------------------------------------------------------------------------


def slice(input, axes, starts, ends, decrease_axis=()):
    cut = oar.slice(input, axes, starts, ends)
    return ops.squeeze(cut, list(decrease_axis)) if decrease_axis else cut


def expand_as(x, y=None, target_shape=()):
    return ops.expand(x, list(target_shape)) if y is None else ops.expand_as(x, y)


def meshgrid(inputs):
    return oar.meshgrid(list(inputs))


def einsum(x, equation):
    return oar.einsum(equation, *x), [], []


def index_select_strided(x, index, axis=0):
    return ops.squeeze(oar.slice(x, [axis], [index], [index + 1 or x.shape[axis]]), [axis])


def partial_concat(x, start_index=0, length=-1):
    return ops.concat(_columns(x, start_index, length), 1)


def partial_sum(x, start_index=0, length=-1):
    return ops.add_n(_columns(x, start_index, length))


def _columns(x: Sequence[Tensor], start: int, length: int) -> list[Tensor]:
    start = start if start >= 0 else start + x[0].shape[1]
    stop = x[0].shape[1] if length < 0 else start + length
    return [one[:, start:stop] for one in x]


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64"):
    axis = axis[0] if isinstance(axis, (list, tuple)) and axis else axis or None if not isinstance(axis, int) else axis
    made = oar.unique(x, return_index, return_inverse, return_counts, axis, dtype)
    parts = iter(made if isinstance(made, (list, tuple)) else [made])
    wanted = (True, return_index, return_inverse, return_counts)
    return tuple(next(parts) if one else None for one in wanted)


def flatten_to_matrix(x, axis=1):
    if x.ndim == 0:
        return ops.reshape(x, [1])
    rows = math.prod(x.shape[:axis]) if axis else 1
    return ops.reshape(x, [rows, -1])


def legacy_reshape(x, shape):
    return oar.reshape(x, shape)


def _starting_at(name: str) -> Callable:
    def function(x: Tensor, y: Tensor, axis: int = -1) -> Tensor:
        from oar.tensor.math import aligned

        return getattr(oar, name)(*aligned(x, y, axis))

    return function


maximum_with_axis = _starting_at("maximum")
minimum_with_axis = _starting_at("minimum")
remainder_with_axis = _starting_at("remainder")
floor_divide_with_axis = _starting_at("floor_divide")
pow_with_axis = _starting_at("pow")


def _written_at(x: Tensor, value: Any, starts, ends, steps, axes, decrease_axes, none_axes) -> Tensor:
    index: list[Any] = [builtins.slice(None)] * x.ndim
    for axis, start, stop, step in zip(axes, starts, ends, steps):
        stop = stop if stop >= -x.shape[axis] else None
        index[axis] = start if axis in decrease_axes else builtins.slice(start, stop, step)
    for axis in sorted(none_axes):
        index.insert(axis, None)
    out = x.clone()
    out[tuple(index)] = value
    return out


def set_value(x, starts, ends, steps, axes, decrease_axes, none_axes, shape, values):
    value = ops.reshape(oar.to_tensor(list(values), x.dtype), list(shape))
    return _written_at(x, value, starts, ends, steps, axes, decrease_axes, none_axes)


def set_value_with_tensor(x, values, starts, ends, steps, axes, decrease_axes, none_axes):
    return _written_at(x, values, starts, ends, steps, axes, decrease_axes, none_axes)


# products ----------------------------------------------------------------------------------------


def matmul_with_flatten(x, y, x_num_col_dims=1, y_num_col_dims=1):
    rows, columns = list(x.shape[:x_num_col_dims]), list(y.shape[y_num_col_dims:])
    inner = math.prod(y.shape[:y_num_col_dims])
    flat = ops.reshape(x, [math.prod(rows), inner])
    return ops.reshape(ops.matmul(flat, ops.reshape(y, [inner, math.prod(columns)])), rows + columns)


def legacy_matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0):
    made = oar.matmul(x, y, transpose_x, transpose_y)
    return made if alpha == 1.0 else made * alpha


def embedding(x, weight, padding_idx=-1, sparse=False):
    return F.embedding(x, weight, None if padding_idx == -1 else padding_idx, sparse=sparse)


def lookup_table(weight, x, padding_idx=-1, sparse=False):
    return embedding(ops.squeeze(x, [-1]), weight, padding_idx, sparse)


# graphs ------------------------------------------------------------------------------------------


def segment_pool(x, segment_ids, pooltype="SUM"):
    return getattr(oar.geometric, f"segment_{pooltype.lower()}")(x, segment_ids)


def _rows(out_size: Any) -> Any:
    size = out_size[0] if isinstance(out_size, (list, tuple)) else out_size
    return size if isinstance(size, Tensor) or size and size > 0 else None


def send_u_recv(x, src_index, dst_index, reduce_op="SUM", out_size=(0,)):
    return oar.geometric.send_u_recv(x, src_index, dst_index, reduce_op.lower(), _rows(out_size))


def send_ue_recv(x, y, src_index, dst_index, message_op="ADD", reduce_op="SUM", out_size=(0,)):
    return oar.geometric.send_ue_recv(x, y, src_index, dst_index, message_op.lower(), reduce_op.lower(), _rows(out_size))
