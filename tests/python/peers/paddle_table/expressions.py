"""Ops that are called through a Python function, or as part of one."""

_CONV = "one(stride), padded(padding, padding_algorithm), "
_POOL = "one(kernel_size), one(stride), padded(padding, padding_algorithm), ceil_mode=ceil_mode"

PADDLE = {
    # adaptive pooling
    "adaptive_avg_pool1d": "F.adaptive_avg_pool1d(x, one(output_size)) if data_format == 'NCL' else None",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(x, one(output_size), data_format)",
    "adaptive_avg_pool3d": "F.adaptive_avg_pool3d(x, one(output_size), data_format)",
    "adaptive_max_pool1d": "F.adaptive_max_pool1d(x, one(output_size))",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(x, one(output_size))",
    "adaptive_max_pool3d": "F.adaptive_max_pool3d(x, one(output_size))",
    "adaptive_max_pool_with_mask": "of_rank('adaptive_max_pool', x)(x, one(output_size), True)",
    # detection
    "roi_align": "paddle.vision.ops.roi_align(x, boxes, boxes_num, one(output_size), spatial_scale, sampling_ratio, aligned)",
    "roi_pool": "paddle.vision.ops.roi_pool(x, boxes, boxes_num, one(output_size), spatial_scale)",
    "psroi_pool": "paddle.vision.ops.psroi_pool(x, boxes, boxes_num, one(output_size), spatial_scale)",
    # along
    "take_along": "paddle.take_along_axis(x, index, axis, False)",
    "put_along": "paddle.put_along_axis(x, index, value, axis, reduce, include_self, False)",
    "put_along_extreme": "paddle.put_along_axis(x, index, value, axis, reduce, include_self, False)",
    # arithmetic
    "bitwise_left_shift": "paddle.bitwise_left_shift(x, y, is_arithmetic)",
    "bitwise_right_shift": "paddle.bitwise_right_shift(x, y, is_arithmetic)",
    # complex
    "complex_conj": "paddle.conj(x)",
    # contraction
    "tensordot_axes": "paddle.tensordot(x, y, [x_axes, y_axes])",
    # factors of matrices; the phase of vectors is ours
    "cholesky_inverse": "paddle.linalg.cholesky_inverse(paddle.triu(x) if upper else paddle.tril(x), upper)",
    "eig": "ordered_eig(x)",
    "eigvals": "ordered_eigvals(x)",
    "eigh": "(lambda w, v: (w, gauged(v)))(*paddle.linalg.eigh(x, UPLO))",
    "lu_factor": "paddle.linalg.lu(x, True, True)",
    "lu_parts": "paddle.linalg.lu_unpack(x, y)",
    "pseudo_inverse": "paddle.linalg.pinv(x, rcond, hermitian)",
    "qr_parts": "paddle.linalg.qr(x, 'complete' if complete else 'reduced')",
    "slogdet_parts": "(lambda both: (both[0], paddle.real(both[1]) if both.is_complex() else both[1]))(paddle.linalg.slogdet(x))",
    "svd": "gauged_svd(x, full_matrices)",
    # convolution
    "conv1d": f"F.conv1d(x, weight, bias, {_CONV} one(dilation), groups, data_format)",
    "conv2d": f"F.conv2d(x, weight, bias, {_CONV} one(dilation), groups, data_format)",
    "conv3d": f"F.conv3d(x, weight, bias, {_CONV} one(dilation), groups, data_format)",
    "conv1d_transpose": f"F.conv1d_transpose(x, weight, bias, {_CONV} 0 if output_size else one(output_padding), "
                        "groups, one(dilation), output_size, data_format)",
    "conv2d_transpose": f"F.conv2d_transpose(x, weight, bias, {_CONV} 0 if output_size else one(output_padding), "
                        "one(dilation), groups, output_size, data_format)",
    "conv3d_transpose": f"F.conv3d_transpose(x, weight, bias, {_CONV} 0 if output_size else one(output_padding), "
                        "groups, one(dilation), output_size, data_format)",
    # creation
    "range": "paddle.arange(start, end, step, dtype)",
    "assign": "paddle.assign(x)",
    # cross_entropy
    "softmax_cross_entropy": "(F.softmax_with_cross_entropy(logits, label, False, ignore_index, axis=axis), None)",
    "soft_cross_entropy": "(F.softmax_with_cross_entropy(logits, label, True, axis=axis), None)",
    # difference
    "extreme_along": "(paddle.cummax if largest else paddle.cummin)(x, axis)",
    "add_n": "paddle.add_n(inputs)",
    # embedding
    "embedding_lookup": "F.embedding(x, weight, None if padding_idx < 0 else padding_idx, sparse)",
    # gates
    "gated_silu": "paddle.incubate.nn.functional.swiglu(x, y)",
    # index
    "index_get": "x[places(indices)]",
    "index_take": "x[places(indices)]",
    "nonzero": "paddle.nonzero(x)",
    # join
    "split": "paddle.split(x, one(num_or_sections), axis)",
    "split_sections": "paddle.split(x, sections, axis)",
    "tensor_split": "paddle.tensor_split(x, one(num_or_indices), axis)",
    "tensor_split_at": "paddle.tensor_split(x, indices, axis)",
    # order statistics
    "mode_along": "paddle.mode(x, axis)",
    "quantile_along": "(paddle.nanquantile if ignore_nan else paddle.quantile)"
                      "(x, q.tolist(), -1, interpolation=interpolation)",
    # pad
    "pad_constant": "F.pad(x, paddings, 'constant', value, pad_from_left_axis=True)",
    "pad_edges": "pad_edges(x, paddings, mode)",
    # pooling
    "max_pool_with_mask": f"of_rank('max_pool', x)(x, {_POOL}, return_mask=True, data_format=data_format)",
    "lp_pool": f"of_rank('lp_pool', x)(x, norm_type, {_POOL}, data_format=data_format)",
    "max_unpool": "of_rank('max_unpool', x)(x, indices, one(kernel_size), one(stride), one(padding), data_format, "
                  "output_size)",
    "max_pool1d": f"F.max_pool1d(x, {_POOL}) if data_format == 'NCL' else None",
    "max_pool2d": f"F.max_pool2d(x, {_POOL}, data_format=data_format)",
    "max_pool3d": f"F.max_pool3d(x, {_POOL}, data_format=data_format)",
    "avg_pool1d": f"F.avg_pool1d(x, {_POOL}, exclusive=exclusive) if data_format == 'NCL' else None",
    "avg_pool2d": f"F.avg_pool2d(x, {_POOL}, exclusive=exclusive, divisor_override=divisor_override, "
                  "data_format=data_format)",
    "avg_pool3d": f"F.avg_pool3d(x, {_POOL}, exclusive=exclusive, divisor_override=divisor_override, "
                  "data_format=data_format)",
    # rearrange
    "repeat_interleave": "paddle.repeat_interleave(x, repeats, axis)",
    "repeat_interleave_by": "paddle.repeat_interleave(x, repeats, axis)",
    "bitcast": "paddle.view(x, dtype)",
    # resample
    "resample": "interpolate(x, axis, size, scale, mode, align_corners, align_mode)",
    "resample_nearest": "interpolate(x, axis, size, scale, 'nearest', False, 0)",
    # search
    "histogram_counts": "paddle.histogram(input, bins, min, max, weight)",
    # slice
    "slice_view": "x[slices(index)]",
    "slice_put": "written(x, slices(index), value)",
    # sort
    "sort_with_indices": "(paddle.sort(x, axis, descending, True), paddle.argsort(x, axis, descending, True))",
    "topk_along": "paddle.topk(x, k, axis, largest)",
    # stacking
    "atleast_1d": "paddle.atleast_1d(*inputs)",
    "atleast_2d": "paddle.atleast_2d(*inputs)",
    "atleast_3d": "paddle.atleast_3d(*inputs)",
    "meshgrid": "paddle.meshgrid(*inputs)",
    # statistics
    "p_norm": "paddle.linalg.norm(x, porder, axis, keepdim)",
}

# Operands by which Paddle has no derivative, or none that it gives.
CONSTANT: dict[str, tuple[str, ...]] = {
    "binary_cross_entropy": ("label", "weight"),
    "binary_cross_entropy_with_logits": ("label", "weight", "pos_weight"),
    "cross_entropy": ("weight",),
    "diag_embed": ("input",),
    "diagonal_scatter": ("y",),
    "gammainc": ("x",),
    "pseudo_inverse": ("rcond",),
    "gammaincc": ("x",),
    "gaussian_nll_loss": ("variance",),
    "kl_div": ("label",),
    "label_smooth": ("prior_dist",),
    "lerp": ("weight",),
    "masked_fill": ("value",),
    "nll_loss": ("weight",),
    "quantile_along": ("q",),
    "sigmoid_focal_loss": ("label", "normalizer"),
}
