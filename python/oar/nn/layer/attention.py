"""Attention with several heads."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework.param_attr import ParamAttr
from oar.nn import functional as F
from oar.nn.layer.common import Linear
from oar.nn.layer.layers import Layer

__all__ = ["MultiHeadAttention"]


def check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size <= 0:
            raise ValueError(f"Expected {name} to be greater than 0, but received {size}.")


def attributes_of(attr: Any, count: int) -> list[Any]:
    """One parameter attribute for each of ``count`` parts, from one for all or a list of them."""
    if isinstance(attr, (list, tuple)):
        if len(attr) != count:
            raise ValueError(f"A list of attributes must have {count} of them here, but has {len(attr)}.")
        return [ParamAttr._to_attr(one) for one in attr]
    attr = ParamAttr._to_attr(attr)
    if attr is False:
        return [False] * count
    copies = [copy.copy(attr) for _ in range(count)]
    for number, one in enumerate(copies):
        if attr.name:
            one.name = f"{attr.name}_{number}"
    return copies


def added_mask(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask of bools or integers, 1 for what may be seen, as numbers that are added to the scores.

    They are finite: in a fully masked row all keys have equal weight.
    """
    if mask is not None and not oar.is_floating_point(mask):
        return (mask.astype(dtype) - 1.0) * 1e9
    return mask


class MultiHeadAttention(Layer):
    """Attention in several heads, between projections of query, key, value and result.

    Args:
        embed_dim: width of query and result; a multiple of ``num_heads``.
        num_heads: number of heads.
        dropout: share of the weights that is dropped in training.
        kdim: width of the keys; ``embed_dim`` when None.
        vdim: width of the values; ``embed_dim`` when None.
        need_weights: return the weights too.
        weight_attr: attributes of the projections' weights.
        bias_attr: attributes of their biases; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.MultiHeadAttention(16, 4)
        >>> layer(oar.ones([2, 5, 16])).shape
        [2, 5, 16]
    """

    Cache = namedtuple("Cache", ["k", "v"])
    StaticCache = namedtuple("StaticCache", ["k", "v"])

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        check_positive(embed_dim=embed_dim, num_heads=num_heads)
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.need_weights = need_weights
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise ValueError(f"embed_dim {embed_dim} must be divisible by num_heads {num_heads}.")
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, length, embed_dim] as [batch, length, heads, width]."""
        return ops.reshape(x, [0, 0, self.num_heads, self.head_dim])

    def compute_kv(self, key: Tensor, value: Tensor | None) -> tuple[Tensor, Tensor]:
        """Projected keys and values, [batch, heads, length, width]: what a cache holds."""
        k, v = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        return ops.transpose(k, [0, 2, 1, 3]), ops.transpose(v, [0, 2, 1, 3])

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = Cache) -> Any:
        """A cache to begin with.

        A ``StaticCache`` holds the projections of ``key`` and ``value``. A ``Cache`` grows: it begins empty, with the
        batch of ``key``, or with ``key`` and ``value`` as they are where both are given.
        """
        if type is MultiHeadAttention.StaticCache:
            return self.StaticCache(*self.compute_kv(key, value))
        if value is not None:
            return self.Cache(key, value)
        shape = [key.shape[0], self.num_heads, 0, self.head_dim]
        return self.Cache(oar.zeros(shape, dtype=key.dtype), oar.zeros(shape, dtype=key.dtype))

    def _prepare_qkv(self, query: Tensor, key: Tensor, value: Tensor, cache: Any = None) -> tuple[Any, ...]:
        """Queries, keys and values of each head, [batch, heads, length, width], and the grown cache if there is one.

        Subclasses override this, for example to rotate queries and keys.
        """
        q = ops.transpose(self._heads(self.q_proj(query)), [0, 2, 1, 3])
        if isinstance(cache, self.StaticCache):
            return q, cache.k, cache.v, cache
        k, v = self.compute_kv(key, value)
        if isinstance(cache, self.Cache):
            k, v = ops.concat([cache.k, k], 2), ops.concat([cache.v, v], 2)
            cache = self.Cache(k, v)
        return (q, k, v) if cache is None else (q, k, v, cache)

    def _weighted(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same as the fused op, with the weights as a matrix."""
        scores = ops.matmul(q * self.head_dim**-0.5, k, False, True)
        if mask is not None:
            scores = scores + mask.astype(scores.dtype)
        weights = F.dropout(F.softmax(scores), self.dropout, training=self.training)
        return ops.transpose(ops.matmul(weights, v), [0, 2, 1, 3]), weights

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        key = query if key is None else key
        value = query if value is None else value
        q, k, v, *grown = self._prepare_qkv(query, key, value, cache)
        cache = grown[0] if grown else None
        mask, weights = added_mask(attn_mask, q.dtype), None
        # The fused op scales by the width of the queries, which a subclass may have changed.
        if self.need_weights or q.shape[-1] != self.head_dim:
            out, weights = self._weighted(q, k, v, mask)
        else:
            if mask is not None and mask.ndim == 3:  # by the rules of broadcasting: [heads, queries, keys]
                mask = ops.unsqueeze(mask, [0])
            q, k, v = (ops.transpose(part, [0, 2, 1, 3]) for part in (q, k, v))
            out = ops.scaled_dot_product_attention(q, k, v, mask, self.dropout, False, self.training)
        out = self.out_proj(ops.flatten(out, 2))
        results = [out, weights] if self.need_weights else [out]
        results += [] if cache is None else [cache]
        return results[0] if len(results) == 1 else tuple(results)
