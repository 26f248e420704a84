"""Products with what follows them: a bias, an activation, dropout."""

from __future__ import annotations

from typing import Callable

from oar._C import Tensor, ops
from oar.incubate.nn.functional._quantise import only_floats, quantised
from oar.nn import functional as F

__all__ = [
    "fused_bias_act",
    "fused_dropout_add",
    "fused_feedforward",
    "fused_linear",
    "fused_linear_activation",
    "fused_matmul_bias",
    "swiglu",
]

_ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "none": lambda x: x}


def _activation(op: str, name: str | None):
    if (name or "none") not in _ACTIVATIONS:
        raise ValueError(f"[{op}] activation is {name!r}; it can be 'gelu', 'relu' or 'none'.")
    return _ACTIVATIONS[name or "none"]


def swiglu(x: Tensor, y: Tensor | None = None, name: str | None = None) -> Tensor:
    """silu(x) * y; without y, x is cut in two halves along its last axis.

    Args:
        x: the input.
        y: the second input, of the same shape; or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.swiglu(oar.to_tensor([0.0, 1.0]), oar.to_tensor([5.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 1.46211720])
    """
    return F.swiglu(x, y)


def fused_matmul_bias(
    x: Tensor, y: Tensor, bias: Tensor | None = None, transpose_x: bool = False, transpose_y: bool = False,
    name: str | None = None,
) -> Tensor:
    """x @ y + bias.

    Args:
        x: the first matrix.
        y: the second matrix.
        bias: added to each row; or None.
        transpose_x: whether the last two axes of x are exchanged first.
        transpose_y: whether the last two axes of y are exchanged first.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0]])
        >>> oar.incubate.nn.functional.fused_matmul_bias(x, x, oar.to_tensor([1.0]), transpose_y=True)
        Tensor(shape=[1, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[6.]])
    """
    product = ops.matmul(x, y, transpose_x, transpose_y)
    return product if bias is None else product + bias


def fused_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose_weight: bool = False, name: str | None = None
) -> Tensor:
    """x @ weight + bias.

    Args:
        x: the input.
        weight: [in, out], or [out, in] if transpose_weight.
        bias: added to each row; or None.
        transpose_weight: whether weight is transposed first.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_linear(oar.ones([1, 2]), oar.ones([2, 1]), oar.to_tensor([1.0]))
        Tensor(shape=[1, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[3.]])
    """
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(
    x: Tensor, y: Tensor, bias: Tensor, trans_x: bool = False, trans_y: bool = False, activation: str | None = None
) -> Tensor:
    """activation(x @ y + bias).

    Args:
        x: the first matrix.
        y: the second matrix.
        bias: added to each row.
        trans_x: whether the last two axes of x are exchanged first.
        trans_y: whether the last two axes of y are exchanged first.
        activation: 'gelu', 'relu' or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, bias = oar.to_tensor([[1.0, 2.0]]), oar.to_tensor([-9.0])
        >>> oar.incubate.nn.functional.fused_linear_activation(x, x, bias, trans_y=True, activation='relu')
        Tensor(shape=[1, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.]])
    """
    return _activation("fused_linear_activation", activation)(fused_matmul_bias(x, y, bias, trans_x, trans_y))


def fused_dropout_add(
    x: Tensor, y: Tensor, p: float = 0.5, training: bool = True, mode: str = "upscale_in_train", name: str | None = None
) -> Tensor:
    """dropout(x) + y.

    Args:
        x: the input.
        y: the second input.
        p: the probability of a zero.
        training: whether elements are dropped.
        mode: 'upscale_in_train' or 'downscale_in_infer'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_dropout_add(oar.ones([2]), oar.ones([2]), training=False)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2., 2.])
    """
    return F.dropout(x, p, training=training, mode=mode) + y


_BIASED: dict[str, Callable[..., Tensor]] = {
    "gelu": F.gelu, "relu": F.relu, "silu": F.silu, "sigmoid": F.sigmoid, "swiglu": F.swiglu, "swish": F.silu,
}  # fmt: skip


def _gated_gelu(x: Tensor) -> Tensor:
    first, second = ops.split(x, 2, -1)
    return F.gelu(first) * second


