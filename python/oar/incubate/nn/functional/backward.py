"""Backward passes that a program calls itself, in the ``backward`` of a PyLayer."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["cross_entropy_with_softmax_bwd_w_downcast", "fused_swiglu_weighted_bwd"]

_IGNORED_LABEL = -100


def fused_swiglu_weighted_bwd(
    o1: Tensor, do2_s: Tensor, unzipped_probs: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The backward pass of swiglu(o1) * unzipped_probs.

    Args:
        o1: the input of swiglu, [..., 2 * size].
        do2_s: the gradient of the result, [..., size].
        unzipped_probs: the weight of each row, [...] or [..., 1].

    Returns:
        the gradient of o1; the gradient of unzipped_probs; and the result swiglu(o1) * unzipped_probs itself.

    Examples:
        >>> import oar
        >>> o1, gradient, weight = oar.to_tensor([[0.0, 4.0]]), oar.ones([1, 1]), oar.to_tensor([0.5])
        >>> grad, weight_grad, out = oar.incubate.nn.functional.fused_swiglu_weighted_bwd(o1, gradient, weight)
        >>> grad.tolist(), weight_grad.tolist(), out.tolist()
        ([[1.0, 0.0]], [0.0], [[0.0]])
    """
    op = "fused_swiglu_weighted_bwd"
    rows, size = list(o1.shape[:-1]), do2_s.shape[-1]
    if list(do2_s.shape[:-1]) != rows or o1.shape[-1] != 2 * size:
        raise ValueError(f"[{op}] o1 has shape {list(o1.shape)} and do2_s {list(do2_s.shape)}; they must be [..., 2 * "
                         "size] and [..., size].")
    if list(unzipped_probs.shape) not in (rows, [*rows, 1]):
        raise ValueError(f"[{op}] unzipped_probs has shape {list(unzipped_probs.shape)}; it must be {rows}, a weight for "
                         "each row of o1.")
    wide = o1.dtype if o1.dtype.name == "float64" else "float32"
    gate, value = ops.split(ops.cast(o1, wide), 2, -1)
    gradient, weight = ops.cast(do2_s, wide), ops.reshape(ops.cast(unzipped_probs, wide), [*rows, 1])
    chance = ops.sigmoid(gate)
    opened = gate * chance
    weighted = gradient * weight
    gate_grad = weighted * value * chance * (1.0 + gate - opened)
    weight_grad = ops.reshape(ops.sum(gradient * opened * value, [-1]), unzipped_probs.shape)
    return (ops.cast(ops.concat([gate_grad, weighted * opened], -1), o1.dtype),
            ops.cast(weight_grad, unzipped_probs.dtype), ops.cast(opened * value * weight, o1.dtype))


def cross_entropy_with_softmax_bwd_w_downcast(
    label: Tensor, softmax: Tensor, loss_grad: Tensor, name: str | None = None
) -> Tensor:
    """The backward pass of softmax and cross entropy, as bfloat16: (softmax - one_hot(label)) * loss_grad.

    Args:
        label: the classes, [...] or [..., 1]; the gradient is 0 where it is -100.
        softmax: the probabilities, [..., classes].
        loss_grad: the gradient of each loss, of the shape of label.

    Returns:
        a tensor of bfloat16 like softmax.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.cross_entropy_with_softmax_bwd_w_downcast(
        ...     oar.to_tensor([[1], [-100]]), oar.full([2, 2], 0.5), oar.ones([2, 1])).tolist()
        [[0.5, -0.5], [0.0, 0.0]]
    """
    op = "cross_entropy_with_softmax_bwd_w_downcast"
    rows, classes = list(softmax.shape[:-1]), softmax.shape[-1]
    for name_of, given in (("label", label), ("loss_grad", loss_grad)):
        if list(given.shape) not in (rows, [*rows, 1]):
            raise ValueError(f"[{op}] {name_of} has shape {list(given.shape)}; it must be {[*rows, 1]}, one for each row "
                             "of softmax.")
    label = ops.reshape(ops.cast(label, "int64"), [*rows, 1])
    hit = ops.equal(label, ops.range(0, classes, 1, "int64"))
    gradient = (softmax - ops.cast(hit, softmax.dtype)) * ops.reshape(ops.cast(loss_grad, softmax.dtype), [*rows, 1])
    counts = ops.not_equal(label, ops.full([], _IGNORED_LABEL, "int64"))
    return ops.cast(ops.where(counts, gradient, ops.zeros([], softmax.dtype)), "bfloat16")
