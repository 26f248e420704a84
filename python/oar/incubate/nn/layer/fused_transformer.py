"""The layers of a transformer over the functions of ``oar.incubate.nn.functional``."""

from __future__ import annotations

from typing import Any

from oar import nn
from oar._C import Tensor
from oar.incubate.nn import functional as fused
from oar.nn.initializer import Constant

__all__ = [
    "FusedBiasDropoutResidualLayerNorm",
    "FusedFeedForward",
    "FusedMultiHeadAttention",
    "FusedTransformerEncoderLayer",
]


def _check_alone(layer: str, nranks: int, ring_id: int) -> None:
    if nranks != 1 or ring_id != -1:
        raise NotImplementedError(f"{layer}: nranks and ring_id are for several processes, which Oar does not have yet.")


class FusedBiasDropoutResidualLayerNorm(nn.Layer):
    """layer_norm(residual + dropout(x + bias)).

    Args:
        embed_dim: the size of the last axis.
        dropout_rate: the probability of a zero.
        weight_attr: attributes of the norm's weight.
        bias_attr: attributes of both biases; False for none.
        epsilon: added to the variance.

    Examples:
        >>> import oar
        >>> layer = oar.incubate.nn.FusedBiasDropoutResidualLayerNorm(4)
        >>> layer(oar.ones([2, 3, 4]), oar.ones([2, 3, 4])).shape
        [2, 3, 4]
    """

    def __init__(self, embed_dim: int, dropout_rate: float = 0.5, weight_attr: Any = None, bias_attr: Any = None,
                 epsilon: float = 1e-05, name: str | None = None) -> None:
        super().__init__()
        if embed_dim <= 0:
            raise ValueError(f"embed_dim is {embed_dim}; it must be positive.")
        self.linear_bias = self.create_parameter([embed_dim], attr=bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], attr=weight_attr, default_initializer=Constant(1.0))
        self.ln_bias = self.create_parameter([embed_dim], attr=bias_attr, is_bias=True)
        self.embed_dim = embed_dim
        self.dropout_rate = dropout_rate
        self._epsilon = epsilon
        self.name = name

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        """The norm of the sum.

        Args:
            x: [batch, length, embed_dim].
            residual: like x.
        """
        return fused.fused_bias_dropout_residual_layer_norm(
            x, residual, self.linear_bias, self.ln_scale, self.ln_bias, self.dropout_rate, self._epsilon, self.training
        )

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, dropout_rate={self.dropout_rate}, epsilon={self._epsilon}"


