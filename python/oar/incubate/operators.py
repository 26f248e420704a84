"""Functions under Paddle's incubating path: graphs, softmax with masks, a loss for models that compute it themselves."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.geometric import segment_max, segment_mean, segment_min, segment_sum, send_u_recv

__all__ = [
    "graph_send_recv",
    "identity_loss",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "softmax_mask_fuse",
    "softmax_mask_fuse_upper_triangle",
]


def graph_send_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, pool_type: str = "sum", out_size: int | Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """``oar.geometric.send_u_recv`` under its older name.

    Args:
        x: the input.
        src_index: for each edge, the row it comes from.
        dst_index: for each edge, the row it leads to.
        pool_type: 'sum', 'mean', 'max' or 'min'.
        out_size: the number of rows of the result; that of x if None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.graph_send_recv(oar.to_tensor([[1.0], [2.0]]), oar.to_tensor([0, 1]), oar.to_tensor([1, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.],
                [3.]])
    """
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


def softmax_mask_fuse(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """softmax(x + mask) along the last axis.

    Args:
        x: the input.
        mask: what is added to x before the softmax.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, mask = oar.zeros([1, 1, 1, 2]), oar.to_tensor([[[[0.0, -1e4]]]])
        >>> oar.incubate.softmax_mask_fuse(x, mask).flatten()
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 0.])
    """
    return ops.softmax(ops.add(x, mask), -1)


def softmax_mask_fuse_upper_triangle(x: Tensor) -> Tensor:
    """softmax along the last axis of scores [..., n, n], where row i sees the columns up to i; the rest is 0.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.softmax_mask_fuse_upper_triangle(oar.zeros([1, 1, 2, 2])).reshape([2, 2])
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1.        , 0.        ],
                [0.50000000, 0.50000000]])
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[softmax_mask_fuse_upper_triangle] x must end with two equal sizes, not {list(x.shape)}.")
    seen = ops.tril(ops.ones(list(x.shape[-2:]), "bool"))
    return ops.softmax(ops.where(seen, x, ops.full([], float("-inf"), x.dtype)), -1)


def identity_loss(x: Tensor, reduction: str | int = "none") -> Tensor:
    """x itself, its sum or its mean: the loss of a model that computes its own. Reductions have numbers too: 0 is sum,
    1 mean, 2 none.

    Args:
        x: the input.
        reduction: 'mean', 'sum' or 'none'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.identity_loss(oar.to_tensor([1.0, 3.0]), reduction='mean')
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               2.)
    """
    numbered = {0: "sum", 1: "mean", 2: "none"}
    how = numbered.get(reduction, reduction) if isinstance(reduction, int) else reduction.lower()
    if how not in numbered.values():
        raise ValueError(f"[identity_loss] reduction is {reduction!r}; it must be 'sum', 'mean' or 'none'.")
    return {"sum": ops.sum, "mean": ops.mean, "none": ops.assign}[str(how)](x)
