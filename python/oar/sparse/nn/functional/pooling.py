"""Pooling of sparse images."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar._spelling import spelled
from oar.sparse.nn.functional.conv import check_images, images, per_axis, symmetric_padding

__all__ = ["max_pool3d"]


@spelled
def max_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NDHWC", name: str | None = None,
) -> Tensor:
    """The largest of the elements that a sparse volume holds in each window. Windows without an element are not held.

    Args:
        x: a COO tensor, format ``'NDHWC'``, whose channels are dense.
        kernel_size: the size of the windows: an integer or ``(depth, height, width)``.
        stride: the steps of the windows; None takes their size.
        padding: at both ends of each axis: an integer or ``(depth, height, width)``.
        ceil_mode: whether windows may reach over the end.
        data_format: ``'NDHWC'``.

    Returns:
        a COO tensor.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 0], [0, 1], [0, 1], [0, 1]], [[1.0], [2.0]], [1, 2, 2, 2, 1])
        >>> oar.sparse.nn.functional.max_pool3d(x, 2).to_dense().flatten().tolist()
        [2.0]
    """
    check_images("max_pool3d", x, 3, data_format)
    kernel = per_axis(kernel_size, 3, "kernel_size")
    steps = kernel if stride is None else per_axis(stride, 3, "stride")
    pads = symmetric_padding(padding, 3, data_format, kernel, [1, 1, 1])
    x = x.coalesce()
    sizes = list(x.shape[1:-1])
    made = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(sizes, kernel, steps, pads, strict=True)]
    room = sizes
    if ceil_mode:  # as many elements more as the last windows reach over the end, if they begin inside
        made = [-(-(n + 2 * p - k) // s) + 1 for n, k, s, p in zip(sizes, kernel, steps, pads, strict=True)]
        made = [m - 1 if (m - 1) * s >= n + p else m for m, n, s, p in zip(made, sizes, steps, pads, strict=True)]
        room = [max(n, (m - 1) * s + k - 2 * p)
                for m, n, k, s, p in zip(made, sizes, kernel, steps, pads, strict=True)]  # fmt: skip
    indices, inputs, outputs, _ = ops.conv_rules(x.indices(), room, kernel, steps, pads, [1, 1, 1], False)
    rows = ops.index_select(x.values(), inputs, 0)
    return images(x, indices, ops.segment_pool(rows, outputs, "max"), made, True)