class FusedMultiHeadAttention(nn.Layer):
    """The attention of a transformer's layer with its dropout, residual and norm.

    Args:
        embed_dim: the size of the input.
        num_heads: the number of heads.
        dropout_rate: the probability of a zero at the end.
        attn_dropout_rate: the probability of a zero among the attention's weights.
        kdim: only None or embed_dim.
        vdim: only None or embed_dim.
        normalize_before: whether the norm is before the attention rather than after.
        need_weights: only False.
        qkv_weight_attr: attributes of the projections' weight.
        qkv_bias_attr: attributes of their bias; False for none.
        linear_weight_attr: attributes of the last layer's weight.
        linear_bias_attr: attributes of its bias; False for none.
        pre_ln_scale_attr: attributes of the weight of the norm before.
        pre_ln_bias_attr: attributes of its bias.
        ln_scale_attr: attributes of the weight of the norm after.
        ln_bias_attr: attributes of its bias.
        epsilon: added to the variance.
        nranks: only 1.
        ring_id: only -1.
        transpose_qkv_wb: whether the projections' weight is stored as [embed_dim, 3 * embed_dim].

    Examples:
        >>> import oar
        >>> layer = oar.incubate.nn.FusedMultiHeadAttention(8, 2)
        >>> layer(oar.ones([2, 3, 8])).shape
        [2, 3, 8]
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout_rate: float = 0.5, attn_dropout_rate: float = 0.5,
        kdim: int | None = None, vdim: int | None = None, normalize_before: bool = False, need_weights: bool = False,
        qkv_weight_attr: Any = None, qkv_bias_attr: Any = None, linear_weight_attr: Any = None,
        linear_bias_attr: Any = None, pre_ln_scale_attr: Any = None, pre_ln_bias_attr: Any = None,
        ln_scale_attr: Any = None, ln_bias_attr: Any = None, epsilon: float = 1e-05, nranks: int = 1, ring_id: int = -1,
        transpose_qkv_wb: bool = False, name: str | None = None,
    ) -> None:
        super().__init__()
        _check_alone("FusedMultiHeadAttention", nranks, ring_id)
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"num_heads ({num_heads}) must divide embed_dim ({embed_dim}), both positive.")
        if need_weights or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            raise NotImplementedError(
                "FusedMultiHeadAttention: need_weights must be False, kdim and vdim None. Use nn.MultiHeadAttention."
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.normalize_before, self._epsilon = normalize_before, epsilon
        self.dropout_rate, self.attn_dropout_rate = dropout_rate, attn_dropout_rate
        self.transpose_qkv_wb = transpose_qkv_wb
        heads = [3, num_heads, self.head_dim]
        weight, bias = ([embed_dim, 3 * embed_dim], [3 * embed_dim]) if transpose_qkv_wb else ([*heads, embed_dim], heads)
        self.qkv_weight = self.create_parameter(weight, attr=qkv_weight_attr)
        self.qkv_bias = self.create_parameter(bias, attr=qkv_bias_attr, is_bias=True)
        self.linear_weight = self.create_parameter([embed_dim, embed_dim], attr=linear_weight_attr)
        self.linear_bias = self.create_parameter([embed_dim], attr=linear_bias_attr, is_bias=True)
        self.pre_ln_scale = self.pre_ln_bias = self.ln_scale = self.ln_bias = None
        one = Constant(1.0)
        if normalize_before:
            self.pre_ln_scale = self.create_parameter([embed_dim], attr=pre_ln_scale_attr, default_initializer=one)
            self.pre_ln_bias = self.create_parameter([embed_dim], attr=pre_ln_bias_attr, is_bias=True)
        else:
            self.ln_scale = self.create_parameter([embed_dim], attr=ln_scale_attr, default_initializer=one)
            self.ln_bias = self.create_parameter([embed_dim], attr=ln_bias_attr, is_bias=True)
        self.name = name

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                attn_mask: Tensor | None = None, cache: Tensor | None = None) -> Any:
        """The result like query; with a cache also the longer cache.

        Args:
            query: [batch, length, embed_dim].
            key: only None: keys are those of query.
            value: only None: values are those of query.
            attn_mask: added to the scores; bools and integers say what is seen.
            cache: keys and values of earlier positions, [2, batch, heads, length, head size].
        """
        if (key is not None and key is not query) or (value is not None and value is not query):
            raise NotImplementedError("FusedMultiHeadAttention: key and value must be None. Use nn.MultiHeadAttention.")
        return fused.fused_multi_head_attention(
            query, self.qkv_weight, self.linear_weight, self.normalize_before, self.pre_ln_scale, self.pre_ln_bias,
            self.ln_scale, self.ln_bias, self._epsilon, self.qkv_bias, self.linear_bias, cache, attn_mask,
            self.dropout_rate, self.attn_dropout_rate, self._epsilon, self.training, num_heads=self.num_heads,
            transpose_qkv_wb=self.transpose_qkv_wb,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, dropout_rate={self.dropout_rate}, "
                f"attn_dropout_rate={self.attn_dropout_rate}, epsilon={self._epsilon}, "
                f"normalize_before={self.normalize_before}")


class FusedFeedForward(nn.Layer):
    """The two linear layers of a transformer's layer with their dropout, residual and norm.

    Args:
        d_model: the size of the input.
        dim_feedforward: the size between the layers.
        dropout_rate: the probability of a zero at the end.
        epsilon: added to the variance.
        activation: 'relu' or 'gelu'.
        act_dropout_rate: the probability of a zero between the layers; dropout_rate if None.
        normalize_before: whether the norm is before the layers rather than after.
        linear1_weight_attr: attributes of the first weight.
        linear1_bias_attr: attributes of the first bias; False for none.
        linear2_weight_attr: attributes of the second weight.
        linear2_bias_attr: attributes of the second bias; False for none.
        ln1_scale_attr: attributes of the weight of the norm before.
        ln1_bias_attr: attributes of its bias.
        ln2_scale_attr: attributes of the weight of the norm after.
        ln2_bias_attr: attributes of its bias.
        nranks: only 1.
        ring_id: only -1.

    Examples:
        >>> import oar
        >>> layer = oar.incubate.nn.FusedFeedForward(8, 16)
        >>> layer(oar.ones([2, 3, 8])).shape
        [2, 3, 8]
    """

    def __init__(
        self, d_model: int, dim_feedforward: int, dropout_rate: float = 0.1, epsilon: float = 1e-05,
        activation: str = "relu", act_dropout_rate: float | None = None, normalize_before: bool = False,
        linear1_weight_attr: Any = None, linear1_bias_attr: Any = None, linear2_weight_attr: Any = None,
        linear2_bias_attr: Any = None, ln1_scale_attr: Any = None, ln1_bias_attr: Any = None,
        ln2_scale_attr: Any = None, ln2_bias_attr: Any = None, nranks: int = 1, ring_id: int = -1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        _check_alone("FusedFeedForward", nranks, ring_id)
        if d_model <= 0 or dim_feedforward <= 0:
            raise ValueError(f"d_model ({d_model}) and dim_feedforward ({dim_feedforward}) must be positive.")
        self._d_model, self._dim_feedforward = d_model, dim_feedforward
        self._dropout_rate, self._epsilon, self._act_method = dropout_rate, epsilon, activation
        self._act_dropout_rate = dropout_rate if act_dropout_rate is None else act_dropout_rate
        self._normalize_before = normalize_before
        self._linear1_weight = self.create_parameter([d_model, dim_feedforward], attr=linear1_weight_attr)
        self._linear1_bias = self.create_parameter([dim_feedforward], attr=linear1_bias_attr, is_bias=True)
        self._linear2_weight = self.create_parameter([dim_feedforward, d_model], attr=linear2_weight_attr)
        self._linear2_bias = self.create_parameter([d_model], attr=linear2_bias_attr, is_bias=True)
        self._ln1_scale = self._ln1_bias = self._ln2_scale = self._ln2_bias = None
        one = Constant(1.0)
        if normalize_before:
            self._ln1_scale = self.create_parameter([d_model], attr=ln1_scale_attr, default_initializer=one)
            self._ln1_bias = self.create_parameter([d_model], attr=ln1_bias_attr, is_bias=True)
        else:
            self._ln2_scale = self.create_parameter([d_model], attr=ln2_scale_attr, default_initializer=one)
            self._ln2_bias = self.create_parameter([d_model], attr=ln2_bias_attr, is_bias=True)
        self.name = name

    def forward(self, src: Tensor, cache: Any = None) -> Tensor:
        """The result like src.

        Args:
            src: [batch, length, d_model].
            cache: not used.
        """
        return fused.fused_feedforward(
            src, self._linear1_weight, self._linear2_weight, self._linear1_bias, self._linear2_bias, self._ln1_scale,
            self._ln1_bias, self._ln2_scale, self._ln2_bias, self._act_dropout_rate, self._dropout_rate,
            self._act_method, self._epsilon, self._epsilon, self._normalize_before, self.training,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (f"d_model={self._d_model}, dim_feedforward={self._dim_feedforward}, "
                f"dropout_rate={self._dropout_rate}, epsilon={self._epsilon}, activation={self._act_method}, "
                f"act_dropout_rate={self._act_dropout_rate}, normalize_before={self._normalize_before}")


class FusedTransformerEncoderLayer(nn.Layer):
    """A layer of a transformer's encoder: attention, then two linear layers.

    Args:
        d_model: the size of the input.
        nhead: the number of heads.
        dim_feedforward: the size between the linear layers.
        dropout_rate: the probability of a zero after each part.
        activation: 'relu' or 'gelu'.
        attn_dropout_rate: the probability of a zero among the attention's weights; dropout_rate if None.
        act_dropout_rate: the probability of a zero between the linear layers; dropout_rate if None.
        normalize_before: whether norms are before each part rather than after.
        weight_attr: attributes of the weights: one for all, or a pair for both parts.
        bias_attr: attributes of the biases, likewise; False for none.

    Examples:
        >>> import oar
        >>> layer = oar.incubate.nn.FusedTransformerEncoderLayer(8, 2, 16)
        >>> layer(oar.ones([2, 3, 8])).shape
        [2, 3, 8]
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout_rate: float = 0.1, activation: str = "relu",
        attn_dropout_rate: float | None = None, act_dropout_rate: float | None = None, normalize_before: bool = False,
        weight_attr: Any = None, bias_attr: Any = None,
    ) -> None:
        super().__init__()
        weights, biases = _pair("weight_attr", weight_attr), _pair("bias_attr", bias_attr)
        self.fused_attn = FusedMultiHeadAttention(
            d_model, nhead, dropout_rate, dropout_rate if attn_dropout_rate is None else attn_dropout_rate,
            normalize_before=normalize_before, qkv_weight_attr=weights[0], qkv_bias_attr=biases[0],
            linear_weight_attr=weights[0], linear_bias_attr=biases[0], pre_ln_scale_attr=weights[0],
            pre_ln_bias_attr=biases[0], ln_scale_attr=weights[0], ln_bias_attr=biases[0],
        )  # fmt: skip
        self.ffn = FusedFeedForward(
            d_model, dim_feedforward, dropout_rate, activation=activation, act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before, linear1_weight_attr=weights[1], linear1_bias_attr=biases[1],
            linear2_weight_attr=weights[1], linear2_bias_attr=biases[1],
        )  # fmt: skip

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Tensor | None = None) -> Any:
        """The result like src; with a cache also the longer cache.

        Args:
            src: [batch, length, d_model].
            src_mask: added to the scores; bools and integers say what is seen.
            cache: keys and values of earlier positions.
        """
        if cache is None:
            return self.ffn(self.fused_attn(src, attn_mask=src_mask))
        out, longer = self.fused_attn(src, attn_mask=src_mask, cache=cache)
        return self.ffn(out), longer


def _pair(argument: str, given: Any) -> tuple[Any, Any]:
    """One for both parts, or one for each."""
    if not isinstance(given, (list, tuple)):
        return given, given
    if len(given) != 2:
        raise ValueError(f"{argument} has {len(given)} entries; it must have 2: for the attention and for the linear "
                         "layers.")
    return given[0], given[1]
