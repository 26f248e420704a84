"""Creation, shapes, slices, indexing, joining."""

TORCH = {
    # along
    "take_along": "torch.gather(x, axis, index.long() % x.shape[axis])",
    "put_along": "torch.scatter(x, axis, index % x.shape[axis], value) if reduce == 'assign' else "
                 "torch.scatter_reduce(x, axis, index % x.shape[axis], value, {'add': 'sum', 'mul': 'prod'}[reduce], "
                 "include_self=include_self)",
    "put_along_extreme": "torch.scatter_reduce(x, axis, index, value, reduce, include_self=include_self)",
    "take_along_axis": "torch.take_along_dim(arr, indices, axis) if broadcast else torch.gather(arr, axis, indices)",
    "put_along_axis": "(lambda at, v: torch.scatter(arr, axis, at, v) if reduce == 'assign' else "
                      "torch.scatter_reduce(arr, axis, at, v, {'add': 'sum', 'mul': 'prod'}.get(reduce, reduce), "
                      "include_self=include_self))(*(lambda at: (at % arr.shape[axis], values.expand(at.shape) if broadcast or values.ndim == 0 else "
                      "values[tuple(map(slice, at.shape))].expand(at.shape)))(indices.expand("
                      "[n if i == axis % arr.ndim or not broadcast else m for i, (n, m) in "
                      "enumerate(zip(indices.shape, arr.shape))])))",
    # creation
    "full": "torch.full(shape, fill_value, dtype=dtype or torch.float32)",
    "full_like": "torch.full_like(x, fill_value, dtype=dtype)",
    "zeros": "torch.zeros(shape, dtype=dtype)",
    "ones": "torch.ones(shape, dtype=dtype)",
    "zeros_like": "torch.zeros_like(x, dtype=dtype)",
    "ones_like": "torch.ones_like(x, dtype=dtype)",
    "range": "torch.arange(start, end, step, dtype=dtype)",
    "cast": "x.to(dtype) if dtype != torch.bfloat16 else x.to(dtype).to(torch.float32)",
    "assign": "x.clone()",
    # diagonals
    "diag_embed": "torch.diag_embed(input, offset, dim1, dim2)",
    "diag": "torch.diag(x, offset) if x.ndim == 2 else torch.where("
            "torch.diag(torch.ones_like(x, dtype=torch.bool), offset), torch.diag(x, offset), "
            "torch.tensor(padding_value, dtype=x.dtype))",
    "diagflat": "torch.diagflat(x, offset)",
    "diagonal_scatter": "torch.diagonal_scatter(x, y, offset, axis1, axis2)",
    "block_diag": "torch.block_diag(*inputs)",
    # gather
    "gather": "torch.index_select(x, axis or 0, index.reshape(-1) % x.shape[axis or 0]).reshape("
              "x.shape[:(axis or 0) % x.ndim] + index.shape + x.shape[(axis or 0) % x.ndim + 1:])",
    "index_select": "torch.index_select(x, axis, index % x.shape[axis])",
    "gather_nd": "x[tuple(index.unbind(-1))] if index.shape[-1] else x.expand(index.shape[:-1] + x.shape)",
    "index_sample": "torch.gather(x, 1, index)",
    "take": "torch.take(x, index if mode == 'raise' else index % x.numel() if mode == 'wrap' else "
            "index.clip(0, x.numel() - 1))",
    "scatter": "x.index_copy(0, index, updates) if overwrite else "
               "x.index_fill(0, index, 0).index_add(0, index, updates)",
    "scatter_nd_add": "torch.index_put(x, tuple(index.unbind(-1)), updates, accumulate=True)",
    "scatter_nd": "torch.index_put(torch.zeros(shape, dtype=updates.dtype), tuple(index.unbind(-1)), updates, "
                  "accumulate=True)",
    "index_add": "torch.index_add(x, axis, index, value)",
    "index_fill": "torch.index_fill(x, axis, index % x.shape[axis], value)",
    # index
    "index_get": "x[places(indices)]",
    "index_take": "x[places(indices)]",
    "index_put": "torch.index_put(x, places(indices), value, accumulate)",
    "nonzero": "torch.nonzero(x)",
    "masked_select": "torch.masked_select(x, mask)",
    "masked_fill": "torch.masked_fill(x, mask, value)",
    "masked_scatter": "torch.masked_scatter(x, mask, value)",
    "one_hot": "F.one_hot(x.long(), num_classes)",
    # join
    "concat": "torch.cat(x, axis)",
    "stack": "torch.stack(x, axis)",
    "split_sections": "torch.split(x, [n if n >= 0 else x.shape[axis] - sum(m for m in sections if m >= 0) "
                      "for n in sections], axis)",
    "split": "torch.tensor_split(x, num_or_sections[0], axis) if len(num_or_sections) == 1 else "
             "torch.split(x, num_or_sections, axis)",
    "chunk": "torch.tensor_split(x, chunks, axis)",
    "tensor_split_at": "torch.tensor_split(x, indices, axis)",
    "tensor_split": "torch.tensor_split(x, num_or_indices[0] if len(num_or_indices) == 1 else num_or_indices, axis)",
    "unbind": "torch.unbind(input, axis)",
    "unstack": "torch.unbind(x, axis)",
    # pad
    "pad_constant": "F.pad(x, [p for i in range(x.ndim - 1, -1, -1) for p in paddings[2 * i:2 * i + 2]], value=value)",
    # rearrange
    "tile": "torch.tile(x, repeat_times)",
    "repeat_interleave": "torch.repeat_interleave(x, repeats, axis)",
    "repeat_positions": "torch.repeat_interleave(repeats)",
    "repeat_interleave_by": "torch.repeat_interleave(x, repeats, axis)",
    "swapaxes": "torch.swapaxes(x, axis0, axis1)",
    "rot90": "torch.rot90(x, k, axes)",
    "tril": "torch.tril(x, diagonal)",
    "triu": "torch.triu(x, diagonal)",
    "bitcast": "x.view(dtype)",
    # shape
    "broadcast_to": "torch.broadcast_to(x, shape)",
    "sum_to": "x.sum_to_size(shape)",
    "reshape": "torch.reshape(x, [x.shape[i] if n == 0 and x.numel() else n for i, n in enumerate(shape)])",
    "transpose": "torch.permute(x, perm)",
    "expand": "x.expand(shape)",
    "expand_as": "x.expand_as(y)",
    "view_as": "x.view_as(other)",
    "squeeze": "torch.squeeze(x) if axis is None else torch.squeeze(x, tuple(axis))",
    "unsqueeze": "(lambda r: x.reshape([1 if i in r else x.shape[i - sum(j < i for j in r)] for i in "
                 "__import__('builtins').range(x.ndim + len(axis))]))([a % (x.ndim + len(axis)) for a in axis])",
    "flatten": "torch.flatten(x, start_axis, stop_axis)",
    "unflatten": "torch.unflatten(x, axis, shape)",
    "moveaxis": "torch.moveaxis(x, source, destination)",
    # slice
    "slice_view": "x[slices(index)]",
    "slice_put": "written(x, slices(index), value)",
    "slice_scatter": "written(x, along(__import__('builtins').slice(starts[0], ends[0], strides[0]), axes[0], x.ndim), "
                     "value) if len(axes) == 1 else None",
    "slice": "input[ranges(input.ndim, axes, starts, ends)]",
    "strided_slice": "x[ranges(x.ndim, axes, starts, ends, strides)]",
    "crop": "x[tuple(__import__('builtins').slice(o, None if n == -1 else o + n) for o, n in "
            "zip(offsets or [0] * x.ndim, shape or [-1] * x.ndim))]",
    "select_scatter": "torch.select_scatter(x, values, axis, index)",
    "flip": "torch.flip(x, axis)",
    "roll": "torch.roll(x, shifts, axis)",
    # stacking
    "atleast_1d": "torch.atleast_1d(*inputs)",
    "atleast_2d": "torch.atleast_2d(*inputs)",
    "atleast_3d": "torch.atleast_3d(*inputs)",
    "hstack": "torch.hstack(x)",
    "vstack": "torch.vstack(x)",
    "row_stack": "torch.row_stack(x)",
    "dstack": "torch.dstack(x)",
    "column_stack": "torch.column_stack(x)",
    "broadcast_tensors": "torch.broadcast_tensors(*input)",
    "meshgrid": "torch.meshgrid(*inputs, indexing='ij')",
    "cartesian_prod": "torch.cartesian_prod(*x)",
    # strided
    "as_strided": "torch.as_strided(x, shape, stride, offset)",
    "as_strided_grad": "transposed(lambda x: torch.as_strided(x, value.shape, stride, offset), shape, value)",
    "diagonal": "torch.diagonal(x, offset, axis1, axis2)",
    "unfold": "x.unfold(axis, size, step)",
    # vision
    "pixel_shuffle": "channels_last(F.pixel_shuffle(channels_first(x, data_format), upscale_factor), data_format)",
    "pixel_unshuffle": "channels_last(F.pixel_unshuffle(channels_first(x, data_format), downscale_factor), "
                       "data_format)",
    "channel_shuffle": "channels_last(F.channel_shuffle(channels_first(x, data_format), groups), data_format)",
}

CONSTANT: dict[str, tuple[str, ...]] = {}

# op -> ("values" or "gradients", for which arguments, why)
DIFFERENT = {
    "put_along": ("gradients", "reduce == 'assign'", "a value that another overwrites gets a gradient there"),
    "index_put": ("gradients", "not accumulate", "a value that another overwrites gets a gradient there"),
    "pixel_unshuffle": ("values", "x.size == 0", "gives back an empty operand as it is there"),
}
