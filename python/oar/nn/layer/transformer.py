"""Attention layers and the transformer that is built of them."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework.param_attr import ParamAttr
from oar.nn import functional as F
from oar.nn.layer.common import Dropout, Linear
from oar.nn.layer.container import LayerList
from oar.nn.layer.layers import Layer
from oar.nn.layer.norm import LayerNorm

__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size <= 0:
            raise ValueError(f"Expected {name} to be greater than 0, but received {size}.")


def _attributes(attr: Any, count: int) -> list[Any]:
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


def _added(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask of bools or integers, 1 for what may be seen, as numbers that are added to the scores.

    They are finite: in a row that is hidden altogether all keys weigh alike.
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
        _positive(embed_dim=embed_dim, num_heads=num_heads)
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

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
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
        mask, weights = _added(attn_mask, q.dtype), None
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


class _FeedForwardLayer(Layer):
    """What the layers of encoder and decoder share: the network after attention, and residual steps."""

    def _make_feed_forward(
        self, d_model: int, dim_feedforward: int, act_dropout: float, activation: str, weight_attr: Any, bias_attr: Any
    ) -> None:
        self.linear1 = Linear(d_model, dim_feedforward, weight_attr, bias_attr)
        self.dropout = Dropout(act_dropout, mode="upscale_in_train")
        self.linear2 = Linear(dim_feedforward, d_model, weight_attr, bias_attr)
        self.activation = getattr(F, activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x: Tensor, norm: Layer, dropout: Layer, step: Any) -> tuple[Tensor, Any]:
        """``x`` plus what ``step`` makes of it, normalised before or after; and the step's second result."""
        made, extra = step(norm(x) if self.normalize_before else x)
        x = x + dropout(made)
        return (x if self.normalize_before else norm(x)), extra


def _with_cache(made: Any, cache: Any) -> tuple[Tensor, Any]:
    return (made, None) if cache is None else made


class TransformerEncoderLayer(_FeedForwardLayer):
    """Self-attention and a feed-forward network, each with a residual connection and a normalisation.

    Args:
        d_model: width of input and result.
        nhead: number of heads.
        dim_feedforward: width inside the feed-forward network.
        dropout: dropout after both parts.
        activation: name of the function inside the feed-forward network.
        attn_dropout: dropout of the attention's weights; ``dropout`` when None.
        act_dropout: dropout after the activation; ``dropout`` if None.
        normalize_before: normalise the input of each part, not the sum after it.
        weight_attr: attributes of weights, one for all or [attention, feed-forward].
        bias_attr: attributes of biases in the same way; False for none.
        layer_norm_eps: added to variances.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.TransformerEncoderLayer(16, 4, 32)
        >>> layer(oar.ones([2, 5, 16])).shape
        [2, 5, 16]
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        self._config = config
        _positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        weights, biases = _attributes(weight_attr, 2), _attributes(bias_attr, 2)
        self.self_attn = MultiHeadAttention(
            d_model, nhead, attn_dropout, weight_attr=weights[0], bias_attr=biases[0]
        )
        self._make_feed_forward(d_model, dim_feedforward, act_dropout, activation, weights[1], biases[1])
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout, mode="upscale_in_train")
        self.dropout2 = Dropout(dropout, mode="upscale_in_train")

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        src, cache = self._residual(
            src, self.norm1, self.dropout1, lambda x: _with_cache(self.self_attn(x, x, x, src_mask, cache), cache)
        )
        src, _ = self._residual(src, self.norm2, self.dropout2, lambda x: (self._feed_forward(x), None))
        return src if cache is None else (src, cache)

    def gen_cache(self, src: Tensor) -> MultiHeadAttention.Cache:
        """An empty cache for the batch of ``src``."""
        return self.self_attn.gen_cache(src, type=MultiHeadAttention.Cache)


def _stacked(layer: Layer, count: int) -> LayerList:
    """The layer and new ones made with its arguments, with parameters of their own."""
    return LayerList([layer, *(type(layer)(**layer._config) for _ in range(count - 1))])


class TransformerEncoder(Layer):
    """A stack of encoder layers.

    Args:
        encoder_layer: the first of them; the others are created with its arguments.
        num_layers: how many.
        norm: a normalisation after the last.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32), 2)
        >>> encoder(oar.ones([2, 5, 16])).shape
        [2, 5, 16]
    """

    def __init__(self, encoder_layer: Layer, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self.layers = _stacked(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        caches = []
        for number, layer in enumerate(self.layers):
            if cache is None:
                src = layer(src, src_mask=src_mask)
            else:
                src, grown = layer(src, src_mask=src_mask, cache=cache[number])
                caches.append(grown)
        if self.norm is not None:
            src = self.norm(src)
        return src if cache is None else (src, caches)

    def gen_cache(self, src: Tensor) -> list[MultiHeadAttention.Cache]:
        """An empty cache per layer for the batch of ``src``."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoderLayer(_FeedForwardLayer):
    """Self-attention, attention to an encoder's result, and a feed-forward network.

    The arguments are those of ``TransformerEncoderLayer``; lists of attributes are [self-attention, cross-attention,
    feed-forward].

    Args:
        d_model: the width of the model.
        nhead: the number of heads.
        dim_feedforward: the width of the feed-forward network.
        dropout: the probability of dropping an element.
        activation: the name of the activation.
        attn_dropout: the probability of dropping an attention weight; ``dropout`` if None.
        act_dropout: the probability of dropping an activation; ``dropout`` if None.
        normalize_before: whether normalisation comes before each part, not after.
        weight_attr: a ``ParamAttr`` or an initialiser for the weight; False leaves it out.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        layer_norm_eps: the epsilon of the normalisations.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.TransformerDecoderLayer(16, 4, 32)
        >>> layer(oar.ones([2, 3, 16]), oar.ones([2, 5, 16])).shape
        [2, 3, 16]
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        self._config = config
        _positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        weights, biases = _attributes(weight_attr, 3), _attributes(bias_attr, 3)
        self.self_attn = MultiHeadAttention(
            d_model, nhead, attn_dropout, weight_attr=weights[0], bias_attr=biases[0]
        )
        self.cross_attn = MultiHeadAttention(
            d_model, nhead, attn_dropout, weight_attr=weights[1], bias_attr=biases[1]
        )
        self._make_feed_forward(d_model, dim_feedforward, act_dropout, activation, weights[2], biases[2])
        for number in (1, 2, 3):
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps))
            setattr(self, f"dropout{number}", Dropout(dropout, mode="upscale_in_train"))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        own, static = (None, None) if cache is None else cache
        tgt, own = self._residual(
            tgt, self.norm1, self.dropout1, lambda x: _with_cache(self.self_attn(x, x, x, tgt_mask, own), cache)
        )
        tgt, static = self._residual(
            tgt, self.norm2, self.dropout2,
            lambda x: _with_cache(self.cross_attn(x, memory, memory, memory_mask, static), cache),
        )  # fmt: skip
        tgt, _ = self._residual(tgt, self.norm3, self.dropout3, lambda x: (self._feed_forward(x), None))
        return tgt if cache is None else (tgt, (own, static))

    def gen_cache(self, memory: Tensor) -> tuple[MultiHeadAttention.Cache, MultiHeadAttention.StaticCache]:
        """An empty cache for the self-attention and the encoder's keys and values for the other."""
        return (
            self.self_attn.gen_cache(memory, type=MultiHeadAttention.Cache),
            self.cross_attn.gen_cache(memory, memory, type=MultiHeadAttention.StaticCache),
        )


