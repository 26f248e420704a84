"""Attention over sequences that are cut into pieces, one for each process: by passing keys and values around, or by exchanging
sequences for heads."""

from __future__ import annotations

import math
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.autograd import PyLayer
from oar.distributed.communication.group import Group
from oar.distributed.fleet.layers.mpu.mp_ops import cut_along, paste_along
from oar.nn import functional as F

__all__ = ["heads_to_sequence", "ring_attention", "segment_attention", "sequence_to_heads"]


_ROWS = 512  # queries whose weights are there at a time


def _among(group: Group | None) -> Group:
    from oar.distributed.fleet._process import fleet

    return group if group is not None else fleet.get_hybrid_communicate_group().get_sep_parallel_group()


def _check(function: str, query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, given in (("query", query), ("key", key), ("value", value)):
        if given.ndim != 4:
            raise ValueError(f"[{function}] {name} has shape {list(given.shape)}. hint: pass [batch, sequence, heads, size].")
    if list(key.shape) != list(value.shape) or key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        raise ValueError(f"[{function}] query, key and value have the shapes {list(query.shape)}, {list(key.shape)} and {list(value.shape)}. "
                         "hint: key and value are alike, and differ from query in the sequence and the heads at most.")
    if query.shape[2] % key.shape[2]:
        raise ValueError(f"[{function}] query has {query.shape[2]} heads, and key {key.shape[2]}. hint: the heads of key must divide them.")


# ---- Sequences for heads -------------------------------------------------------------------------


def sequence_to_heads(x: Tensor, group: Group | None = None) -> Tensor:
    """Exchanges pieces of the sequence with some heads for the whole sequence with a piece of the heads.

    Args:
        x: ``[batch, piece of the sequence, heads, size]``.
        group: the processes; by default those along the axis of sequences.

    Returns:
        ``[batch, sequence, piece of the heads, size]``.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import context_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> context_parallel_utils.sequence_to_heads(oar.ones([1, 4, 2, 8])).shape
        [1, 4, 2, 8]
    """
    return _swapped("sequence_to_heads", x, cut=2, join=1, group=_among(group))


def heads_to_sequence(x: Tensor, group: Group | None = None) -> Tensor:
    """Exchanges the whole sequence with a piece of the heads for a piece of the sequence with all heads.

    Args:
        x: ``[batch, sequence, piece of the heads, size]``.
        group: the processes; by default those along the axis of sequences.

    Returns:
        ``[batch, piece of the sequence, heads, size]``.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import context_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> context_parallel_utils.heads_to_sequence(oar.ones([1, 4, 2, 8])).shape
        [1, 4, 2, 8]
    """
    return _swapped("heads_to_sequence", x, cut=1, join=2, group=_among(group))


def _swapped(function: str, x: Tensor, cut: int, join: int, group: Group) -> Tensor:
    if x.ndim != 4:
        raise ValueError(f"[{function}] x has shape {list(x.shape)}. hint: pass [batch, sequence, heads, size].")
    if group.nranks == 1:
        return x
    return paste_along(ops.all_to_all(cut_along(function, x, cut, group.nranks), group.id, group.nranks), join)


def segment_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, dropout_p: float = 0.0, group: Group | None = None,
    training: bool = True,
) -> Tensor:  # fmt: skip
    """``scaled_dot_product_attention`` of sequences that are cut: each process computes some heads, for the whole sequence.

    Args:
        query: the piece of this process, ``[batch, piece of the sequence, heads, size]``.
        key: likewise. The number of its heads must be a multiple of the processes, too.
        value: as ``key``.
        is_causal: whether a position sees only itself and those before it.
        dropout_p: the probability with which a weight becomes zero.
        group: the processes; by default those along the axis of sequences.
        training: whether weights become zero at all.

    Returns:
        a tensor like ``query``.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import context_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> x = oar.ones([1, 4, 2, 8])
        >>> context_parallel_utils.segment_attention(x, x, x, is_causal=True).shape
        [1, 4, 2, 8]
    """
    _check("segment_attention", query, key, value)
    among = _among(group)
    q, k, v = (sequence_to_heads(x, among) for x in (query, key, value))
    repeats = q.shape[2] // k.shape[2]
    if repeats > 1:
        k, v = (oar.repeat_interleave(x, repeats, axis=2) for x in (k, v))
    out = F.scaled_dot_product_attention(q, k, v, None, dropout_p, is_causal, training)
    return heads_to_sequence(out, among)


