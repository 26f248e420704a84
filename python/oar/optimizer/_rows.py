"""Updates of the rows that a sparse gradient names, and of no others."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops


def has_sparse_gradient(param: Tensor) -> bool:
    """Whether a layer has said that the gradient of its parameter holds the rows that were used, and no others."""
    return getattr(param, "gradient_of_rows", False)


def merged_rows(grad: Any) -> tuple[Tensor, Tensor]:
    """The rows of a selected-rows gradient, each once, and for each the sum of its values."""
    values = ops.selected_rows_values(grad)
    rows, place = oar.unique(ops.selected_rows_rows(grad), return_inverse=True)
    total = oar.zeros([rows.shape[0], *values.shape[1:]], dtype=values.dtype)
    return rows, ops.index_add(total, place, 0, values)


class RowUpdate:
    """Lists of tensors for an update op, with the chosen rows in place of tensors that change only there."""

    def __init__(self, rows: list[Tensor | None], *lists: list[Tensor]) -> None:
        self._rows = rows
        self._whole = lists
        self.lists = [self._chosen(tensors) for tensors in lists]

    def _chosen(self, tensors: list[Tensor]) -> list[Tensor]:
        pairs = zip(self._rows, tensors)
        return [tensor if rows is None else ops.index_select(tensor, rows, 0) for rows, tensor in pairs]

    def write_back(self) -> None:
        for whole, changed in zip(self._whole, self.lists):
            for rows, tensor, part in zip(self._rows, whole, changed):
                if rows is not None:
                    tensor[rows] = part


class RowsWithoutGradient:
    """Rows that keep their values in a step of a written program. There a sparse gradient is whole, so that a row counts as used if
    its gradient is not zero."""

    def __init__(self, params: list[Tensor], grads: list[Tensor], *lists: list[Tensor]) -> None:
        sparse = [position for position, param in enumerate(params) if has_sparse_gradient(param)]
        used = {position: (grads[position] != 0).any(list(range(1, grads[position].ndim)), keepdim=True) for position in sparse}
        self._before = [(tensors[position], used[position], tensors[position].clone()) for tensors in lists for position in sparse]

    def restore(self) -> None:
        for tensor, used, before in self._before:
            ops.copy_into(tensor, ops.where(used, tensor, before))
