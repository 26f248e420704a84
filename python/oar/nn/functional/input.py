"""Codes and embeddings, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["embedding", "embedding_renorm_", "one_hot"]

embedding = ops.embedding
one_hot = ops.one_hot


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
