"""What sparse tensors, sparse convolutions and graphs are computed with: rows, places and compressed matrices."""

TORCH = {
    # forms of indices
    "compress_rows": "torch.searchsorted(rows, torch.arange(size[0] + 1, dtype=rows.dtype))",
    "expand_rows": "rows_of(crows)",
    "key_order": "torch.argsort(keys, stable=True)",
    "merge_sorted": "(lambda u: (u, torch.searchsorted(u, x), torch.searchsorted(u, y)))(torch.unique(torch.cat([x, y])))",
    "ravel_indices": "(indices * torch.tensor([math.prod(shape[i + 1:]) for i in range(len(shape))]).reshape(-1, 1)).sum(0)",
    "unravel_indices": "torch.stack(torch.unravel_index(x, tuple(shape)))",
    # sums by place
    "sums_at": "values.new_zeros(size[0], *values.shape[1:]).index_add(0, places, values)",
    "segment_rows": "segment_rows(x, segment_ids, size, pooltype)",
    "segment_pool": "segment_rows(x, segment_ids, int(segment_ids.max()) + 1 if len(segment_ids) else 0, pooltype)",
    # products
    "coo_matmul": "torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (size[0], y.shape[0])) @ y",
    "csr_matmul": "csr(crows, cols, values, y.shape[0]) @ y",
    "csr_product": "csr_product(csr(x_crows, x_cols, x_values, len(y_crows) - 1), csr(y_crows, y_cols, y_values, size[0]))",
    "csr_dots": "(csr(x_crows, x_cols, x_values, size[0]).to_dense()[rows] * "
                "csr(y_crows, y_cols, y_values, size[0]).to_dense()[cols]).sum(1)",
    "csr_softmax": "torch.cat([row.softmax(0) for row in values.split(crows.diff().tolist())])",
    "sampled_matmul": "(x[rows] * y[cols]).sum(1)",
    "rule_matmul": "x.new_zeros(size[0], weight.shape[2]).index_add("
                   "0, outputs, (x[inputs].unsqueeze(1) @ weight[taps]).squeeze(1))",
    "rule_outer": "x.new_zeros(size[0], x.shape[1], y.shape[1]).index_add("
                  "0, taps, x[inputs].unsqueeze(2) * y[outputs].unsqueeze(1))",
}

DIFFERENT: dict[str, tuple[str, str, str]] = {}
CONSTANT: dict[str, tuple[str, ...]] = {}
