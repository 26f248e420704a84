"""Attention with several heads as PyTorch has it."""

from __future__ import annotations

import math
from typing import Any

from oar._C import Tensor, ops
from oar.compat.nn import functional
from oar.compat.nn.linear import Linear
from oar.nn import functional as F
from oar.nn.initializer import Constant, XavierNormal, XavierUniform
from oar.nn.layer.layers import Layer

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Layer):
    """Attention with several heads. Sequences come first: [length, batch, size], unless ``batch_first``.

    Args:
        embed_dim: the size of queries and results.
        num_heads: the number of heads, which divides it.
        dropout: the part of the weights that is dropped in training.
        bias: whether the projections have biases.
        add_bias_kv: whether a learned place is added to keys and values.
        add_zero_attn: whether a place of zeros is added to keys and values.
        kdim: the size of keys; None is ``embed_dim``.
        vdim: the size of values; None is ``embed_dim``.
        batch_first: whether tensors are [batch, length, size].
        device: the device; None is the current one.
        dtype: the dtype of the parameters; None is the default one.

    Examples:
        >>> import oar
        >>> layer = oar.compat.nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = oar.ones([1, 3, 4])
        >>> result, weights = layer(x, x, x)
        >>> result.shape, weights.shape
        ([1, 3, 4], [1, 3, 3])
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"[MultiheadAttention] {num_heads} heads do not divide embed_dim, {embed_dim}.")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._in_one = self.kdim == self.vdim == embed_dim

        def matrix(rows: int, columns: int) -> Tensor:
            return self.create_parameter([rows, columns], dtype=dtype, default_initializer=XavierUniform())

        def zeros(size: int) -> Tensor:
            return self.create_parameter([size], dtype=dtype, is_bias=True, default_initializer=Constant(0.0))

        if self._in_one:
            self.in_proj_weight = matrix(3 * embed_dim, embed_dim)
            self.in_proj_bias = zeros(3 * embed_dim) if bias else None
        else:
            for letter, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                setattr(self, f"{letter}_proj_weight", matrix(embed_dim, size))
                setattr(self, f"{letter}_proj_bias", zeros(embed_dim) if bias else None)
        for letter in "kv":
            place = self.create_parameter([1, 1, embed_dim], dtype=dtype, default_initializer=XavierNormal())
            setattr(self, f"bias_{letter}", place if add_bias_kv else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias.set_value(ops.zeros([embed_dim], self.out_proj.bias.dtype))
        if device is not None:
            self.to(device)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if self._in_one:
            weights = ops.split(self.in_proj_weight, 3, 0)
            biases = [None] * 3 if self.in_proj_bias is None else ops.split(self.in_proj_bias, 3, 0)
        else:
            weights = [getattr(self, f"{letter}_proj_weight") for letter in "qkv"]
            biases = [getattr(self, f"{letter}_proj_bias") for letter in "qkv"]
        return [functional.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _longer(self, x: Tensor, learned: Tensor | None) -> Tensor:
        """Keys or values [batch, length, size] with the places that are added to them."""
        batch = x.shape[0]
        if learned is not None:
            x = ops.concat([x, ops.expand(learned, [batch, 1, self.embed_dim])], 1)
        if self.add_zero_attn:
            x = ops.concat([x, ops.zeros([batch, 1, self.embed_dim], x.dtype)], 1)
        return x

    def _heads(self, x: Tensor) -> Tensor:
        return ops.transpose(ops.reshape(x, [x.shape[0], x.shape[1], self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def _mask(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, shape: list[int], dtype: Any) -> Tensor | None:
        """What is added to scores [batch, heads, length, other length]. Added places are never hidden."""
        batch, heads, length, other = shape
        total: Tensor | None = None
        if attn_mask is not None:
            if attn_mask.ndim == 3:
                attn_mask = ops.reshape(attn_mask, [batch, heads, length, attn_mask.shape[-1]])
            total = _as_scores(attn_mask, dtype)
        if key_padding_mask is not None:
            hidden = ops.unsqueeze(_as_scores(key_padding_mask, dtype), [1, 2])
            total = hidden if total is None else total + hidden
        if total is None or total.shape[-1] == other:
            return total
        return F.pad(total, [0, 0] * (total.ndim - 1) + [0, other - total.shape[-1]])

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """The results, and the weights if they are asked for: of all heads, or their mean.

        Args:
            query: what asks, [length, batch, embed_dim].
            key: what is compared with it, [other length, batch, kdim].
            value: what is taken, [other length, batch, vdim].
            key_padding_mask: [batch, other length]; True, or minus infinity, hides a place.
            need_weights: whether to return the weights.
            attn_mask: [length, other length], or one for each head of each sample; True hides a score, floats are added.
            average_attn_weights: whether to return the mean of the heads' weights.
            is_causal: whether a place sees only the places before it and itself.
        """
        single = query.ndim == 2
        if single:
            query, key, value = (ops.unsqueeze(x, [0]) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else ops.unsqueeze(key_padding_mask, [0])
        elif not self.batch_first:
            query, key, value = (ops.transpose(x, [1, 0, 2]) for x in (query, key, value))
        q, k, v = self._projected(query, key, value)
        k, v = self._longer(k, self.bias_k), self._longer(v, self.bias_v)
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        if is_causal and attn_mask is None:
            attn_mask = ops.triu(ops.ones([query.shape[1], key.shape[1]], "int32"), 1).astype("bool")
        scores = ops.matmul(q * (1.0 / math.sqrt(self.head_dim)), k, False, True)
        mask = self._mask(attn_mask, key_padding_mask, list(scores.shape), scores.dtype)
        weights = ops.softmax(scores if mask is None else scores + mask, -1)
        dropped = F.dropout(weights, self.dropout, training=self.training) if self.dropout else weights
        mixed = ops.transpose(ops.matmul(dropped, v), [0, 2, 1, 3])
        result = self.out_proj(ops.reshape(mixed, [query.shape[0], query.shape[1], self.embed_dim]))
        if not single and not self.batch_first:
            result = ops.transpose(result, [1, 0, 2])
        shown = None
        if need_weights:
            shown = ops.mean(weights, 1) if average_attn_weights else weights
        if single:
            return ops.squeeze(result, [0]), None if shown is None else ops.squeeze(shown, [0])
        return result, shown


def _as_scores(mask: Tensor, dtype: Any) -> Tensor:
    """A mask of bools, in which True hides, as what is added to scores."""
    if mask.dtype.name != "bool":
        return ops.cast(mask, dtype)
    return ops.where(mask, ops.full([], -math.inf, dtype), ops.zeros([], dtype))
