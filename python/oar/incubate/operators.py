"""Functions under Paddle's incubating path: graphs, softmax with masks, a loss for models that compute it themselves."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.geometric import (
    reindex_graph,
    sample_neighbors,
    segment_max,
    segment_mean,
    segment_min,
    segment_sum,
    send_u_recv,
)

__all__ = [
    "graph_khop_sampler",
    "graph_reindex",
    "graph_sample_neighbors",
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


def graph_reindex(
    x: Tensor, neighbors: Tensor, count: Tensor, value_buffer: Tensor | None = None, index_buffer: Tensor | None = None,
    flag_buffer_hashtable: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``oar.geometric.reindex_graph`` under its older name.

    Args:
        x: different nodes.
        neighbors: the neighbors of all of them, one after the other.
        count: how many neighbors each node has.
        value_buffer: not needed; GPUs use it in Paddle.
        index_buffer: not needed; GPUs use it in Paddle.
        flag_buffer_hashtable: not needed; GPUs use it in Paddle.

    Returns:
        where each edge comes from, where it leads to, and the old number of each node.

    Examples:
        >>> import oar
        >>> x, neighbors = oar.to_tensor([0, 1]), oar.to_tensor([8, 9, 0])
        >>> src, dst, nodes = oar.incubate.graph_reindex(x, neighbors, oar.to_tensor([2, 1], dtype='int32'))
        >>> src.tolist(), dst.tolist(), nodes.tolist()
        ([2, 3, 0], [0, 0, 1], [0, 1, 8, 9])
    """
    return reindex_graph(x, neighbors, count, value_buffer, index_buffer)


def graph_sample_neighbors(
    row: Tensor, colptr: Tensor, input_nodes: Tensor, eids: Tensor | None = None, perm_buffer: Tensor | None = None,
    sample_size: int = -1, return_eids: bool = False, flag_perm_buffer: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """``oar.geometric.sample_neighbors`` under its older name.

    Args:
        row: the neighbors of all nodes, one after the other.
        colptr: where the neighbors of each node begin, and where the last ones end.
        input_nodes: the nodes whose neighbors are drawn.
        eids: a number for each edge.
        perm_buffer: not needed; GPUs use it in Paddle.
        sample_size: how many; -1 for all.
        return_eids: whether the numbers of the edges are returned.
        flag_perm_buffer: not needed; GPUs use it in Paddle.

    Returns:
        the neighbors, how many each node has, and with return_eids the numbers of the edges.

    Examples:
        >>> import oar
        >>> row, colptr = oar.to_tensor([3, 7, 0, 9, 1]), oar.to_tensor([0, 2, 4, 5])
        >>> neighbors, count = oar.incubate.graph_sample_neighbors(row, colptr, oar.to_tensor([0, 2]))
        >>> neighbors.tolist(), count.tolist()
        ([3, 7, 1], [2, 1])
    """
    if flag_perm_buffer and perm_buffer is None:
        raise ValueError("[graph_sample_neighbors] perm_buffer is None, but flag_perm_buffer is True. Pass both or neither.")
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


def graph_khop_sampler(
    row: Tensor, colptr: Tensor, input_nodes: Tensor, sample_sizes: list[int] | tuple[int, ...],
    sorted_eids: Tensor | None = None, return_eids: bool = False, name: str | None = None,
):
    """Neighbors of nodes, neighbors of those, and so on, drawn at random, with nodes numbered anew.

    Args:
        row: the neighbors of all nodes, one after the other.
        colptr: where the neighbors of each node begin, and where the last ones end.
        input_nodes: the nodes to start from.
        sample_sizes: how many neighbors of a node are drawn in each step; -1 for all.
        sorted_eids: a number for each edge.
        return_eids: whether the numbers of the edges are returned.

    Returns:
        where each edge comes from and leads to, [edges, 1] each; the old number of each node; the new numbers of
        input_nodes; and with return_eids the numbers of the edges.

    Examples:
        >>> import oar
        >>> row, colptr = oar.to_tensor([1, 2, 0, 0]), oar.to_tensor([0, 2, 3, 4])
        >>> src, dst, nodes, starts = oar.incubate.graph_khop_sampler(row, colptr, oar.to_tensor([1]), [1, 2])
        >>> src.flatten().tolist(), dst.flatten().tolist(), nodes.tolist(), starts.tolist()
        ([1, 0, 2], [0, 1, 1], [1, 0, 2], [0])
    """
    if return_eids and sorted_eids is None:
        raise ValueError("[graph_khop_sampler] return_eids is True, but sorted_eids is None. Pass the number of each edge.")
    row, colptr = ops.reshape(row, [-1]), ops.reshape(colptr, [-1])
    frontier = start = ops.reshape(input_nodes, [-1])
    nodes, sources, targets, places, counts = start, [], [], [], []
    for size in sample_sizes:
        place, count = ops.sample_edges(colptr, frontier, None, size)
        found = ops.gather(row, place, 0)
        sources.append(found)
        targets.append(frontier)
        places.append(place)
        counts.append(count)
        _, _, nodes_after = ops.reindex_nodes(nodes, found, _counts_of(nodes, found))
        frontier, nodes = nodes_after[nodes.shape[0]:], nodes_after
    src, dst, index = ops.reindex_nodes(ops.concat(targets, 0), ops.concat(sources, 0), ops.concat(counts, 0))
    column = [ops.reshape(t, [-1, 1]) for t in (src, dst)]
    numbered, _, _ = ops.reindex_nodes(index, start, _counts_of(index, start))
    results = (*column, index, numbered)
    if not return_eids:
        return results
    return (*results, ops.gather(ops.reshape(sorted_eids, [-1]), ops.concat(places, 0), 0))


def _counts_of(nodes: Tensor, neighbors: Tensor) -> Tensor:
    """All neighbors belong to the first node: ``reindex_nodes`` is called for its numbers alone."""
    count = ops.zeros([nodes.shape[0]], "int32")
    if nodes.shape[0]:
        count[0] = neighbors.shape[0]
    return count


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
    if not x.dtype.name.startswith(("float", "bfloat")):
        raise TypeError(f"[identity_loss] x has dtype {x.dtype.name}; it should be a float. Cast it first.")
    numbered = {0: "sum", 1: "mean", 2: "none"}
    how = numbered.get(reduction, reduction) if isinstance(reduction, int) else reduction.lower()
    if how not in numbered.values():
        raise ValueError(f"[identity_loss] reduction is {reduction!r}; it must be 'sum', 'mean' or 'none'.")
    return {"sum": ops.sum, "mean": ops.mean, "none": ops.assign}[str(how)](x)
