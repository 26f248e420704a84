"""Losses, layers and windows in the forms of ``table.py``; see ``functions.py``."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.layer.rnn.cells import over_steps
from oar.nn.layer.spectral import normalised

# losses ------------------------------------------------------------------------------------------


def accuracy(x, indices, label):
    hits = ops.any(ops.equal(indices, ops.cast(label, indices.dtype)), [1])
    correct = ops.sum(ops.cast(hits, "int32"))
    total = oar.full([], indices.shape[0], "int32")
    return ops.cast(correct, "float32") / indices.shape[0], correct, total


def bce_loss(input, label):
    return F.binary_cross_entropy(input, label, reduction="none")


def cross_entropy_with_softmax(input, label, soft_label=False, use_softmax=True, numeric_stable_mode=True,
                               ignore_index=-100, axis=-1):
    if use_softmax:
        loss, softmax = F.softmax_with_cross_entropy(input, label, soft_label, ignore_index, True, True, axis)
        return softmax, loss
    column = label if label.ndim == input.ndim else ops.unsqueeze(label, [axis])
    return ops.assign(input), ops.cross_entropy(input, column, None, ignore_index, "none", soft_label, axis, False)


def hinge_loss(logits, labels):
    return F.relu(1 - (2 * labels - 1) * logits)


def huber_loss(input, label, delta):
    return F.smooth_l1_loss(input, label, "none", delta)


def identity_loss(x, reduction=1):
    return oar.incubate.identity_loss(x, reduction)


def sigmoid_cross_entropy_with_logits(x, label, pos_weight=None, normalize=False, ignore_index=-100):
    counted = ops.cast(ops.not_equal(label, ops.full_like(label, ignore_index)), x.dtype)
    loss = F.binary_cross_entropy_with_logits(x, label, None, "none", pos_weight) * counted
    return loss / ops.clip(ops.sum(counted), 1e-5) if normalize else loss


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean"):
    loss = F.nll_loss(input, label, weight, ignore_index, reduction)
    counted = ops.not_equal(label, ops.full_like(label, ignore_index))
    share = ops.ones([], input.dtype) if weight is None else oar.gather(weight, ops.reshape(ops.where(
        counted, label, ops.zeros_like(label)), [-1])).reshape(label.shape)
    total = ops.sum(ops.cast(counted, input.dtype) * share)
    return loss, total if reduction == "mean" else ops.zeros_like(total)


def margin_cross_entropy(logits, label, return_softmax=False, ring_id=0, rank=0, nranks=1, margin1=1.0, margin2=0.5,
                         margin3=0.0, scale=64.0):
    loss, softmax = F.margin_cross_entropy(logits, label, margin1, margin2, margin3, scale, False, True, None)
    return softmax, loss


def warpctc(logits, label, logits_length=None, labels_length=None, blank=0, norm_by_times=False):
    if logits_length is None or labels_length is None:
        raise ValueError("[warpctc] logits_length and labels_length are needed: Oar has no nested sequences. "
                         "hint: pass logits of [steps, batch, classes] with the lengths of the sequences.")
    return ops.unsqueeze(F.ctc_loss(logits, label, logits_length, labels_length, blank, "none", norm_by_times), [-1])


def warprnnt(input, label, input_lengths, label_lengths, blank=0, fastemit_lambda=0.0, num_threads=1):
    return F.rnnt_loss(input, label, input_lengths, label_lengths, blank, fastemit_lambda, "none")


# layers ------------------------------------------------------------------------------------------


def dropout(x, seed_tensor=None, p=0.5, is_test=False, mode="downgrade_in_infer", seed=0, fix_seed=False):
    mode = "downscale_in_infer" if mode == "downgrade_in_infer" else mode
    seed = int(seed_tensor) if seed_tensor is not None else seed if fix_seed else 0
    if is_test or not seed:
        return F.dropout(x, float(p), training=not is_test, mode=mode)
    place = oar.get_rng_state()
    try:
        oar.seed(seed)
        return F.dropout(x, float(p), training=True, mode=mode)
    finally:
        oar.set_rng_state(place)


def rrelu(x, lower=0.125, upper=1.0 / 3.0, is_test=False):
    return F.rrelu(x, lower, upper, not is_test)


def layer_norm(x, scale=None, bias=None, epsilon=1e-5, begin_norm_axis=1):
    shape = list(x.shape[begin_norm_axis:])
    scale, bias = (None if v is None else ops.reshape(v, shape) for v in (scale, bias))
    return F.layer_norm(x, shape, scale, bias, epsilon)


def batch_norm(x, mean, variance, scale=None, bias=None, is_test=False, momentum=0.9, epsilon=1e-5, data_format="NCHW",
               use_global_stats=False, trainable_statistics=False):
    channels_last = not data_format.startswith("NC") and data_format != "AnyLayout"
    training = (not is_test or trainable_statistics) and not use_global_stats
    with oar.no_grad():
        axes = [a for a in range(x.ndim) if a != (x.ndim - 1 if channels_last else 1)]
        average, spread = ops.mean(x, axes), ops.var(x, axes, False)
    layout = ("NHWC" if channels_last else "NCHW") if x.ndim > 3 else ("NLC" if channels_last else "NC")
    out = F.batch_norm(x, mean, variance, scale, bias, training, momentum, epsilon, layout)
    saved = (average, ops.rsqrt(spread + epsilon)) if training else (mean, variance)
    return out, mean, variance, *saved, None


def spectral_norm(weight, u, v, dim=0, power_iters=1, eps=1e-12):
    return normalised(weight, u, v, dim, power_iters, eps)


def rnn(x, pre_state, weight_list, sequence_length=None, dropout_state_in=None, dropout_prob=0.0, is_bidirec=False,
        input_size=10, hidden_size=100, num_layers=1, mode="RNN_TANH", seed=0, is_test=False):
    ways, kind = 2 if is_bidirec else 1, mode.lower().removeprefix("rnn_")
    count = num_layers * ways
    weights, biases = weight_list[: 2 * count], weight_list[2 * count :]
    final: list[Any] = []
    for layer in range(num_layers):
        x = F.dropout(x, dropout_prob, training=not is_test) if layer else x
        outputs = []
        for way in range(ways):
            i = layer * ways + way
            states = [state[i] for state in pre_state]
            four = (*weights[2 * i : 2 * i + 2], *biases[2 * i : 2 * i + 2])
            out, last = over_steps(kind, x, states if kind == "lstm" else states[0], four, sequence_length, way == 1)
            outputs.append(out)
            final.append(last if kind == "lstm" else (last,))
        x = outputs[0] if ways == 1 else ops.concat(outputs, -1)
    return x, dropout_state_in, [ops.stack(list(states), 0) for states in zip(*final)]


# windows and images ------------------------------------------------------------------------------

_LAYOUTS = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}


def _layout(x: Tensor, data_format: str) -> str:
    """The name of a layout for tensors of this rank: Paddle's inner interfaces say NCHW and NHWC for any."""
    return _LAYOUTS[x.ndim][data_format[1] != "C" and data_format != "AnyLayout"]


