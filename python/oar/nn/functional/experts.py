"""Tokens in the order of their experts, and back."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor, ops

__all__ = ["moe_permute", "moe_unpermute"]


def _check_shapes(op: str, tokens: int, **given: Tensor) -> None:
    for name, value in given.items():
        if value.ndim != 2 or value.shape[0] != tokens:
            raise ValueError(f"[{op}] {name} has shape {list(value.shape)}; it must be two-dimensional, with a row for "
                             f"each of the {tokens} tokens.")


def moe_permute(
    hidden_states: Tensor,
    scale: Tensor | None,
    expert_routemap_topk: Tensor,
    expert_prob_topk: Tensor,
    num_experts: int,
    tokens_per_expert: Sequence[int | Tensor],
    padding_alignment: int,
    do_gather: bool = True,
    using_ue8m0_scale: bool = False,
    return_expert_indices: bool = False,
    override_buffer_size: int = -1,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """A row for each token of each expert, sorted by expert; an expert's rows are padded with 0 to a multiple.

    Args:
        hidden_states: the tokens [tokens, size].
        scale: a second tensor whose rows move with those of hidden_states; or None.
        expert_routemap_topk: the experts of each token, all different, [tokens, k]; -1 for none.
        expert_prob_topk: the weights of the experts of each token, [tokens, k].
        num_experts: the number of experts.
        tokens_per_expert: how many tokens each expert has; not used with override_buffer_size.
        padding_alignment: what the number of rows of each expert is a multiple of.
        do_gather: whether the rows are computed; if not, the first result has no rows.
        using_ue8m0_scale: whether scale packs exponents into int32.
        return_expert_indices: whether the expert of each row is returned too.
        override_buffer_size: the number of rows of the result; -1 for as many as the experts need.

    Returns:
        the rows [rows, size]; the row of each token for each expert, -1 for none, [tokens, num_experts]; the weight of
        each row [rows]; the rows of scale, empty if it is None; and with return_expert_indices the expert of each row,
        -1 for padding.

    Examples:
        >>> import oar
        >>> tokens, experts = oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([[1, 0], [1, -1], [0, -1]])
        >>> rows, index, weights, _ = oar.nn.functional.moe_permute(
        ...     tokens, None, experts, oar.full([3, 2], 0.5), 2, [2, 2], 3)
        >>> rows.tolist()
        [[1.0], [3.0], [0.0], [1.0], [2.0], [0.0]]
        >>> index.tolist()
        [[0, 3], [-1, 4], [1, -1]]
    """
    op = "moe_permute"
    tokens = hidden_states.shape[0]
    _check_shapes(op, tokens, hidden_states=hidden_states, expert_routemap_topk=expert_routemap_topk,
                  expert_prob_topk=expert_prob_topk, **({} if scale is None else {"scale": scale}))
    if padding_alignment < 1:
        raise ValueError(f"[{op}] padding_alignment is {padding_alignment}; it must be positive.")
    if using_ue8m0_scale and scale is not None and scale.dtype.name != "int32":
        raise TypeError(f"[{op}] scale has dtype {scale.dtype.name}; with using_ue8m0_scale it must be int32.")
    each = ops.range(0, num_experts, 1, "int64")
    hits = ops.equal(ops.unsqueeze(ops.cast(expert_routemap_topk, "int64"), [2]), each)
    chosen = ops.any(hits, 1)
    counts = ops.sum(ops.cast(chosen, "int64"), [0])
    if override_buffer_size < 0 and [int(count) for count in tokens_per_expert] != counts.tolist():
        raise ValueError(f"[{op}] tokens_per_expert is {[int(count) for count in tokens_per_expert]}, but by "
                         f"expert_routemap_topk the experts have {counts.tolist()} tokens.")
    padded = (counts + (padding_alignment - 1)) // padding_alignment * padding_alignment
    needed = int(ops.sum(padded))
    rows = needed if override_buffer_size < 0 else override_buffer_size
    if rows < needed:
        raise ValueError(f"[{op}] override_buffer_size is {rows}, but the experts need {needed} rows.")
    before = ops.cumsum(ops.cast(chosen, "int64"), 0) - 1
    index = ops.where(chosen, before + (ops.cumsum(padded, 0) - padded), ops.full([], -1, "int64"))
    pairs = ops.nonzero(chosen)  # token and expert of each row, though not in the order of rows
    where = ops.gather_nd(index, pairs)
    empty = ops.full([rows], -1, "int64")
    token, expert = (ops.scatter(empty, where, part) for part in ops.unstack(pairs, 1))
    exists, token = token >= 0, ops.clip(token, 0, None)

    def moved(part: Tensor) -> Tensor:
        return ops.where(ops.unsqueeze(exists, [1]), ops.gather(part, token, 0), ops.zeros([], part.dtype))

    weight_of = ops.take_along_axis(expert_prob_topk, ops.argmax(ops.cast(hits, "int64"), 1), 1)
    weight = ops.gather_nd(weight_of, ops.stack([token, ops.clip(expert, 0, None)], 1))
    results = (
        moved(hidden_states) if do_gather else hidden_states[:0],
        ops.cast(index, "int32"),
        ops.where(exists, weight, ops.zeros([], weight.dtype)),
        ops.zeros([0], "float32") if scale is None else moved(scale),
    )
    return (*results, ops.cast(expert, "int32")) if return_expert_indices else results


def moe_unpermute(
    hidden_states_unzipped: Tensor,
    zipped_expertwise_rowmap: Tensor,
    expert_routemap_topk: Tensor,
    token_prob_unzipped: Tensor,
    total_zipped_tokens: int,
    num_experts: int,
    using_mix_precision: bool = True,
    using_weighted_combine: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The reverse of ``moe_permute``: each token is the sum of its rows.

    Args:
        hidden_states_unzipped: the rows [rows, size].
        zipped_expertwise_rowmap: the row of each token for each expert, [tokens, num_experts].
        expert_routemap_topk: the experts of each token, all different, [tokens, k]; -1 for none.
        token_prob_unzipped: the weight of each row, [rows] or [rows, 1].
        total_zipped_tokens: the number of tokens.
        num_experts: the number of experts.
        using_mix_precision: whether rows are summed as float32.
        using_weighted_combine: whether rows are multiplied by their weights.

    Returns:
        the tokens [tokens, size], and the weights of the experts of each token [tokens, k].

    Examples:
        >>> import oar
        >>> rows, experts = oar.to_tensor([[1.0], [3.0], [10.0], [20.0]]), oar.to_tensor([[1, 0], [1, -1], [0, -1]])
        >>> index, weights = oar.to_tensor([[0, 2], [-1, 3], [1, -1]]), oar.to_tensor([0.5, 1.0, 0.5, 1.0])
        >>> tokens, chances = oar.nn.functional.moe_unpermute(rows, index, experts, weights, 3, 2)
        >>> tokens.tolist(), chances.tolist()
        ([[11.0], [20.0], [3.0]], [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    """
    op = "moe_unpermute"
    _check_shapes(op, total_zipped_tokens, zipped_expertwise_rowmap=zipped_expertwise_rowmap,
                  expert_routemap_topk=expert_routemap_topk)
    if zipped_expertwise_rowmap.shape[1] != num_experts:
        raise ValueError(f"[{op}] zipped_expertwise_rowmap has shape {list(zipped_expertwise_rowmap.shape)}; it must have "
                         f"a column for each of the {num_experts} experts.")
    if hidden_states_unzipped.ndim != 2 or hidden_states_unzipped.shape[0] == 0:
        raise ValueError(f"[{op}] hidden_states_unzipped has shape {list(hidden_states_unzipped.shape)}; it must be "
                         "[rows, size], with at least one row.")
    experts = ops.cast(expert_routemap_topk, "int64")
    row = ops.take_along_axis(zipped_expertwise_rowmap, ops.clip(experts, 0, None), 1)
    exists = ops.logical_and(experts >= 0, row >= 0)
    flat = ops.reshape(ops.clip(ops.cast(row, "int64"), 0, None), [-1])

    def of_rows(part: Tensor) -> Tensor:
        """The rows of each token, [tokens, k, ...]; 0 if there is none."""
        taken = ops.reshape(ops.gather(part, flat, 0), [*experts.shape, part.shape[1]])
        return ops.where(ops.unsqueeze(exists, [2]), taken, ops.zeros([], part.dtype))

    weights = of_rows(ops.reshape(token_prob_unzipped, [-1, 1]))
    parts, dtype = of_rows(hidden_states_unzipped), hidden_states_unzipped.dtype
    if using_mix_precision and dtype.name != "float64":
        parts = ops.cast(parts, "float32")
    if using_weighted_combine:
        parts = parts * ops.cast(weights, parts.dtype)
    return ops.cast(ops.sum(parts, [1]), dtype), ops.squeeze(weights, [2])
