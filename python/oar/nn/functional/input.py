"""Codes and embeddings, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = ["embedding", "embedding_renorm_", "one_hot"]

embedding = ops.embedding


@spelled
def one_hot(x: Tensor, num_classes: int = -1, name: str | None = None) -> Tensor:
    """A new last axis of ``num_classes`` elements: 1 at the place that x names, else 0.

    Args:
        x: integers.
        num_classes: the length of the new axis; -1 takes the largest element and one more.

    Returns:
        a tensor of float32.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.one_hot(oar.to_tensor([1, 0]), num_classes=3)
        Tensor(shape=[2, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0., 1., 0.],
                [1., 0., 0.]])
        >>> F.one_hot(oar.to_tensor([1, 0])).shape
        [2, 2]
    """
    if isinstance(num_classes, Tensor):
        num_classes = num_classes.item()
    if num_classes == -1:
        if x.size == 0:
            raise ValueError(f"[one_hot] x of shape {list(x.shape)} has no elements to take num_classes from; pass it.")
        num_classes = int(ops.max(x)) + 1
    return ops.one_hot(x, num_classes)


def embedding_renorm_(x: Tensor, weight: Tensor, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Shortens the rows of a table that are looked up, in place, to ``max_norm`` at most.

    Args:
        x: the input.
        weight: the table.
        max_norm: the largest norm of a row.
        norm_type: the p of the norm.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.nn.functional.input import embedding_renorm_
        >>> table = oar.to_tensor([[3.0, 4.0], [3.0, 4.0]])
        >>> _ = embedding_renorm_(oar.to_tensor([0]), table, max_norm=1.0)
        >>> table
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.59999996, 0.80000001],
                [3.        , 4.        ]])
    """
    return ops.embedding_renorm_(weight, x, max_norm, norm_type)