def _convolution(op: Any) -> Any:
    def convolve(x, weight, stride=1, padding=0, padding_algorithm="EXPLICIT", dilation=1, groups=1, data_format="NCHW"):
        return op(x, weight, None, stride, padding, dilation, groups, _layout(x, data_format), padding_algorithm)

    return convolve


def _transposed(op: Any) -> Any:
    def convolve(x, weight, stride=1, padding=0, output_padding=(), output_size=None, padding_algorithm="EXPLICIT",
                 groups=1, dilation=1, data_format="NCHW"):
        return op(x, weight, None, stride, padding, output_padding or 0, groups=groups, dilation=dilation,
                  output_size=output_size, data_format=_layout(x, data_format), padding_algorithm=padding_algorithm)

    return convolve


conv2d, conv3d = _convolution(ops.conv2d), _convolution(ops.conv3d)
conv2d_transpose, conv3d_transpose = _transposed(ops.conv2d_transpose), _transposed(ops.conv3d_transpose)


def _interpolation(x, out_size=None, size_tensor=None, scale_tensor=None, data_format="NCHW", out_d=0, out_h=0, out_w=0,
                   scale=(), interp_method="bilinear", align_corners=True, align_mode=1):
    count = x.ndim - 2
    scale = scale_tensor if scale_tensor is not None else scale
    listed = scale.tolist() if isinstance(scale, Tensor) else scale
    factors = [float(f) for f in (listed if isinstance(listed, (list, tuple)) else [listed]) if f and f > 0]
    factors = factors * count if len(factors) == 1 else factors
    if size_tensor:
        size, factors = [int(s) for s in size_tensor], None
    elif out_size is not None:
        size, factors = [int(s) for s in out_size.tolist()], None
    else:
        size = None if factors else [out_d, out_h, out_w][3 - count:]
    return F.interpolate(x, size, factors or None, interp_method, align_corners and interp_method != "nearest",
                         align_mode, _layout(x, data_format).replace("L", "W"))


bicubic_interp = bilinear_interp = linear_interp = nearest_interp = trilinear_interp = _interpolation


