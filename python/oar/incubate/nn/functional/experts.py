"""Mixtures of experts."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.nn import functional as F

__all__ = ["cal_aux_loss", "embedding_grad_add_to_", "fused_moe", "int_bincount", "moe_combine"]


def fused_moe(
    x: Tensor,
    gate_weight: Tensor,
    ffn1_weight: Tensor,
    ffn2_weight: Tensor,
    ffn1_bias: Tensor | None = None,
    ffn1_scale: Tensor | None = None,
    ffn2_bias: Tensor | None = None,
    ffn2_scale: Tensor | None = None,
    quant_method: str = "None",
    moe_topk: int = 2,
    norm_topk_prob: bool = True,
) -> Tensor:
    """Each token goes through its moe_topk best experts; their results are summed by the probabilities of the gate.

    Args:
        x: the tokens [batch, length, size].
        gate_weight: [size, experts].
        ffn1_weight: [experts, size, 2 * inner size].
        ffn2_weight: [experts, inner size, size].
        ffn1_bias: [experts, 1, 2 * inner size]; or None.
        ffn1_scale: for quantised weights, which need a GPU.
        ffn2_bias: [experts, 1, size]; or None.
        ffn2_scale: for quantised weights, which need a GPU.
        quant_method: only 'None'.
        moe_topk: how many experts a token has.
        norm_topk_prob: whether the probabilities of these are divided by their sum.

    Returns:
        a tensor like x.

    Examples:
        >>> import oar
        >>> x = oar.ones([1, 3, 2])
        >>> out = oar.incubate.nn.functional.fused_moe(
        ...     x, oar.ones([2, 4]), oar.ones([4, 2, 6]), oar.ones([4, 3, 2]), moe_topk=2)
        >>> out.shape
        [1, 3, 2]
    """
    if quant_method != "None" or ffn1_scale is not None or ffn2_scale is not None:
        raise NotImplementedError("[fused_moe] quantised weights need a GPU. Pass quant_method='None' and no scales.")
    tokens = ops.reshape(x, [-1, x.shape[-1]])
    chances, experts = ops.topk(ops.softmax(ops.matmul(tokens, gate_weight), -1), moe_topk, -1)
    if norm_topk_prob:
        chances = chances / ops.sum(chances, [-1], None, True)
    out = ops.zeros_like(tokens)
    for e in range(ffn1_weight.shape[0]):
        place = ops.nonzero(ops.equal(experts, ops.full([], e, experts.dtype)))
        row = place[:, 0]
        inner = ops.matmul(ops.gather(tokens, row, 0), ffn1_weight[e])
        inner = F.swiglu(inner if ffn1_bias is None else inner + ops.reshape(ffn1_bias[e], [1, -1]))
        made = ops.matmul(inner, ffn2_weight[e])
        made = made if ffn2_bias is None else made + ops.reshape(ffn2_bias[e], [1, -1])
        share = ops.unsqueeze(ops.gather_nd(chances, place), [-1])
        out = ops.index_add(out, row, 0, made * share)
    return ops.reshape(out, x.shape)


def moe_combine(x: Tensor, combine_weights: Tensor, scatter_index: Tensor, name: str | None = None) -> Tensor:
    """Row i is the sum of the rows of x that scatter_index[i] names, by the weights combine_weights[i].

    Args:
        x: the results of the experts, [rows, size].
        combine_weights: [tokens, k].
        scatter_index: the rows of each token, [tokens, k].

    Returns:
        a tensor [tokens, size].

    Examples:
        >>> import oar
        >>> x, weights = oar.to_tensor([[1.0], [10.0]]), oar.to_tensor([[0.5, 2.0]])
        >>> oar.incubate.nn.functional.moe_combine(x, weights, oar.to_tensor([[0, 1]])).tolist()
        [[20.5]]
    """
    rows = ops.gather(x, ops.reshape(scatter_index, [-1]), 0)
    rows = ops.reshape(rows, [*scatter_index.shape, x.shape[-1]])
    return ops.cast(ops.sum(rows * ops.unsqueeze(ops.cast(combine_weights, x.dtype), [-1]), [1]), x.dtype)


def int_bincount(x: Tensor, low: int, high: int, dtype: Any = None, name: str | None = None) -> Tensor:
    """How often each number from low to high - 1 occurs in x.

    Args:
        x: integers.
        low: the first number.
        high: the number after the last one.
        dtype: of the result; that of x if None.

    Returns:
        a tensor [high - low].

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.int_bincount(oar.to_tensor([0, 2, 2, 7]), 1, 4).tolist()
        [0, 2, 0]
    """
    if high < low:
        raise ValueError(f"[int_bincount] low is {low} and high {high}; high must not be less.")
    flat = ops.reshape(x, [-1])
    inside = ops.logical_and(flat >= low, flat < high)
    counts = ops.bincount(ops.where(inside, flat - low, ops.full([], high - low, x.dtype)), None, high - low + 1)
    return ops.cast(counts[:high - low], x.dtype if dtype is None else dtype)


def cal_aux_loss(
    gate_prob: Tensor, dispatch_mask: Tensor, tokens_mask: Tensor | None, dispatch_tokens_mask: Tensor | None,
    num_experts: int, use_group: bool, moe_k: int, clip_min: float, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss that keeps the load of experts even: num_experts times the sum over experts of the share of tokens times
    the mean probability.

    Args:
        gate_prob: the probabilities [tokens, experts].
        dispatch_mask: how many tokens each expert gets, [experts], or for each token [tokens, experts].
        tokens_mask: which tokens count; or None.
        dispatch_tokens_mask: which tokens of all processes count; or None.
        num_experts: the number of experts.
        use_group: whether the loss is divided by moe_k.
        moe_k: how many experts a token has.
        clip_min: the least number of tokens to divide by.

    Returns:
        the loss, the number of tokens, and the share of each expert.

    Examples:
        >>> import oar
        >>> loss, _, _ = oar.incubate.nn.functional.cal_aux_loss(
        ...     oar.full([4, 2], 0.5), oar.to_tensor([2, 2]), None, None, 2, False, 1, 1.0)
        >>> loss.item()
        1.0
    """
    dtype, scale = gate_prob.dtype, None
    mask = None if tokens_mask is None else ops.cast(tokens_mask, dtype)
    if dispatch_tokens_mask is not None:
        tokens = ops.sum(ops.cast(dispatch_tokens_mask, dtype))
        if mask is not None and gate_prob.shape[0] != dispatch_tokens_mask.shape[0]:
            scale = tokens / ops.clip(ops.sum(mask), clip_min, None)
    else:
        tokens = ops.sum(mask) if mask is not None else ops.full([], gate_prob.shape[0], dtype)
    tokens = ops.clip(tokens, clip_min, None)
    counts = ops.sum(dispatch_mask, [0]) if dispatch_mask.ndim == 2 else dispatch_mask
    share = ops.cast(counts, dtype).detach() / tokens
    loss = ops.sum(ops.sum(gate_prob, [0]) / tokens * share) * num_experts
    if use_group:
        loss = loss / moe_k
    if scale is not None:
        loss = loss + (scale - 1.0) * loss.detach()
    return loss, tokens, share


def embedding_grad_add_to_(token_indices: Tensor, main_grad_: Tensor, out_grad: Tensor, name: str | None = None) -> Tensor:
    """Adds the gradient of an embedding's result to that of its table, in place.

    Args:
        token_indices: the rows that were read.
        main_grad_: the gradient of the table, which is written.
        out_grad: the gradient of what was read, [..., size].

    Returns:
        main_grad_.

    Examples:
        >>> import oar
        >>> grad = oar.zeros([3, 1])
        >>> _ = oar.incubate.nn.functional.embedding_grad_add_to_(oar.to_tensor([0, 2, 2]), grad, oar.ones([3, 1]))
        >>> grad.tolist()
        [[1.0], [0.0], [2.0]]
    """
    rows = ops.reshape(ops.cast(out_grad, main_grad_.dtype), [-1, main_grad_.shape[-1]])
    return ops.index_add_(main_grad_, ops.reshape(token_indices, [-1]), 0, rows)