def fused_bias_act(
    x: Tensor,
    bias: Tensor | None = None,
    dequant_scales: Tensor | None = None,
    shift: Tensor | None = None,
    smooth: Tensor | None = None,
    act_method: str = "gelu",
    compute_dtype: str = "default",
    quant_scale: float = -1,
    quant_round_type: int = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> Tensor:
    """The activation of x + bias; 'geglu' and 'swiglu' gate the second half of the last axis with the first.

    Args:
        x: the input.
        bias: added to x.
        dequant_scales: for quantised x, which needs a GPU.
        shift: added to the result before it is multiplied by smooth.
        smooth: what the result is multiplied by.
        act_method: 'gelu', 'relu', 'silu', 'sigmoid', 'geglu' or 'swiglu'.
        compute_dtype: 'default', or 'fp16', 'bf16' or 'fp32' for the result.
        quant_scale: if positive, the result is quantised to int8 with this scale.
        quant_round_type: 0 rounds half to even, 1 half away from zero.
        quant_max_bound: the largest quantised number.
        quant_min_bound: the smallest quantised number.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.nn.functional.fused_bias_act(oar.to_tensor([[-2.0, 1.0]]), oar.ones([2]), act_method='relu')
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0., 2.]])
    """
    only_floats("fused_bias_act", dequant_scales=dequant_scales)
    act = _gated_gelu if act_method == "geglu" else _BIASED.get(act_method)
    if act is None:
        names = ", ".join(sorted([*_BIASED, "geglu"]))
        raise ValueError(f"[fused_bias_act] act_method is {act_method!r}; it can be one of {names}.")
    dtypes = {"default": x.dtype, "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
    if compute_dtype not in dtypes:
        raise ValueError(f"[fused_bias_act] compute_dtype is {compute_dtype!r}; it can be one of {', '.join(dtypes)}.")
    out = act(x if bias is None else x + bias)
    if shift is not None:
        out = out + shift
    if smooth is not None:
        out = out * smooth
    out = ops.cast(out, dtypes[compute_dtype])
    return quantised(out, quant_scale, quant_round_type, quant_max_bound, quant_min_bound)


def fused_feedforward(
    x: Tensor,
    linear1_weight: Tensor,
    linear2_weight: Tensor,
    linear1_bias: Tensor | None = None,
    linear2_bias: Tensor | None = None,
    ln1_scale: Tensor | None = None,
    ln1_bias: Tensor | None = None,
    ln2_scale: Tensor | None = None,
    ln2_bias: Tensor | None = None,
    dropout1_rate: float = 0.5,
    dropout2_rate: float = 0.5,
    activation: str = "relu",
    ln1_epsilon: float = 1e-05,
    ln2_epsilon: float = 1e-05,
    pre_layer_norm: bool = False,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    name: str | None = None,
) -> Tensor:
    """The two linear layers of a transformer's layer: x + dropout2(linear2(dropout1(activation(linear1(x))))), with a
    layer norm before (ln1) or after (ln2).

    Args:
        x: the input [batch, length, size].
        linear1_weight: [size, inner size].
        linear2_weight: [inner size, size].
        linear1_bias: the bias of the first layer.
        linear2_bias: the bias of the second layer.
        ln1_scale: the weight of the norm before.
        ln1_bias: the bias of the norm before.
        ln2_scale: the weight of the norm after.
        ln2_bias: the bias of the norm after.
        dropout1_rate: the probability of a zero between the layers.
        dropout2_rate: the probability of a zero after them.
        activation: 'relu' or 'gelu'.
        ln1_epsilon: added to the variance in the norm before.
        ln2_epsilon: added to the variance in the norm after.
        pre_layer_norm: whether the norm is before the layers rather than after.
        training: whether elements are dropped.
        mode: 'upscale_in_train' or 'downscale_in_infer'.
        ring_id: of a group of processes; only -1.
        add_residual: whether x is added.

    Returns:
        a tensor like x.

    Examples:
        >>> import oar
        >>> weight = oar.ones([2, 2])
        >>> x = oar.to_tensor([[[1.0, 2.0]]])
        >>> out = oar.incubate.nn.functional.fused_feedforward(x, weight, weight, pre_layer_norm=True, training=False)
        >>> out.shape
        [1, 1, 2]
    """
    if ring_id != -1:
        raise NotImplementedError("[fused_feedforward] ring_id is for several processes, which Oar does not have yet.")
    size = [x.shape[-1]]
    out = F.layer_norm(x, size, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    inner = _activation("fused_feedforward", activation)(fused_linear(out, linear1_weight, linear1_bias))
    out = fused_linear(F.dropout(inner, dropout1_rate, training=training, mode=mode), linear2_weight, linear2_bias)
    out = F.dropout(out, dropout2_rate, training=training, mode=mode)
    if add_residual:
        out = x + out
    return out if pre_layer_norm else F.layer_norm(out, size, ln2_scale, ln2_bias, ln2_epsilon)
