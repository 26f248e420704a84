"""Sums, extremes, products of matrices, scans, sorting, searching."""

TORCH = {
    # contraction
    "tensordot_axes": "torch.tensordot(x, y, (x_axes, y_axes))",
    "euclidean_pairs": "torch.cdist(x, y, 2.0)",
    "cdist": "torch.cdist(x, y, p, compute_mode)",
    "dist": "torch.dist(x, y, p)",
    "cross": "(lambda a, b: linalg.cross(a, b, dim=list(a.shape).index(3) if axis == 9 else axis))"
             "(*torch.broadcast_tensors(x, y))",
    "trace": "torch.diagonal(x, offset, axis1, axis2).sum(-1)",
    "vander": "torch.vander(x, n, increasing)",
    "renorm": "torch.renorm(x, p, axis, max_norm)",
    # difference
    "extreme_along": "torch.cummax(x, axis) if largest else torch.cummin(x, axis)",
    "cummax": "torch.cummax(x.flatten() if axis is None else x, axis or 0)",
    "cummin": "torch.cummin(x.flatten() if axis is None else x, axis or 0)",
    "diff": "torch.diff(x, n, axis, prepend, append)",
    "trapezoid": "torch.trapezoid(y, dx=1 if dx is None else dx, dim=axis) if x is None else "
                 "torch.trapezoid(y, x, dim=axis)",
    "cumulative_trapezoid": "torch.cumulative_trapezoid(y, dx=1 if dx is None else dx, dim=axis) if x is None else "
                            "torch.cumulative_trapezoid(y, x, dim=axis)",
    "reduce_as": "x.sum_to_size(target.shape)",
    "add_n": "sum(inputs[1:], inputs[0])",
    # einsum
    "einsum": "torch.einsum(equation, operands)",
    # extremes
    "max": "torch.amax(x, axes(axis) or (), keepdim)",
    "min": "torch.amin(x, axes(axis) or (), keepdim)",
    "amax": "torch.amax(x, axes(axis) or (), keepdim)",
    "amin": "torch.amin(x, axes(axis) or (), keepdim)",
    "argmax": "torch.argmax(x, axis, keepdim)",
    "argmin": "torch.argmin(x, axis, keepdim)",
    # linalg
    "matmul_core": "torch.matmul(x, y)",
    "matmul": "torch.matmul(x.mT if transpose_x and x.ndim > 1 else x, y.mT if transpose_y and y.ndim > 1 else y)",
    "linear": "x @ weight + (0 if bias is None else bias) if weight.ndim != 2 or (bias is not None and bias.ndim > 1) else "
              "F.linear(x, weight.T, bias.expand(weight.shape[1]) if bias is not None else None)",
    # order_statistics
    "mode_along": "torch.mode(x, axis)",
    "median_along": "(torch.nanmedian if ignore_nan else torch.median)(x, axis, True) if not average else "
                    "((torch.nanquantile if ignore_nan else torch.quantile)(x, 0.5, axis, True), None)",
    "quantile_along": "(torch.nanquantile if ignore_nan else torch.quantile)(x, q.to(x.dtype), -1, "
                      "interpolation=interpolation)",
    # products
    "mm": "torch.mm(input, mat2) if input.ndim == mat2.ndim == 2 else torch.matmul(input, mat2)",
    "bmm": "torch.bmm(x, y)",
    "dot": "(x * y).sum(-1)",
    "mv": "torch.mv(x, vec)",
    "outer": "torch.outer(x.flatten(), y.flatten())",
    "inner": "torch.inner(x, y)",
    "addmm": "torch.addmm(input, x, y, beta=beta, alpha=alpha)",
    "kron": "torch.kron(x, y)",
    # reduction
    "sum": "torch.sum(x, axes(axis), keepdim, dtype=dtype)",
    "mean": "torch.mean(x, axes(axis), keepdim)",
    "prod": "torch.prod(x, dtype=dtype) if not axis and not keepdim else "
            "torch.prod(x, axis[0], keepdim, dtype=dtype) if axis and len(axis) == 1 else None",
    "all": "torch.all(x, axes(axis), keepdim)",
    "any": "torch.any(x, axes(axis), keepdim)",
    "count_nonzero": "torch.count_nonzero(x, axes(axis)) if not keepdim else "
                     "(x != 0).sum(axes(axis), keepdim=True)",
    "nansum": "torch.nansum(x, axes(axis), keepdim, dtype=dtype)",
    "nanmean": "torch.nanmean(x, axes(axis), keepdim)",
    # scan
    "cumsum_along": "(lambda y: (lambda c: c.flip(axis) if reverse else c)(torch.cumsum(y, axis, dtype=x.dtype) - "
                    "exclusive * y))(x.flip(axis) if reverse else x)",
    "cumsum": "torch.cumsum(x.flatten() if axis is None else x, axis or 0, dtype=dtype)",
    "cumprod_along": "torch.cumprod(x, axis, dtype=x.dtype) if not exclusive else torch.cumprod(torch.cat("
                     "[torch.ones_like(x.narrow(axis, 0, 1)), x.narrow(axis, 0, x.shape[axis] - 1)], axis), axis, "
                     "dtype=x.dtype) if x.ndim and x.shape[axis] else x.clone() if x.ndim else torch.ones_like(x)",
    "cumprod": "torch.cumprod(x.flatten() if dim is None else x, dim or 0, dtype=dtype)",
    "logcumsumexp_along": "torch.logcumsumexp(x, axis) if not reverse else "
                          "torch.logcumsumexp(x.flip(axis), axis).flip(axis)",
    "logcumsumexp": "torch.logcumsumexp(x.flatten() if axis is None else x, axis or 0).to(dtype or x.dtype)",
    # search
    "searchsorted": "torch.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right)",
    "bucketize": "torch.bucketize(x, sorted_sequence, out_int32=out_int32, right=right)",
    "isin": "torch.isin(x, test_x, assume_unique=assume_unique, invert=invert)",
    "bincount": "torch.bincount(x, weights, minlength)",
    "histogram_counts": "torch.histc(input.double(), bins, min, max) if weight is None else "
                        "torch.histogram(input.double(), bins, range=(min, max), weight=weight.double())[0]",
    "unique_flat": "(lambda out, inverse, counts: (out, None, inverse.flatten() if return_inverse else None, "
                   "counts if return_counts else None))(*torch.unique(x, return_inverse=True, return_counts=True))",
    "unique_rows": "(lambda out, inverse, counts: (None, inverse, counts))(*(torch.unique_consecutive if consecutive "
                   "else torch.unique)(x, return_inverse=True, return_counts=True, dim=0))",
    # sort
    "sort_with_indices": "torch.sort(x, dim=axis, descending=descending, stable=True)",
    "sort": "torch.sort(x, axis, descending)[0]",
    "argsort": "torch.argsort(x, dim=axis, descending=descending, stable=True)",
    "topk_along": "(lambda v, i: (v, i if x.is_floating_point() else None))(*torch.topk(x, k, axis, largest))",
    "topk": "torch.topk(x, k, -1 if axis is None else axis, largest, sorted)",
    "kthvalue": "(lambda v, i: (v, i if x.is_floating_point() else None))"
                "(*torch.kthvalue(x, k, -1 if axis is None else axis, keepdim))",
    # statistics
    "var": "torch.var(x, axes(axis), correction=int(unbiased), keepdim=keepdim)",
    "std": "torch.std(x, axes(axis), correction=int(unbiased), keepdim=keepdim)",
    "logsumexp": "torch.logsumexp(x, axes(axis) or tuple(range(x.ndim)), keepdim)",
    "root_sum_square": "linalg.vector_norm(x, 2, axes(axis), keepdim)",
    "p_norm": "linalg.vector_norm(x, porder, axes(axis), keepdim)",
    # var_mean
    "var_mean": "torch.var_mean(x, axes(axis), correction=int(unbiased), keepdim=keepdim)",
    # vecdot
    "vecdot": "linalg.vecdot(x, y, dim=axis)",
}

CONSTANT: dict[str, tuple[str, ...]] = {}

# op -> ("values" or "gradients", for which arguments, why)
DIFFERENT = {
    "cdist": ("gradients", "p == float('inf')", "elements that tie get the whole gradient each there, a share here"),
    "dist": ("gradients", "p == 0", "fails there"),
    "cumprod": ("gradients", "dtype is not None and 'complex' in x.dtype.name", "forgets the cast of x there"),
}
