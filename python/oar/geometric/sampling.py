"""Neighbors of nodes, drawn at random."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["sample_neighbors", "weighted_sample_neighbors"]


def _flat(t: Tensor) -> Tensor:
    return t if t.ndim == 1 else ops.reshape(t, [-1])


def _sampled(op: str, row: Tensor, colptr: Tensor, nodes: Tensor, weight: Tensor | None, size: int,
             eids: Tensor | None, return_eids: bool):
    if not return_eids:
        eids = None
    elif eids is None:
        raise ValueError(f"[{op}] return_eids is True, but eids is None. Pass the number of each edge.")
    places, count = ops.sample_edges(_flat(colptr), _flat(nodes), None if weight is None else _flat(weight), size)
    found = ops.gather(_flat(row), places, 0)
    return (found, count) if eids is None else (found, count, ops.gather(_flat(eids), places, 0))


def sample_neighbors(
    row: Tensor, colptr: Tensor, input_nodes: Tensor, sample_size: int = -1, eids: Tensor | None = None,
    return_eids: bool = False, perm_buffer: Tensor | None = None, name: str | None = None,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """For each node up to sample_size different neighbors, each as probable.

    Args:
        row: the neighbors of all nodes, one after the other.
        colptr: where the neighbors of each node begin, and where the last ones end.
        input_nodes: the nodes whose neighbors are drawn.
        sample_size: how many; -1 for all.
        eids: a number for each edge.
        return_eids: whether the numbers of the edges are returned.
        perm_buffer: not needed; GPUs use it in Paddle.

    Returns:
        the neighbors, how many each node has, and with return_eids the numbers of the edges.

    Examples:
        >>> import oar
        >>> row, colptr = oar.to_tensor([3, 7, 0, 9, 1]), oar.to_tensor([0, 2, 4, 5])
        >>> neighbors, count = oar.geometric.sample_neighbors(row, colptr, oar.to_tensor([0, 2]), sample_size=2)
        >>> neighbors.tolist(), count.tolist()
        ([3, 7, 1], [2, 1])
    """
    return _sampled("sample_neighbors", row, colptr, input_nodes, None, sample_size, eids, return_eids)


def weighted_sample_neighbors(
    row: Tensor, colptr: Tensor, edge_weight: Tensor, input_nodes: Tensor, sample_size: int = -1,
    eids: Tensor | None = None, return_eids: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """For each node up to sample_size different neighbors, drawn one after the other with probabilities like the
    weights of their edges.

    Args:
        row: the neighbors of all nodes, one after the other.
        colptr: where the neighbors of each node begin, and where the last ones end.
        edge_weight: the weight of each edge.
        input_nodes: the nodes whose neighbors are drawn.
        sample_size: how many; -1 for all.
        eids: a number for each edge.
        return_eids: whether the numbers of the edges are returned.

    Returns:
        the neighbors, how many each node has, and with return_eids the numbers of the edges.

    Examples:
        >>> import oar
        >>> row, colptr = oar.to_tensor([3, 7, 0, 9, 1]), oar.to_tensor([0, 2, 4, 5])
        >>> weight = oar.to_tensor([0.1, 0.5, 0.2, 0.5, 0.9])
        >>> neighbors, count = oar.geometric.weighted_sample_neighbors(row, colptr, weight, oar.to_tensor([2, 0]), 3)
        >>> neighbors.tolist(), count.tolist()
        ([1, 3, 7], [1, 2])
    """
    return _sampled("weighted_sample_neighbors", row, colptr, input_nodes, edge_weight, sample_size, eids, return_eids)