# ---- Keys and values that go around --------------------------------------------------------------


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float | None = None, group: Group | None = None
) -> Tensor:
    """Attention over a sequence of which each process has a piece, in order. Keys and values go from process to process, so that no
    process has more than two pieces of them. The weights of a few queries are there at a time, and none are kept: the backward pass
    computes them again.

    Args:
        query: the piece of this process, ``[batch, piece of the sequence, heads, size]``.
        key: likewise, of the same length in all processes. It may have fewer heads, each of which serves several of ``query``.
        value: as ``key``.
        is_causal: whether a position sees only itself and those before it. Pieces of query and key then are of one length.
        scale: the factor of the products; None is ``1 / sqrt(size)``.
        group: the processes; by default those along the axis of sequences.

    Returns:
        a tensor like ``query``: what attention over the whole sequence gives, up to rounding. It can be differentiated once.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import context_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> x = oar.ones([1, 4, 2, 8])
        >>> context_parallel_utils.ring_attention(x, x, x, is_causal=True).shape
        [1, 4, 2, 8]
    """
    _check("ring_attention", query, key, value)
    if is_causal and query.shape[1] != key.shape[1]:
        raise ValueError(f"[ring_attention] is_causal needs pieces of one length, but query has {query.shape[1]} positions and key "
                         f"{key.shape[1]}.")
    factor = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    return _Ring.apply(query, key, value, is_causal, factor, _among(group))


def _sent_on(x: Tensor, group: Group) -> Tensor:
    """What the process before this one has; this one's goes to the next."""
    if group.nranks == 1:
        return x
    rows, to, source = x.shape[0], (group.rank + 1) % group.nranks, (group.rank - 1) % group.nranks
    return ops.all_to_all_rows(x, [rows * (r == to) for r in range(group.nranks)], [rows * (r == source) for r in range(group.nranks)], group.id)


