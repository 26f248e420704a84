"""Norms with what comes before them: a bias, a residual, dropout."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.incubate.nn.functional._quantise import quantised
from oar.nn import functional as F

__all__ = [
    "fast_ln",
    "fast_rms_norm",
    "fused_bias_dropout_residual_layer_norm",
    "fused_layer_norm",
    "fused_rms_norm",
    "fused_rms_norm_ext",
]


def _joined(x: Tensor, bias: Tensor | None, residual: Tensor | None, alpha: float = 1.0) -> Tensor:
    if bias is not None:
        x = x + bias
    return x if residual is None else x + (residual if alpha == 1.0 else residual * alpha)


def _axes(op: str, x: Tensor, begin_norm_axis: int) -> list[int]:
    begin = begin_norm_axis + x.ndim if begin_norm_axis < 0 else begin_norm_axis
    if not 0 <= begin < x.ndim:
        raise ValueError(f"[{op}] begin_norm_axis is {begin_norm_axis}; x of shape {list(x.shape)} has {x.ndim} axes.")
    return list(range(begin, x.ndim))


def _flat_rows(x: Tensor, axes: list[int]) -> Tensor:
    return ops.reshape(x, [*x.shape[: axes[0]], -1])


def _root_mean_square(x: Tensor, weight: Tensor | None, bias: Tensor | None, epsilon: float) -> tuple[Tensor, Tensor]:
    """x over the root of its mean square along the last axis, and the inverse of that root in float32 or wider."""
    wide = x if x.dtype.name in ("float32", "float64") else ops.cast(x, "float32")
    inverse = ops.rsqrt(ops.mean(ops.square(wide), [-1], True) + epsilon)
    out = ops.cast(wide * inverse, x.dtype)
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias, inverse


def fused_rms_norm(
    x: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor | None,
    epsilon: float,
    begin_norm_axis: int,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: float = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor | None]:
    """x + bias + residual, divided by the root of its mean square over the axes from begin_norm_axis on.

    Args:
        x: the input.
        norm_weight: what the result is multiplied by.
        norm_bias: what is added to the result; or None.
        epsilon: added to the mean square.
        begin_norm_axis: the first of the axes that are normed together.
        bias: added to x first.
        residual: added to x first.
        quant_scale: if positive, the result is quantised to int8 with this scale.
        quant_round_type: 0 rounds half to even, 1 half away from zero.
        quant_max_bound: the largest quantised number.
        quant_min_bound: the smallest quantised number.

    Returns:
        the result, and x + bias + residual if there is a residual, else None.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[3.0, 4.0]])
        >>> oar.incubate.nn.functional.fused_rms_norm(x, oar.ones([2]), None, 0.0, 1)[0]
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.84852815, 1.13137090]])
    """
    axes = _axes("fused_rms_norm", x, begin_norm_axis)
    total = _joined(x, bias, residual)
    weight = None if norm_weight is None else ops.reshape(norm_weight, [-1])
    shift = None if norm_bias is None else ops.reshape(norm_bias, [-1])
    rows, _ = _root_mean_square(_flat_rows(total, axes), weight, shift, epsilon)
    out = ops.reshape(rows, x.shape)
    out = quantised(out, quant_scale, quant_round_type, quant_max_bound, quant_min_bound)
    return out, None if residual is None else total


def fused_layer_norm(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    epsilon: float,
    residual_alpha: float = 1.0,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: float = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor | None]:
    """The layer norm of x + bias + residual_alpha * residual over the axes from begin_norm_axis on; without a weight and
    a bias of the norm that sum itself.

    Args:
        x: the input.
        norm_weight: what the result is multiplied by; or None.
        norm_bias: what is added to the result; or None.
        epsilon: added to the variance.
        residual_alpha: what the residual is multiplied by.
        begin_norm_axis: the first of the axes that are normed together.
        bias: added to x first.
        residual: added to x first.
        quant_scale: if positive, the result is quantised to int8 with this scale.
        quant_round_type: 0 rounds half to even, 1 half away from zero.
        quant_max_bound: the largest quantised number.
        quant_min_bound: the smallest quantised number.

    Returns:
        the result, and the sum before the norm if there is a residual, else None.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 3.0]])
        >>> oar.incubate.nn.functional.fused_layer_norm(x, oar.ones([2]), oar.zeros([2]), 0.0)[0]
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[-1.,  1.]])
    """
    axes = _axes("fused_layer_norm", x, begin_norm_axis)
    total = _joined(x, bias, residual, residual_alpha)
    if norm_weight is None and norm_bias is None:
        return quantised(total, quant_scale, quant_round_type, quant_max_bound, quant_min_bound), None
    shape = [x.shape[axis] for axis in axes]
    weight, shift = (None if t is None else ops.reshape(t, shape) for t in (norm_weight, norm_bias))
    out = F.layer_norm(total, shape, weight, shift, epsilon)
    out = quantised(out, quant_scale, quant_round_type, quant_max_bound, quant_min_bound)
    return out, None if residual is None else total


def fused_bias_dropout_residual_layer_norm(
    x: Tensor,
    residual: Tensor,
    bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-05,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """layer_norm(residual + dropout(x + bias)) along the last axis.

    Args:
        x: the input.
        residual: added after the dropout.
        bias: added to x.
        ln_scale: the weight of the norm.
        ln_bias: the bias of the norm.
        dropout_rate: the probability of a zero.
        ln_epsilon: added to the variance.
        training: whether elements are dropped.
        mode: 'upscale_in_train' or 'downscale_in_infer'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 3.0]])
        >>> oar.incubate.nn.functional.fused_bias_dropout_residual_layer_norm(x, x, dropout_rate=0.0, ln_epsilon=0.0)
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[-1.,  1.]])
    """
    total = residual + F.dropout(_joined(x, bias, None), dropout_rate, training=training, mode=mode)
    return F.layer_norm(total, [x.shape[-1]], ln_scale, ln_bias, ln_epsilon)


def fast_ln(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-05) -> tuple[Tensor, Tensor, Tensor]:
    """The layer norm of x along its last axis, with the mean and the inverse of the standard deviation.

    Args:
        x: the input.
        scale: what the result is multiplied by.
        bias: what is added to the result.
        epsilon: added to the variance.

    Returns:
        the result, the means and the inverse standard deviations, both with one number per row.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 3.0]])
        >>> y, mean, inverse = oar.incubate.nn.functional.fast_ln(x, oar.ones([2]), oar.zeros([2]), 0.0)
        >>> y.tolist(), mean.tolist(), inverse.tolist()
        ([[-1.0, 1.0]], [2.0], [1.0])
    """
    wide = x if x.dtype.name in ("float32", "float64") else ops.cast(x, "float32")
    mean = ops.mean(wide, [-1], False)
    variance = ops.mean(ops.square(wide - ops.unsqueeze(mean, [-1])), [-1], False)
    out = F.layer_norm(x, [x.shape[-1]], scale, bias, epsilon)
    return out, ops.reshape(mean, [-1]), ops.reshape(ops.rsqrt(variance + epsilon), [-1])


def fast_rms_norm(x: Tensor, scale: Tensor, epsilon: float = 1e-05) -> tuple[Tensor, Tensor]:
    """x over the root of its mean square along the last axis, with the inverse of that root.

    Args:
        x: the input.
        scale: what the result is multiplied by.
        epsilon: added to the mean square.

    Returns:
        the result, and one number per row.

    Examples:
        >>> import oar
        >>> y, inverse = oar.incubate.nn.functional.fast_rms_norm(oar.to_tensor([[2.0, 2.0]]), oar.ones([2]), 0.0)
        >>> y.tolist(), inverse.tolist()
        ([[1.0, 1.0]], [0.5])
    """
    out, inverse = _root_mean_square(x, scale, None, epsilon)
    return out, ops.reshape(inverse, [-1])


def fused_rms_norm_ext(x: Tensor, scale: Tensor, epsilon: float = 1e-05, name: str | None = None) -> tuple[Tensor, Tensor]:
    """As ``fast_rms_norm``; the inverse roots have the shape of x without its last axis.

    Args:
        x: the input.
        scale: what the result is multiplied by.
        epsilon: added to the mean square.

    Returns:
        the result, and one number per row.

    Examples:
        >>> import oar
        >>> y, inverse = oar.incubate.nn.functional.fused_rms_norm_ext(oar.full([1, 1, 2], 2.0), oar.ones([2]), 0.0)
        >>> y.tolist(), inverse.tolist()
        ([[[1.0, 1.0]]], [[0.5]])
    """
    out, inverse = _root_mean_square(x, scale, None, epsilon)
    return out, ops.squeeze(inverse, [-1])
