"""Attention layers and the transformer that is built of them."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.attention import MultiHeadAttention, attributes_of, check_positive
from oar.nn.layer.attention import added_mask as _convert_attention_mask  # noqa: F401
from oar.nn.layer.attention import attributes_of as _convert_param_attr_to_list  # noqa: F401
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
        """``x`` plus ``step`` of it, normalised before or after; and the step's second result."""
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
        check_positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        weights, biases = attributes_of(weight_attr, 2), attributes_of(bias_attr, 2)
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
    """The layer and new ones created with its arguments, with their own parameters."""
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
        check_positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        weights, biases = attributes_of(weight_attr, 3), attributes_of(bias_attr, 3)
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
        check_positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        weights, biases = _for_stacks(weight_attr), _for_stacks(bias_attr)
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            encoding = TransformerEncoderLayer(*common, weights[0], biases[0])
            custom_encoder = TransformerEncoder(encoding, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoding = TransformerDecoderLayer(*common, weights[1], biases[1])
            custom_decoder = TransformerDecoder(decoding, num_decoder_layers, LayerNorm(d_model))
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
