"""Nodes of a sampled graph, numbered anew."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor, ops

__all__ = ["reindex_graph", "reindex_heter_graph"]


def reindex_graph(
    x: Tensor, neighbors: Tensor, count: Tensor, value_buffer: Tensor | None = None, index_buffer: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Edges from neighbors to nodes, with nodes numbered anew: those of x first, then the neighbors in the order of
    their first occurrence.

    Args:
        x: different nodes.
        neighbors: the neighbors of all of them, one after the other.
        count: how many neighbors each node has.
        value_buffer: not needed; GPUs use it in Paddle.
        index_buffer: not needed; GPUs use it in Paddle.

    Returns:
        where each edge comes from, where it leads to, and the old number of each node.

    Examples:
        >>> import oar
        >>> x, neighbors = oar.to_tensor([0, 1, 2]), oar.to_tensor([8, 9, 0, 4, 7, 6, 7])
        >>> src, dst, nodes = oar.geometric.reindex_graph(x, neighbors, oar.to_tensor([2, 3, 2], dtype='int32'))
        >>> src.tolist(), dst.tolist(), nodes.tolist()
        ([3, 4, 0, 5, 6, 7, 6], [0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 8, 9, 4, 7, 6])
    """
    return ops.reindex_nodes(x, neighbors, count)


def reindex_heter_graph(
    x: Tensor, neighbors: Sequence[Tensor], count: Sequence[Tensor], value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """As ``reindex_graph``, for several types of edges between the same nodes.

    Args:
        x: different nodes.
        neighbors: for each type of edges, the neighbors of all nodes.
        count: for each type of edges, how many neighbors each node has.
        value_buffer: not needed; GPUs use it in Paddle.
        index_buffer: not needed; GPUs use it in Paddle.

    Returns:
        where each edge comes from, where it leads to, and the old number of each node.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([0, 1])
        >>> neighbors = [oar.to_tensor([4, 0]), oar.to_tensor([1, 5])]
        >>> count = [oar.to_tensor([1, 1], dtype='int32'), oar.to_tensor([2, 0], dtype='int32')]
        >>> src, dst, nodes = oar.geometric.reindex_heter_graph(x, neighbors, count)
        >>> src.tolist(), dst.tolist(), nodes.tolist()
        ([2, 0, 1, 3], [0, 1, 0, 0], [0, 1, 4, 5])
    """
    return ops.reindex_nodes(x, ops.concat(list(neighbors), 0), ops.concat(list(count), 0))
