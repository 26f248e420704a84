"""Tokens on their way to experts: which rows each expert gets, and where each row is."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = [
    "build_src_rank_and_local_expert_id",
    "expand_modality_expert_id",
    "moe_gate_dispatch",
    "moe_gate_dispatch_partial_nosoftmaxtopk",
    "moe_gate_dispatch_permute",
]


def _grouped(experts: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """The order that sorts the elements by expert, how many each expert has, and where its first one is."""
    sizes = ops.bincount(experts, None, number)
    return ops.argsort(experts, 0), sizes, ops.cumsum(sizes, 0) - sizes


def _slots(order: Tensor, sizes: Tensor, starts: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
    """For `capacity` slots of each expert: the element in each slot, and whether there is one."""
    slot = ops.unsqueeze(ops.range(0, capacity, 1, "int64"), [0])
    at = ops.clip(ops.unsqueeze(starts, [1]) + slot, 0, order.shape[0] - 1)
    return ops.gather(order, ops.reshape(at, [-1]), 0), ops.reshape(slot < ops.unsqueeze(sizes, [1]), [-1])


def _rows(x: Tensor, index: Tensor, exists: Tensor) -> Tensor:
    return ops.where(ops.unsqueeze(exists, [1]), ops.gather(x, index, 0), ops.zeros([], x.dtype))


def _or_zero(kept: Tensor, value: Tensor) -> Tensor:
    return ops.where(kept, value, ops.zeros([], value.dtype))


def _check_rows(op: str, x: Tensor, name: str, other: Tensor) -> None:
    if x.ndim != 2 or x.shape[0] == 0:
        raise ValueError(f"[{op}] x has shape {list(x.shape)}; it must be [tokens, size], with at least one token.")
    if other.ndim != 2 or other.shape[0] != x.shape[0]:
        raise ValueError(f"[{op}] {name} has shape {list(other.shape)}; it must be two-dimensional, with a row for each "
                         f"of the {x.shape[0]} tokens.")


def _check_counts(op: str, k: int, capacity: int, experts: int) -> None:
    if not 1 <= k <= experts:
        raise ValueError(f"[{op}] k is {k}; it must be from 1 to {experts}, the number of experts.")
    if capacity < 1:
        raise ValueError(f"[{op}] capacity is {capacity}; an expert must take at least one token.")


def moe_gate_dispatch(
    x: Tensor, gate_logits: Tensor, corr_bias: Tensor | None, k: int, capacity: int, use_pad: bool,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Sends each token to its k best experts. An expert takes `capacity` tokens and drops the others.

    With use_pad an expert takes tokens that chose it first before those that chose it second, and so on; without, it
    takes tokens in their order. ``moe_combine`` sums the results of the experts, with scatter_index transposed.

    Args:
        x: the tokens [tokens, size].
        gate_logits: the probabilities [tokens, experts]; they are used as they are, so apply softmax before.
        corr_bias: added to the probabilities for the choice alone, [experts]; or None.
        k: how many experts a token has.
        capacity: how many tokens an expert takes.
        use_pad: whether each expert has exactly `capacity` rows of the result, the last ones 0 if it has fewer tokens.

    Returns:
        the rows of the experts, one expert after the other, [experts * capacity, size] or without use_pad [tokens * k,
        size]; the weights [tokens, k], 0 where a token is dropped; the row of each token for each of its experts [k,
        tokens], 0 where it is dropped; the running sum of how many tokens chose each expert [experts]; and the experts
        of each token [tokens, k].

    Examples:
        >>> import oar
        >>> x, gate = oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> y, weights, index, _, _ = oar.incubate.nn.functional.moe_gate_dispatch(x, gate, None, 1, 2, True)
        >>> y.tolist()  # two rows for each expert
        [[1.0], [2.0], [3.0], [0.0]]
        >>> index.tolist()
        [[0, 1, 2]]
    """
    op = "moe_gate_dispatch"
    _check_rows(op, x, "gate_logits", gate_logits)
    tokens, experts = gate_logits.shape
    _check_counts(op, k, capacity, experts)
    if corr_bias is not None and list(corr_bias.shape) != [experts]:
        raise ValueError(f"[{op}] corr_bias has shape {list(corr_bias.shape)}; it must be [{experts}].")
    chosen = ops.topk(gate_logits if corr_bias is None else gate_logits + corr_bias, k, -1)[1]
    # the k choices of a token are neighbours, or with use_pad all first choices come before all second ones
    flat = ops.reshape(ops.transpose(chosen, [1, 0]) if use_pad else chosen, [-1])
    order, sizes, starts = _grouped(flat, experts)
    rank = ops.argsort(order, 0)
    place = rank - ops.gather(starts, flat, 0)
    kept = place < capacity
    if use_pad:
        source, filled = _slots(order, sizes, starts, capacity)
        y = _rows(x, source % tokens, filled)
        index = ops.reshape(_or_zero(kept, flat * capacity + place), [k, tokens])
        kept = ops.transpose(ops.reshape(kept, [k, tokens]), [1, 0])
    else:
        y = _rows(x, order // k, ops.gather(kept, order, 0))
        index = ops.transpose(ops.reshape(_or_zero(kept, rank), [tokens, k]), [1, 0])
        kept = ops.reshape(kept, [tokens, k])
    weights = _or_zero(kept, ops.take_along_axis(gate_logits, chosen, 1))
    return y, weights, ops.cast(index, "int32"), starts + sizes, ops.cast(chosen, "int32")


def moe_gate_dispatch_permute(
    x: Tensor, gate_logits: Tensor, corr_bias: Tensor | None, k: int, capacity: int, world_size: int,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """``moe_gate_dispatch`` with use_pad, for experts that are spread over processes: the first local expert of all
    processes comes first, then the second.

    Args:
        x: the tokens [tokens, size].
        gate_logits: the probabilities [tokens, experts].
        corr_bias: added to the probabilities for the choice alone, [experts]; or None.
        k: how many experts a token has.
        capacity: how many tokens an expert takes.
        world_size: the number of processes; each has the same number of experts, neighbours in gate_logits.

    Returns:
        the rows [experts // world_size, world_size, capacity, size]; then the results of ``moe_gate_dispatch``. The rows
        of tokens count as if experts were in their own order.

    Examples:
        >>> import oar
        >>> x, gate = oar.to_tensor([[1.0], [2.0]]), oar.to_tensor([[0.1, 0.2, 0.6, 0.1], [0.4, 0.3, 0.2, 0.1]])
        >>> y = oar.incubate.nn.functional.moe_gate_dispatch_permute(x, gate, None, 1, 1, 2)[0]
        >>> y.reshape([2, 2]).tolist()  # a row for each local expert: those of process 0 and process 1
        [[2.0, 1.0], [0.0, 0.0]]
    """
    op = "moe_gate_dispatch_permute"
    _check_rows(op, x, "gate_logits", gate_logits)
    experts = gate_logits.shape[1]
    if world_size < 1 or experts % world_size:
        raise ValueError(f"[{op}] world_size is {world_size}; it must divide {experts}, the number of experts.")
    y, *others = moe_gate_dispatch(x, gate_logits, corr_bias, k, capacity, True)
    y = ops.reshape(y, [world_size, experts // world_size, capacity, x.shape[1]])
    return (ops.transpose(y, [1, 0, 2, 3]), *others)


def moe_gate_dispatch_partial_nosoftmaxtopk(
    x: Tensor, combine_weights: Tensor, expert_id: Tensor, k: int, capacity: int, num_experts: int, use_pad: bool,
    expert_start_index: int, expert_end_index: int, reverse_token_drop: bool, name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Sends tokens to those of their experts that are in a range; the experts are chosen already.

    An expert takes tokens that chose it first before those that chose it second, and so on; what it takes is in the
    order of the tokens.

    Args:
        x: the tokens [tokens, size].
        combine_weights: the weights of the experts of each token, [tokens, k].
        expert_id: the experts of each token, [tokens, k].
        k: how many experts a token has.
        capacity: how many tokens an expert takes.
        num_experts: the number of all experts.
        use_pad: whether each expert of the range has exactly `capacity` rows of the result; else only the rows it takes.
        expert_start_index: the first expert of the range.
        expert_end_index: the one after the last expert of the range.
        reverse_token_drop: whether the first tokens of an expert are dropped rather than the last ones; not with use_pad.

    Returns:
        the rows of the experts, one expert after the other, [rows, size]; the weights, 0 where a token is dropped or
        its expert is not in the range; the row of each token for each of its experts [k, tokens], 0 if there is none;
        the token of each row [rows], the number of tokens for a row of padding; how many tokens chose each expert
        [num_experts]; and how many rows each expert of the range has, 0 for others [num_experts]; with use_pad, how
        many tokens chose it.

    Examples:
        >>> import oar
        >>> x, experts = oar.to_tensor([[1.0], [2.0], [3.0]]), oar.to_tensor([[0, 1], [0, 1], [0, 2]])
        >>> y, _, _, tokens, _, rows = oar.incubate.nn.functional.moe_gate_dispatch_partial_nosoftmaxtopk(
        ...     x, oar.ones([3, 2]), experts, 2, 2, 4, False, 0, 2, True)
        >>> y.tolist(), tokens.tolist(), rows.tolist()
        ([[2.0], [3.0], [1.0], [2.0]], [1, 2, 0, 1], [2, 2, 0, 0])
    """
    op = "moe_gate_dispatch_partial_nosoftmaxtopk"
    _check_rows(op, x, "combine_weights", combine_weights)
    _check_rows(op, x, "expert_id", expert_id)
    _check_counts(op, k, capacity, num_experts)
    if combine_weights.shape[1] != k or expert_id.shape[1] != k:
        raise ValueError(f"[{op}] k is {k}, but combine_weights has shape {list(combine_weights.shape)} and expert_id "
                         f"{list(expert_id.shape)}; both must have k columns.")
    if not 0 <= expert_start_index < expert_end_index <= num_experts:
        raise ValueError(f"[{op}] the range of experts is from {expert_start_index} to {expert_end_index}; it must have "
                         f"at least one of the {num_experts} experts and no other.")
    if use_pad and reverse_token_drop:
        raise ValueError(f"[{op}] use_pad and reverse_token_drop do not go together. Pass one of them as False.")
    tokens = x.shape[0]
    flat = ops.cast(ops.reshape(ops.transpose(expert_id, [1, 0]), [-1]), "int64")
    inside = ops.logical_and(flat >= expert_start_index, flat < expert_end_index)
    outside = ops.full([], num_experts, "int64")
    order, sizes, starts = _grouped(ops.where(inside, flat, outside), num_experts + 1)
    place = ops.argsort(order, 0) - ops.gather(starts, flat, 0)
    if reverse_token_drop:
        place = ops.gather(sizes, flat, 0) - 1 - place
    kept = ops.logical_and(inside, place < capacity)
    token = ops.range(0, tokens * k, 1, "int64") % tokens
    # what is kept is sorted again, by expert and then by token; the rest comes after it
    order = ops.argsort(ops.where(kept, flat * tokens + token, ops.full([], num_experts * tokens, "int64")), 0)
    taken = ops.bincount(ops.where(kept, flat, outside), None, num_experts + 1)
    starts = ops.cumsum(taken, 0) - taken
    rank = ops.argsort(order, 0)
    if use_pad:
        local = slice(expert_start_index, expert_end_index)
        source, filled = _slots(order, taken[local], starts[local], capacity)
        y = _rows(x, source % tokens, filled)
        source = ops.where(filled, source % tokens, ops.full([], tokens, "int64"))
        rank = (flat - expert_start_index) * capacity + rank - ops.gather(starts, flat, 0)
    else:
        source = ops.masked_select(order, ops.range(0, tokens * k, 1, "int64") < ops.sum(taken[:num_experts])) % tokens
        y = ops.gather(x, source, 0)
    index = ops.cast(ops.reshape(_or_zero(kept, rank), [k, tokens]), "int32")
    weights = _or_zero(ops.transpose(ops.reshape(kept, [k, tokens]), [1, 0]), combine_weights)
    every = ops.bincount(flat, None, num_experts)
    return y, weights, index, ops.cast(source, "int32"), every, (sizes if use_pad else taken)[:num_experts]


def build_src_rank_and_local_expert_id(
    expert_num_global_tensor: Tensor, expert_num_global: list[int], num_local_experts: int, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """For tokens that are sorted by expert: the process of each token's expert, and its number within the process.

    Args:
        expert_num_global_tensor: how many tokens each expert has, [experts].
        expert_num_global: the same numbers as a list.
        num_local_experts: how many experts a process has.

    Returns:
        two tensors of int32, [tokens].

    Examples:
        >>> import oar
        >>> process, expert = oar.incubate.nn.functional.build_src_rank_and_local_expert_id(
        ...     oar.to_tensor([1, 0, 2, 1]), [1, 0, 2, 1], 2)
        >>> process.tolist(), expert.tolist()
        ([0, 1, 1, 1], [0, 0, 0, 1])
    """
    op = "build_src_rank_and_local_expert_id"
    if num_local_experts < 1:
        raise ValueError(f"[{op}] num_local_experts is {num_local_experts}; a process must have at least one expert.")
    if list(expert_num_global_tensor.shape) != [len(expert_num_global)]:
        raise ValueError(f"[{op}] expert_num_global_tensor has shape {list(expert_num_global_tensor.shape)} and "
                         f"expert_num_global {len(expert_num_global)} numbers; they must be the same numbers.")
    ends = ops.cumsum(ops.cast(expert_num_global_tensor, "int64"), 0)
    each = ops.searchsorted(ends, ops.range(0, sum(expert_num_global), 1, "int64"), True, True)
    return each // num_local_experts, each % num_local_experts


def expand_modality_expert_id(
    expert_id: Tensor, num_expert_per_modality: int, group_size: int, modality_offset: int, is_group_expert: bool,
    name: str | None = None,
) -> Tensor:
    """The numbers of experts where each process has experts for two modalities, those of the first one before.

    Args:
        expert_id: the experts of each token among those of its modality, [tokens, k].
        num_expert_per_modality: how many experts for each modality a process has; 0 if there is only one modality.
        group_size: what is added for each place in k, if is_group_expert.
        modality_offset: the modality, 0 or 1.
        is_group_expert: whether place i of k chooses among the experts of group i.

    Returns:
        a tensor like expert_id.

    Examples:
        >>> import oar
        >>> experts = oar.to_tensor([[0, 3]])  # of process 0 and process 1, which have two experts per modality
        >>> oar.incubate.nn.functional.expand_modality_expert_id(experts, 2, 4, 1, False).tolist()
        [[2, 7]]
    """
    if expert_id.ndim != 2:
        raise ValueError(f"[expand_modality_expert_id] expert_id has shape {list(expert_id.shape)}; it must be [tokens, "
                         "k].")
    if is_group_expert:
        expert_id = expert_id + ops.range(0, expert_id.shape[1], 1, expert_id.dtype) * group_size
    if num_expert_per_modality <= 0:
        return expert_id
    process, within = expert_id // num_expert_per_modality, expert_id % num_expert_per_modality
    return (process * 2 + modality_offset) * num_expert_per_modality + within