def pad3d(x, paddings, mode="constant", pad_value=0.0, data_format="NCDHW"):
    return F.pad(x, paddings, mode, pad_value, data_format)


def _pool(dims: int, x, kernel_size, strides, paddings, ceil_mode, exclusive, data_format, pooling_type, global_pooling,
          adaptive, padding_algorithm) -> Tensor:
    layout = _layout(x, data_format)
    last = layout[1] != "C"
    if adaptive or global_pooling:
        sizes = [1] * dims if global_pooling else list(kernel_size)
        if pooling_type == "avg":
            return getattr(ops, f"adaptive_avg_pool{dims}d")(x, sizes, layout)
        front = oar.moveaxis(x, -1, 1) if last else x
        made = getattr(ops, f"adaptive_max_pool{dims}d")(front, sizes)
        return oar.moveaxis(made, 1, -1) if last else made
    if pooling_type == "avg":
        return getattr(ops, f"avg_pool{dims}d")(x, kernel_size, strides, paddings, ceil_mode, exclusive, None, layout,
                                                padding_algorithm)
    return getattr(ops, f"max_pool{dims}d")(x, kernel_size, strides, paddings, ceil_mode, layout, padding_algorithm)


def pool2d(x, kernel_size, strides, paddings, ceil_mode=False, exclusive=True, data_format="NCHW", pooling_type="max",
           global_pooling=False, adaptive=False, padding_algorithm="EXPLICIT"):
    return _pool(2, x, kernel_size, strides, paddings, ceil_mode, exclusive, data_format, pooling_type, global_pooling,
                 adaptive, padding_algorithm)


def pool3d(x, kernel_size, strides, paddings, ceil_mode=False, exclusive=True, data_format="NCDHW", pooling_type="max",
           global_pooling=False, adaptive=False, padding_algorithm="EXPLICIT"):
    return _pool(3, x, kernel_size, strides, paddings, ceil_mode, exclusive, data_format, pooling_type, global_pooling,
                 adaptive, padding_algorithm)


def lp_pool2d(x, kernel_size, strides=(1, 1), paddings=(0, 0), ceil_mode=False, exclusive=True, data_format="NCHW",
              pooling_type="", global_pooling=False, adaptive=False, padding_algorithm="EXPLICIT", norm_type=0.0):
    layout = _layout(x, data_format)
    if global_pooling:
        kernel_size, strides, paddings = list(x.shape[2:] if layout == "NCHW" else x.shape[1:3]), [1, 1], [0, 0]
    return ops.lp_pool(x, float(norm_type), kernel_size, strides, paddings, ceil_mode, layout, padding_algorithm)


def _with_places(dims: int, x, kernel_size, strides, paddings, global_pooling, adaptive, ceil_mode):
    if adaptive or global_pooling:
        return ops.adaptive_max_pool_with_mask(x, [1] * dims if global_pooling else list(kernel_size))
    return getattr(F, f"max_pool{dims}d")(x, kernel_size, strides, paddings, True, ceil_mode)


def max_pool2d_with_index(x, kernel_size, strides=(1, 1), paddings=(0, 0), global_pooling=False, adaptive=False,
                          ceil_mode=False):
    return _with_places(2, x, kernel_size, strides, paddings, global_pooling, adaptive, ceil_mode)


def max_pool3d_with_index(x, kernel_size, strides=(1, 1, 1), paddings=(0, 0, 0), global_pooling=False, adaptive=False,
                          ceil_mode=False):
    return _with_places(3, x, kernel_size, strides, paddings, global_pooling, adaptive, ceil_mode)


def _fractional(dims: int, x, output_size, kernel_size, random_u):
    kernel = kernel_size if any(kernel_size) else None
    return getattr(F, f"fractional_max_pool{dims}d")(x, list(output_size), kernel, random_u or None, True)


def fractional_max_pool2d(x, output_size, kernel_size=(0, 0), random_u=0.0, return_mask=True):
    return _fractional(2, x, output_size, kernel_size, random_u)


def fractional_max_pool3d(x, output_size, kernel_size=(0, 0, 0), random_u=0.0, return_mask=True):
    return _fractional(3, x, output_size, kernel_size, random_u)


def unpool(x, indices, ksize, strides, padding, output_size=None, data_format="NCHW"):
    return F.max_unpool2d(x, indices, ksize, strides, padding, data_format, output_size)


def unpool3d(x, indices, ksize, strides=(1, 1, 1), paddings=(0, 0, 0), output_size=None, data_format="NCDHW"):
    return F.max_unpool3d(x, indices, ksize, strides, paddings, data_format, output_size)
