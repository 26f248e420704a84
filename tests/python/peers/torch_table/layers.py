"""Convolution, pooling, normalisation, attention, embeddings, resampling."""

TORCH = {
    # adaptive_pooling
    "adaptive_avg_pool1d": "adaptive('avg', x, output_size, data_format)",
    "adaptive_avg_pool2d": "adaptive('avg', x, output_size, data_format)",
    "adaptive_avg_pool3d": "adaptive('avg', x, output_size, data_format)",
    "adaptive_max_pool1d": "adaptive('max', x, output_size)",
    "adaptive_max_pool2d": "adaptive('max', x, output_size)",
    "adaptive_max_pool3d": "adaptive('max', x, output_size)",
    "adaptive_max_pool_with_mask": "adaptive('max', x, output_size, mask=True)",
    # attention
    "attention": "(attention(query, key, value, mask, scale, causal, dropout), "
                 "log_total(query, key, mask, scale, causal))",
    "scaled_dot_product_attention": "attention(query, key, value, attn_mask if attn_mask is None or "
                                    "attn_mask.ndim < 3 else attn_mask.unsqueeze(-3), scale, is_causal, "
                                    "dropout_p if training else 0.0)",
    # batch_norm
    "batch_norm_train": "(lambda r, y: ((torch.relu if relu else torch.clone)(F.batch_norm(y, None, None, weight, "
                        "bias, True, 0.1, epsilon)).movedim(1, channel_axis), *torch.var_mean(y, r, correction=0)[::-1]))"
                        "((0, *range(2, x.ndim)), x.movedim(channel_axis, 1))",
    "batch_norm": "channels_last(F.batch_norm(channels_first(x, data_format), running_mean, running_var, weight, "
                  "bias, training and not use_global_stats, 1 - momentum, epsilon), data_format)",
    # channels
    "group_norm_rows": "(F.group_norm(x, groups or x.shape[1], weight, bias, epsilon), *(lambda v, m: (m, "
                       "torch.rsqrt(v + epsilon)))(*torch.var_mean(x.reshape(x.shape[0], groups or x.shape[1], -1), "
                       "-1, correction=0)))",
    # columns
    "im2col": "F.unfold(F.pad(x, (paddings[1], paddings[3], paddings[0], paddings[2])), kernel_sizes, dilations, 0, "
              "strides)",
    "col2im": "F.pad(F.fold(x, (output_sizes[0] + paddings[0] + paddings[2], output_sizes[1] + paddings[1] + "
              "paddings[3]), kernel_sizes, dilations, 0, strides), (-paddings[1], -paddings[3], -paddings[0], "
              "-paddings[2]))",
    # conv
    "conv": "conv(x, weight, bias, stride, padding, dilation, groups, 'NLC' if channels_last else 'NCL')",
    "conv_input_grad": "transposed(lambda x: conv(x, weight.conj(), None, stride, padding, dilation, groups, "
                       "'NLC' if channels_last else 'NCL'), x_shape, grad)",
    "conv_weight_grad": "transposed(lambda weight: conv(x.conj(), weight, None, stride, padding, dilation, groups, "
                        "'NLC' if channels_last else 'NCL'), weight_shape, grad)",
    # convolution
    "conv1d": "conv(x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm)",
    "conv2d": "conv(x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm)",
    "conv3d": "conv(x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm)",
    "conv1d_transpose": "conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, "
                        "output_size, data_format, padding_algorithm)",
    "conv2d_transpose": "conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, "
                        "output_size, data_format, padding_algorithm)",
    "conv3d_transpose": "conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, "
                        "output_size, data_format, padding_algorithm)",
    # embedding
    "embedding": "F.embedding(x, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)",
    "embedding_grad": "transposed(lambda weight: F.embedding(x, weight, None if padding_idx < 0 else padding_idx), "
                      "(num_rows, *value.shape[x.ndim:]), value)",
    # norm
    "layer_norm_rows": "(F.layer_norm(x, x.shape[begin_axis:], weight if weight is None else "
                       "weight.reshape(x.shape[begin_axis:]), bias if bias is None else "
                       "bias.reshape(x.shape[begin_axis:]), epsilon), *(lambda v, m: (m, torch.rsqrt(v + epsilon)))"
                       "(*torch.var_mean(x, tuple(range(begin_axis, x.ndim)), correction=0)))",
    "layer_norm": "F.layer_norm(x, normalized_shape, weight if weight is None else weight.reshape(normalized_shape), "
                  "bias if bias is None else bias.reshape(normalized_shape), epsilon)",
    "rms_norm": "F.rms_norm(x, normalized_shape, weight, epsilon)",
    "group_norm": "channels_last(F.group_norm(channels_first(x, data_format), num_groups, weight, bias, epsilon), "
                  "data_format)",
    "instance_norm": "channels_last(F.instance_norm(channels_first(x, data_format), running_mean, running_var, weight, "
                     "bias, use_input_stats, 1 - momentum, eps), data_format)",
    "normalize": "F.normalize(x, p, axis if x.ndim > 1 else 0, epsilon)",
    "local_response_norm": "channels_last(F.local_response_norm(channels_first(x, data_format), size, alpha, beta, k), "
                           "data_format)",
    # pad
    "pad_edges": "(lambda n: F.pad(x[(None,) * (2 + n - x.ndim)] if n < x.ndim else x[None, None], [p for i in "
                 "range(x.ndim - 1, x.ndim - 1 - n, -1) for p in paddings[2 * i:2 * i + 2]], "
                 "{'edge': 'replicate', 'wrap': 'circular'}.get(mode, mode)).reshape([m + a + b for m, a, b in "
                 "zip(x.shape, paddings[::2], paddings[1::2])]))(x.ndim - next((i for i in range(x.ndim) if "
                 "any(paddings[2 * i:2 * i + 2])), x.ndim - 1))",
    # pool
    "max_pool": "max_pool(x, kernel_size, stride, padding, ceil_mode, 'NLC' if channels_last else 'NCL', mask=True)",
    "adaptive_max_pool": "adaptive('max', x, output_size, 'NLC' if channels_last else 'NCL', mask=True)",
    "avg_pool": "avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor, "
                "'NLC' if channels_last else 'NCL')",
    "avg_pool_grad": "transposed(lambda x: avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor, "
                     "'NLC' if channels_last else 'NCL'), x_shape, grad)",
    "adaptive_avg_pool_grad": "transposed(lambda x: adaptive('avg', x, grad.shape[1:-1] if channels_last else "
                              "grad.shape[2:], 'NLC' if channels_last else 'NCL'), x_shape, grad)",
    "adaptive_avg_pool": "adaptive('avg', x, output_size, 'NLC' if channels_last else 'NCL')",
    # pooling
    "max_pool1d": "max_pool(x, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm)",
    "max_pool2d": "max_pool(x, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm)",
    "max_pool3d": "max_pool(x, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm)",
    "max_pool_with_mask": "max_pool(x, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm, True)",
    "avg_pool1d": "avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format, "
                  "padding_algorithm)",
    "avg_pool2d": "avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format, "
                  "padding_algorithm)",
    "avg_pool3d": "avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format, "
                  "padding_algorithm)",
    "lp_pool": "lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm)",
    "max_unpool": "max_unpool(x, indices, kernel_size, stride, padding, output_size, data_format)",
    # recurrent
    "recurrent": "recurrent(gates, weight, hidden, cell, bias, projection, length, mode, reverse)",
    # resample
    "resample": "interpolate(x, axis, size, scale, mode, None if mode == 'area' else align_corners, align_mode)",
    "resample_nearest": "interpolate(x, axis, size, scale, 'nearest')",
    # sampling
    "grid_sample": "F.grid_sample(x, grid, mode, padding_mode, align_corners)",
    "grid_sample_grad_x": "transposed(lambda x: F.grid_sample(x, grid, mode, padding_mode, align_corners), x_shape, "
                          "grad)",
    "grid_sample_grad_grid": "vjp(lambda grid: F.grid_sample(x, grid, mode, padding_mode, align_corners), grid, grad)",
    "affine_grid": "F.affine_grid(theta, out_shape, align_corners)",
    # softmax
    "softmax": "F.softmax(x, axis, dtype=dtype)",
    "softmax_grad": "aten._softmax_backward_data(grad, out, axis, out.dtype)",
    "log_softmax": "F.log_softmax(x, axis, dtype=dtype)",
    "log_softmax_grad": "aten._log_softmax_backward_data(grad, out, axis, out.dtype)",
}

CONSTANT = {
    "batch_norm": ("running_mean", "running_var"),
    "instance_norm": ("running_mean", "running_var"),
}

# op -> ("values" or "gradients", for which arguments, why)
DIFFERENT = {
    "embedding": ("values", "padding_idx is not None", "the padding's row is zero only in the gradient there"),
}
