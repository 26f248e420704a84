"""Rows that belong together, reduced to one."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_sum"]


def segment_sum(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row i is the sum of the rows of ``data`` whose number in ``segment_ids`` is i.

    Args:
        data: the rows.
        segment_ids: the number of the segment of each row.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.geometric.segment_sum(oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([0, 0, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[3.],
                [3.]])
    """
    return ops.segment_pool(data, segment_ids, "sum")


def segment_mean(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row i is the mean of the rows of ``data`` whose number in ``segment_ids`` is i; zero if there is none.

    Args:
        data: the rows.
        segment_ids: the number of the segment of each row.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.geometric.segment_mean(oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([0, 0, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1.50000000],
                [3.        ]])
    """
    return ops.segment_pool(data, segment_ids, "mean")


def segment_min(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row i is the minimum of the rows of ``data`` whose number in ``segment_ids`` is i; zero if there is none.

    Args:
        data: the rows.
        segment_ids: the number of the segment of each row.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.geometric.segment_min(oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([0, 0, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1.],
                [3.]])
    """
    return ops.segment_pool(data, segment_ids, "min")


def segment_max(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """Row i is the maximum of the rows of ``data`` whose number in ``segment_ids`` is i; zero if there is none.

    Args:
        data: the rows.
        segment_ids: the number of the segment of each row.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.geometric.segment_max(oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([0, 0, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[2.],
                [3.]])
    """
    return ops.segment_pool(data, segment_ids, "max")