class TransformerDecoder(Layer):
    """A stack of decoder layers; the arguments are those of ``TransformerEncoder``.

    Args:
        decoder_layer: the layer to repeat.
        num_layers: the number of layers.
        norm: a last normalisation, or None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32), 2)
        >>> decoder(oar.ones([2, 3, 16]), oar.ones([2, 5, 16])).shape
        [2, 3, 16]
    """

    def __init__(self, decoder_layer: Layer, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self.layers = _stacked(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        caches = []
        for number, layer in enumerate(self.layers):
            if cache is None:
                tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)
            else:
                tgt, grown = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=cache[number])
                caches.append(grown)
        if self.norm is not None:
            tgt = self.norm(tgt)
        return tgt if cache is None else (tgt, caches)

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list[Any]:
        """The layers' caches; with ``do_zip`` the growing ones first, then the static ones."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches)) if do_zip else caches


def _for_stacks(attr: Any) -> tuple[Any, Any]:
    """Attributes of encoder layers (two parts) and decoder layers (three) from a list of one, two or three."""
    if not isinstance(attr, (list, tuple)):
        return attr, attr
    if len(attr) not in (1, 2, 3):
        raise ValueError(f"A list of attributes must have 1, 2 or 3 of them here, but has {len(attr)}.")
    first, last = attr[0], attr[-1]
    return [first, last], (list(attr) if len(attr) == 3 else [first, first, last])


class Transformer(Layer):
    """An encoder and a decoder.

    Args:
        d_model: width of input and result.
        nhead: number of heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before: as in the layers.
        weight_attr: attributes of weights, one for all, or a list of one, two ([attention, feed-forward]) or three
            ([self-attention, cross-attention, feed-forward]).
        bias_attr: attributes of biases in the same way; False for none.
        custom_encoder: an encoder to use instead.
        custom_decoder: a decoder to use instead.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> model = nn.Transformer(16, 4, 1, 1, 32)
        >>> model(oar.ones([2, 5, 16]), oar.ones([2, 3, 16])).shape
        [2, 3, 16]
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        _positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        weights, biases = _for_stacks(weight_attr), _for_stacks(bias_attr)
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*common, weights[0], biases[0])
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*common, weights[1], biases[1])
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(src, src_mask=src_mask)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Tensor:
        """A mask that is added: 0 for what came before, -inf for what comes after."""
        return oar.triu(oar.full([length, length], float("-inf"), dtype=oar.get_default_dtype()), 1)
