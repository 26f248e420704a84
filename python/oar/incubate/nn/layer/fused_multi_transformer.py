"""A layer over ``fused_multi_transformer``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar import nn
from oar._C import Tensor
from oar.incubate.nn.functional.multi_transformer import fused_multi_transformer
from oar.nn.initializer import Constant

__all__ = ["FusedMultiTransformer"]


class FusedMultiTransformer(nn.Layer):
    """All layers of a transformer: attention and two linear layers each, with their norms and residuals.

    Each of the attributes is for all layers, or a list with one for each. A bias exists only where its attributes are
    given; None and False leave it out, as in Paddle.

    Args:
        embed_dim: the size of the input.
        num_heads: the number of heads of queries.
        dim_feedforward: the size between the linear layers.
        dropout_rate: the probability of a zero.
        activation: 'gelu', 'relu', 'geglu' or 'swiglu'.
        normalize_before: whether norms are before the attention and the linear layers rather than after.
        ln_scale_attrs: attributes of the weights of the norms of the attention.
        ln_bias_attrs: attributes of their biases.
        qkv_weight_attrs: attributes of the weights of queries, keys and values.
        qkv_bias_attrs: attributes of their biases.
        linear_weight_attrs: attributes of the weights after the attention.
        linear_bias_attrs: attributes of their biases.
        ffn_ln_scale_attrs: attributes of the weights of the norms of the linear layers.
        ffn_ln_bias_attrs: attributes of their biases.
        ffn1_weight_attrs: attributes of the weights of the first linear layers.
        ffn1_bias_attrs: attributes of their biases.
        ffn2_weight_attrs: attributes of the weights of the second linear layers.
        ffn2_bias_attrs: attributes of their biases.
        epsilon: added to the variance.
        residual_alpha: what the residual is multiplied by.
        num_layers: the number of layers, unless qkv_weight_attrs is a list.
        nranks: only 1.
        trans_qkvw: whether the weights of queries, keys and values end with the size of the input.
        ring_id: only -1.
        norm_type: 'layernorm' or 'rmsnorm'.
        use_neox_rotary_style: whether elements of both halves turn together (True) or neighbours (False).
        gqa_group_size: the number of heads of keys and values; as many as of queries if not positive.

    Examples:
        >>> import oar
        >>> layers = oar.incubate.nn.FusedMultiTransformer(8, 2, 16, num_layers=2)
        >>> layers(oar.ones([2, 3, 8])).shape
        [2, 3, 8]
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dim_feedforward: int, dropout_rate: float = 0.0, activation: str = "gelu",
        normalize_before: bool = True, ln_scale_attrs: Any = None, ln_bias_attrs: Any = None,
        qkv_weight_attrs: Any = None, qkv_bias_attrs: Any = None, linear_weight_attrs: Any = None,
        linear_bias_attrs: Any = None, ffn_ln_scale_attrs: Any = None, ffn_ln_bias_attrs: Any = None,
        ffn1_weight_attrs: Any = None, ffn1_bias_attrs: Any = None, ffn2_weight_attrs: Any = None,
        ffn2_bias_attrs: Any = None, epsilon: float = 1e-05, residual_alpha: float = 1.0, num_layers: int = -1,
        nranks: int = 1, trans_qkvw: bool = True, ring_id: int = -1, norm_type: str = "layernorm",
        use_neox_rotary_style: bool = False, gqa_group_size: int = -1, name: str | None = None,
    ) -> None:
        super().__init__()
        if nranks != 1 or ring_id != -1:
            raise NotImplementedError(
                "FusedMultiTransformer: nranks and ring_id are for several processes, which Oar does not have yet.")
        if embed_dim <= 0 or num_heads <= 0 or dim_feedforward <= 0 or embed_dim % num_heads:
            raise ValueError(f"embed_dim ({embed_dim}), num_heads ({num_heads}) and dim_feedforward ({dim_feedforward}) "
                             "must be positive, and num_heads must divide embed_dim.")
        if isinstance(qkv_weight_attrs, (list, tuple)):
            num_layers = len(qkv_weight_attrs)
        if num_layers <= 0:
            raise ValueError(f"num_layers is {num_layers}; it must be positive, unless qkv_weight_attrs is a list.")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.normalize_before, self.dropout_rate, self.activation, self.name = (
            normalize_before, dropout_rate, activation, name)
        self._epsilon, self._residual_alpha, self._norm_type = epsilon, residual_alpha, norm_type
        self._trans_qkvw, self._use_neox_rotary_style, self._gqa_group_size = (
            trans_qkvw, use_neox_rotary_style, gqa_group_size)
        heads = [3, num_heads] if gqa_group_size <= 0 else [num_heads + 2 * gqa_group_size]
        rows, one = [*heads, self.head_dim], Constant(1.0)
        inner = dim_feedforward * (2 if activation.endswith("glu") else 1)

        def weights(shape: list[int], attrs: Any, initializer: Any = None) -> list[Tensor]:
            return [self._kept(shape, self._attr_of(attrs, i, num_layers), False, initializer) for i in range(num_layers)]

        def biases(shape: list[int], attrs: Any) -> list[Tensor] | None:
            every = [self._attr_of(attrs, i, num_layers) for i in range(num_layers)]
            if not all(every):
                if any(every):
                    raise ValueError("the attributes of a bias are given for some layers only; give them for all or none.")
                return None
            return [self._kept(shape, attr, True, None) for attr in every]

        self.ln_scales, self.ln_biases = weights([embed_dim], ln_scale_attrs, one), biases([embed_dim], ln_bias_attrs)
        self.qkv_weights = weights([*rows, embed_dim] if trans_qkvw else [embed_dim, *rows], qkv_weight_attrs)
        self.qkv_biases = biases(rows, qkv_bias_attrs)
        self.linear_weights = weights([embed_dim, embed_dim], linear_weight_attrs)
        self.linear_biases = biases([embed_dim], linear_bias_attrs)
        self.ffn_ln_scales = weights([embed_dim], ffn_ln_scale_attrs, one)
        self.ffn_ln_biases = biases([embed_dim], ffn_ln_bias_attrs)
        self.ffn1_weights = weights([embed_dim, inner], ffn1_weight_attrs)
        self.ffn1_biases = biases([inner], ffn1_bias_attrs)
        self.ffn2_weights = weights([dim_feedforward, embed_dim], ffn2_weight_attrs)
        self.ffn2_biases = biases([embed_dim], ffn2_bias_attrs)

    @staticmethod
    def _attr_of(attrs: Any, i: int, layers: int) -> Any:
        if not isinstance(attrs, (list, tuple)):
            return attrs
        if len(attrs) != layers:
            raise ValueError(f"a list of attributes has {len(attrs)} elements, for {layers} layers.")
        return attrs[i]

    def _kept(self, shape: list[int], attr: Any, is_bias: bool, initializer: Any) -> Tensor:
        """A new parameter, which the state of the layer has under its own name."""
        parameter = self.create_parameter(shape, attr=attr, is_bias=is_bias, default_initializer=initializer)
        if parameter.name in self._parameters:
            raise ValueError(f"two parameters have the name {parameter.name!r}; give each layer attributes of its own.")
        self._parameters[parameter.name] = parameter
        return parameter

    def forward(
        self, src: Tensor, attn_mask: Tensor | None = None, caches: Sequence[Tensor] | None = None,
        pre_caches: Sequence[Tensor] | None = None, rotary_embs: Tensor | None = None, rotary_emb_dims: int = 0,
        beam_offset: Tensor | None = None, seq_lens: Tensor | None = None, time_step: Tensor | int | None = None,
    ) -> Tensor | tuple[Tensor, Sequence[Tensor]]:
        """The result [batch, length, embed_dim]; with caches also these.

        Args:
            src: the input [batch, length, embed_dim].
            attn_mask: added to the scores.
            caches: keys and values of each layer; written in place.
            pre_caches: keys and values before the prompt, of each layer.
            rotary_embs: cosines and sines.
            rotary_emb_dims: 0 without rotary_embs; else how many parts of a head turn separately.
            beam_offset: not supported.
            seq_lens: the length of each sequence.
            time_step: how many positions the caches hold; then src is the next one.
        """
        return fused_multi_transformer(
            src, self.ln_scales, self.ln_biases, self.qkv_weights, self.qkv_biases, self.linear_weights,
            self.linear_biases, self.ffn_ln_scales, self.ffn_ln_biases, self.ffn1_weights, self.ffn1_biases,
            self.ffn2_weights, self.ffn2_biases, self.normalize_before, self._epsilon, self._residual_alpha, caches,
            beam_offset, pre_caches, seq_lens, rotary_embs, time_step, attn_mask, self.dropout_rate, rotary_emb_dims,
            self.activation, self.training, "upscale_in_train", self._trans_qkvw, -1, self._norm_type,
            self._use_neox_rotary_style, self._gqa_group_size,
        )