def _grouped(x: Tensor, heads: int) -> Tensor:
    """``[batch, heads of the keys, heads that share them, sequence, size]``, in float32 or wider."""
    wide = x.astype("float32") if x.dtype in (oar.float16, oar.bfloat16) else x
    batch, length, own, size = wide.shape
    return wide.reshape([batch, length, heads, own // heads, size]).transpose([0, 2, 3, 1, 4])


def _ungrouped(x: Tensor, like: Tensor) -> Tensor:
    return x.transpose([0, 3, 1, 2, 4]).reshape(like.shape).astype(like.dtype)


def _in_rows(x: Tensor) -> list[Tensor]:
    """The queries in groups, so that the matrix of weights is never there as a whole."""
    length = x.shape[-2]
    ends = [*range(_ROWS, length, _ROWS), length]
    return oar.split(x, [end - begin for begin, end in zip([0, *ends], ends)], axis=-2) if length > _ROWS else [x]


class _Queries:
    """Some queries of this process and what they have seen: rows of the matrix of weights, piece by piece of the keys.

    Args:
        query: the queries.
        begin: the place of the first in the piece of this process.
        is_causal: whether a query sees only what comes before it.
        scale: the factor of the products.
    """

    def __init__(self, query: Tensor, begin: int, is_causal: bool, scale: float) -> None:
        self.query, self.begin, self.is_causal, self.scale = query, begin, is_causal, scale
        self.top: Any = None
        self.total: Any = None
        self.out: Any = None

    def scores(self, key: Tensor, is_own: bool) -> Tensor:
        products = oar.matmul(self.query, key, transpose_y=True) * self.scale
        if not self.is_causal or not is_own:  # the other pieces come before this one
            return products
        allowed = oar.tril(oar.ones(products.shape[-2:], "bool"), self.begin)
        return oar.where(allowed, products, oar.full([], -math.inf, products.dtype))

    def see(self, key: Tensor, value: Tensor, is_own: bool) -> None:
        """Adds a piece. Powers are relative to the highest score so far, and the sums are scaled when it rises."""
        scores = self.scores(key, is_own)
        highest = oar.max(scores, axis=-1, keepdim=True)
        if self.top is not None:
            highest = oar.maximum(self.top, highest)
        powers = oar.exp(scores - highest)
        total, out = oar.sum(powers, axis=-1, keepdim=True), oar.matmul(powers, value)
        if self.top is not None:
            kept = oar.exp(self.top - highest)
            total, out = self.total * kept + total, self.out * kept + out
        self.top, self.total, self.out = highest, total, out

    def gradients(self, key: Tensor, value: Tensor, is_own: bool, level: Tensor, grad_out: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of the queries, and those of a piece of keys and values."""
        weights = oar.exp(self.scores(key, is_own) - level)
        grad_value = oar.matmul(weights, grad_out, transpose_x=True)
        grad_scores = weights * (oar.matmul(grad_out, value, transpose_y=True) - slope) * self.scale
        grad_key = oar.matmul(grad_scores, self.query, transpose_x=True)
        of_pair = oar.stack([oar.sum(x, axis=2, keepdim=True) for x in (grad_key, grad_value)])
        return oar.matmul(grad_scores, key), of_pair


def _queries_of(query: Tensor, key: Tensor, is_causal: bool, scale: float) -> list[_Queries]:
    groups = _in_rows(_grouped(query, key.shape[2]))
    return [_Queries(group, i * _ROWS, is_causal, scale) for i, group in enumerate(groups)]


class _Ring(PyLayer):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float, group: Group) -> Tensor:
        queries = _queries_of(query, key, is_causal, scale)
        pair = oar.stack([_grouped(key, key.shape[2]), _grouped(value, key.shape[2])])
        for step in range(group.nranks):
            if step > 0:
                pair = _sent_on(pair, group)
            if not is_causal or step <= group.rank:  # the piece comes before the own one, or is it
                for some in queries:
                    some.see(pair[0], pair[1], step == 0)
        out = _ungrouped(oar.concat([some.out / some.total for some in queries], axis=-2), query)
        ctx.save_for_backward(query, key, value, out, oar.concat([some.top + oar.log(some.total) for some in queries], axis=-2))
        ctx.settings = is_causal, scale, group
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if oar.is_grad_enabled():
            raise NotImplementedError("[ring_attention] there is no derivative of second order. hint: use segment_attention, which has it.")
        query, key, value, out, levels = ctx.saved_tensor()
        is_causal, scale, group = ctx.settings
        queries, heads = _queries_of(query, key, is_causal, scale), key.shape[2]
        grad_out = _grouped(grad, heads)
        slope = oar.sum(grad_out * _grouped(out, heads), axis=-1, keepdim=True)
        rows = list(zip(queries, _in_rows(levels), _in_rows(grad_out), _in_rows(slope)))
        pair = oar.stack([_grouped(key, heads), _grouped(value, heads)])
        grad_queries, grad_pair = [oar.zeros_like(some.query) for some in queries], oar.zeros_like(pair)
        for step in range(group.nranks):
            if step > 0:
                pair, grad_pair = oar.split(_sent_on(oar.concat([pair, grad_pair]), group), 2)
            if not is_causal or step <= group.rank:
                for i, (some, *given) in enumerate(rows):
                    own, of_pair = some.gradients(pair[0], pair[1], step == 0, *given)
                    grad_queries[i], grad_pair = grad_queries[i] + own, grad_pair + of_pair
        grad_pair = _sent_on(grad_pair, group)  # home
        return _ungrouped(oar.concat(grad_queries, axis=-2), query), _ungrouped(grad_pair[0], key), _ungrouped(grad_pair[1], value)
