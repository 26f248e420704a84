"""Layers of Paddle's incubating names."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.base.layer_helper import LayerHelper
from oar.nn.initializer import Constant

__all__ = ["shuffle_batch", "tdm_child"]


def shuffle_batch(x: Tensor, seed: int | Tensor | None = None) -> Tensor:
    """The vectors along the last axis in another order, drawn at random.

    Args:
        x: of rank 2 or more.
        seed: a number for the same order every time; the random stream's next when None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> sorted(oar.incubate.layers.shuffle_batch(oar.to_tensor([[1.0], [2.0], [3.0]])).flatten().tolist())
        [1.0, 2.0, 3.0]
    """
    if x.ndim < 2:
        raise ValueError(f"[shuffle_batch] x must have 2 axes or more, not the shape {list(x.shape)}.")
    rows = ops.reshape(x, [-1, x.shape[-1]])
    place = oar.get_rng_state()
    try:
        if seed is not None:
            oar.seed(int(seed))
        order = ops.argsort(ops.rand([rows.shape[0]]))
    finally:
        if seed is not None:
            oar.set_rng_state(place)
    return ops.reshape(oar.gather(rows, order), list(x.shape))


def tdm_child(
    x: Tensor, node_nums: int, child_nums: int, param_attr: Any = None, dtype: Any = "int32"
) -> tuple[Tensor, Tensor]:
    """The children of nodes of a tree, and which of them are leaves that hold an item.

    Args:
        x: numbers of nodes; node 0 stands for none.
        node_nums: the number of nodes.
        child_nums: the most children that a node has.
        param_attr: of the table [node_nums, 3 + child_nums], in which a row holds the item of a node (0 for none), its
            layer, its parent and its children, filled up with 0.
        dtype: the dtype of the results, 'int32' or 'int64'.

    Returns:
        two tensors of the shape of x and one axis more: the children, and 1 for those that hold an item.

    Examples:
        >>> import oar
        >>> table = oar.to_tensor([[0, 0, 0, 0, 0], [0, 0, 0, 2, 3], [7, 1, 1, 0, 0], [0, 1, 1, 0, 0]], dtype='int32')
        >>> attribute = oar.ParamAttr(initializer=oar.nn.initializer.Assign(table))
        >>> children, leaves = oar.incubate.layers.tdm_child(oar.to_tensor([1, 2]), 4, 2, attribute)
        >>> children.tolist(), leaves.tolist()
        ([[2, 3], [0, 0]], [[1, 0], [0, 0]])
    """
    table = LayerHelper("tdm_child").create_parameter(
        attr=param_attr, shape=[node_nums, 3 + child_nums], dtype=dtype, default_initializer=Constant(0)
    )
    if table is None:
        raise ValueError("[tdm_child] param_attr is False, but the table of the tree is needed.")
    table.stop_gradient = True
    rows = oar.gather(table, ops.reshape(x, [-1]))
    children = ops.reshape(rows[:, 3:], [*x.shape, child_nums])
    items = ops.reshape(oar.gather(table[:, 0], ops.reshape(children, [-1])), [*x.shape, child_nums])
    holds = ops.logical_and(ops.not_equal(items, 0), ops.not_equal(children, 0))
    return children, ops.cast(holds, dtype)
