"""Messages along the edges of a graph: from the rows that ``src_index`` names to those that ``dst_index`` names."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["send_u_recv", "send_ue_recv", "send_uv"]

_MESSAGES = {"add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "div": ops.divide}
_REDUCTIONS = ("sum", "mean", "max", "min")


def _check(op: str, what: str, value: str, choices) -> None:
    if value not in choices:
        raise ValueError(f"[{op}] {what} is {value!r}; it must be one of {', '.join(choices)}.")


def _rows(x: Tensor, out_size: int | Tensor | None) -> int:
    """The number of results: ``out_size`` if it is positive, else that of x."""
    given = int(out_size.item()) if isinstance(out_size, Tensor) else out_size
    return given if given is not None and given > 0 else x.shape[0]


def send_u_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, reduce_op: str = "sum", out_size: int | Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """What each node receives: row i is the reduction of the rows x[src] of all edges from src to i, zero without an
    edge. There are ``out_size`` rows, or as many as x has.

    Args:
        x: the input.
        src_index: for each edge, the row it comes from.
        dst_index: for each edge, the row it leads to.
        reduce_op: 'sum', 'mean', 'max' or 'min'.
        out_size: the number of rows of the result; that of x if None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0], [2.0], [3.0]])
        >>> oar.geometric.send_u_recv(x, oar.to_tensor([0, 1, 2]), oar.to_tensor([1, 2, 1]))
        Tensor(shape=[3, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.],
                [4.],
                [2.]])
    """
    _check("send_u_recv", "reduce_op", reduce_op, _REDUCTIONS)
    return ops.segment_rows(ops.gather(x, src_index, 0), dst_index, _rows(x, out_size), reduce_op)


def send_ue_recv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", reduce_op: str = "sum",
    out_size: int | Tensor | None = None, name: str | None = None,
) -> Tensor:
    """As ``send_u_recv``; but each edge sends x[src] combined with its own row of y (add, sub, mul or div).

    Args:
        x: the input.
        y: the second input.
        src_index: for each edge, the row it comes from.
        dst_index: for each edge, the row it leads to.
        message_op: 'add', 'sub', 'mul' or 'div'.
        reduce_op: 'sum', 'mean', 'max' or 'min'.
        out_size: the number of rows of the result; that of x if None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, edges = oar.to_tensor([[1.0], [2.0]]), oar.to_tensor([[10.0], [20.0]])
        >>> oar.geometric.send_ue_recv(x, edges, oar.to_tensor([0, 1]), oar.to_tensor([1, 1]), message_op='mul')
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0. ],
                [50.]])
    """
    _check("send_ue_recv", "message_op", message_op, _MESSAGES)
    _check("send_ue_recv", "reduce_op", reduce_op, _REDUCTIONS)
    messages = _MESSAGES[message_op](*_same_rank(ops.gather(x, src_index, 0), y))
    return ops.segment_rows(messages, dst_index, _rows(x, out_size), reduce_op)


def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", name: str | None = None
) -> Tensor:
    """The message of each edge: x[src] combined with y[dst] (add, sub, mul or div).

    Args:
        x: the input.
        y: the second input.
        src_index: for each edge, the row it comes from.
        dst_index: for each edge, the row it leads to.
        message_op: 'add', 'sub', 'mul' or 'div'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0], [2.0]])
        >>> oar.geometric.send_uv(x, x, oar.to_tensor([0, 1]), oar.to_tensor([1, 1]))
        Tensor(shape=[2, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[3.],
                [4.]])
    """
    _check("send_uv", "message_op", message_op, _MESSAGES)
    return _MESSAGES[message_op](*_same_rank(ops.gather(x, src_index, 0), ops.gather(y, dst_index, 0)))


def _same_rank(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """With axes of size 1 after the first one, so that the edges line up whatever other axes they have."""
    rank = max(x.ndim, y.ndim)
    return tuple(ops.reshape(t, [t.shape[0]] + [1] * (rank - t.ndim) + list(t.shape[1:])) for t in (x, y))
