"""What the expressions of torch_table may name besides the arguments of the op."""

from __future__ import annotations

import math  # noqa: F401

import torch
import torch.nn.functional as F
from torch import linalg, special  # noqa: F401

aten = torch.ops.aten
# Fuzzers pass columns outside of a matrix, too, which PyTorch would follow out of its memory.
torch.sparse.check_sparse_tensor_invariants.enable()


class Absent(NotImplementedError):
    """PyTorch has no such case of the function."""


def backward(function, grad, x):
    """The gradient of an elementwise function, itself differentiable; x and grad are broadcast."""
    x, grad = torch.broadcast_tensors(x, grad)
    x = x.clone() if x.requires_grad else x.clone().requires_grad_()
    return torch.autograd.grad(function(x), x, grad, create_graph=True)[0]


def vjp(function, x, grad):
    """The gradient of any function at x, itself differentiable."""
    if not grad.is_floating_point() and not grad.is_complex():
        raise Absent("gradients of integers")
    x = x.clone() if x.requires_grad else x.clone().requires_grad_()
    return torch.autograd.grad(function(x), x, grad, create_graph=True)[0]


def transposed(function, shape, grad):
    """The gradient of a linear function of a tensor of that shape."""
    return vjp(function, torch.zeros(shape, dtype=grad.dtype), grad)


def phases(vectors):
    """What makes the leading element of each column real and positive: see ops/families/gauge.h."""
    if not vectors.numel():
        return vectors.sum(-2, keepdim=True)
    sizes = vectors.abs().square()
    rows = (sizes >= 0.999 * sizes.amax(-2, keepdim=True)).to(torch.uint8).argmax(-2, keepdim=True)
    return vectors.gather(-2, rows).sgn().conj()


def gauged(vectors):
    return vectors * phases(vectors)


def gauged_svd(x, full_matrices):
    u, s, vh = linalg.svd(x, full_matrices)
    turn = phases(u).mT
    count = min(turn.shape[-2], s.shape[-1])
    turned = turn[..., :count, :].conj() * vh[..., :count, :]
    return gauged(u), s, torch.cat([turned, vh[..., count:, :]], -2)


def along(index, axis, ndim):
    """index as an argument of x[...] at an axis."""
    return (slice(None),) * (axis % ndim) + (index,)


def places(indices):
    return tuple(slice(None) if i is None else i if i.dtype == torch.bool else i.long() for i in indices)


def slices(index):
    """Our list of (kind, start, stop, step), as an argument of x[...]."""
    parts = []
    for kind, start, stop, step in zip(*[iter(index)] * 4):
        if kind == 0 and step < 0:
            raise Absent("slices with negative steps")
        parts.append(slice(start, stop, step) if kind == 0 else start if kind == 1 else None if kind == 2 else ...)
    return tuple(parts)


def ranges(ndim, axes, starts, ends, strides=None):
    """slice and strided_slice as an argument of x[...]."""
    parts = [slice(None)] * ndim
    for axis, start, end, step in zip(axes, starts, ends, strides or [1] * len(axes)):
        if step < 0:
            raise Absent("slices with negative steps")
        parts[axis] = slice(start, end, step)
    return tuple(parts)


def written(x, index, value):
    out = x.clone()
    out[index] = value.to(x.dtype)
    return out


def axes(axis):
    """Our list of axes, or None; an empty list means all as well."""
    return tuple(axis) if axis else None


def spread(value, n):
    return list(value) * n if len(value) == 1 else list(value)


def channels_first(x, data_format):
    return x.movedim(-1, 1) if data_format[-1] == "C" and x.ndim > 2 else x


def channels_last(x, data_format):
    return x.movedim(1, -1) if data_format[-1] == "C" and x.ndim > 2 else x


def before_after(padding, n, algorithm="EXPLICIT", sizes=(), kernel=(), stride=()):
    """Paddings as (before, after) of each axis."""
    if algorithm == "VALID":
        return [(0, 0)] * n
    if algorithm == "SAME":
        total = [max((-(-m // s) - 1) * s + k - m, 0) for m, k, s in zip(sizes, kernel, stride)]
        return [(t // 2, t - t // 2) for t in total]
    if len(padding) == 2 * n:
        return list(zip(padding[::2], padding[1::2]))
    return [(p, p) for p in spread(padding, n)]


def symmetric(pairs):
    if any(a != b for a, b in pairs):
        raise Absent("padding that differs in front and behind")
    return [a for a, _ in pairs]


def pad_spatial(x, pairs, value=0.0):
    return F.pad(x, [p for pair in reversed(pairs) for p in pair], value=value)


def conv(x, weight, bias, stride, padding, dilation, groups, data_format="NCL", algorithm="EXPLICIT"):
    n = weight.ndim - 2
    x = channels_first(x, data_format)
    stride, dilation = spread(stride, n), [1] * n if algorithm == "SAME" else spread(dilation, n)
    x = pad_spatial(x, before_after(padding, n, algorithm, x.shape[2:], weight.shape[2:], stride))
    function = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return channels_last(function(x, weight, bias, stride, 0, dilation, groups), data_format)


def conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, output_size, data_format,
                   algorithm):
    n = weight.ndim - 2
    x = channels_first(x, data_format)
    stride, dilation = spread(stride, n), [1] * n if algorithm == "SAME" else spread(dilation, n)
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    full = function(x, weight, None, stride, 0, 0, groups, dilation)
    pairs = before_after(padding, n, algorithm, x.shape[2:], weight.shape[2:], stride)
    more = spread(output_padding, n)
    if output_size is not None:
        more = [o - (m - a - b) for o, m, (a, b) in zip(output_size, full.shape[2:], pairs)]
    out = pad_spatial(full, [(-a, m - b) for (a, b), m in zip(pairs, more)])
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * n)
    return channels_last(out, data_format)


def check_windows(sizes, kernel, stride, pads, ceil_mode):
    for size, k, s, p in zip(sizes, kernel, stride, pads):
        if k > size + 2 * p:
            raise Absent("a window larger than the image")
        if ceil_mode and (size + 2 * p - k + s - 1) // s * s >= size + p:
            raise Absent("a window without a pixel")


def max_pool(x, kernel_size, stride, padding, ceil_mode, data_format="NCL", algorithm="EXPLICIT", mask=False):
    x = channels_first(x, data_format)
    n = x.ndim - 2
    kernel = spread(kernel_size, n)
    stride = kernel if stride is None else spread(stride, n)
    pads = symmetric(before_after(padding, n, algorithm, x.shape[2:], kernel, stride))
    check_windows(x.shape[2:], kernel, stride, pads, ceil_mode)
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    found = function(x, kernel, stride, pads, 1, ceil_mode, mask)
    return [channels_last(t, data_format) for t in found] if mask else channels_last(found, data_format)


def avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, divisor, data_format="NCL", algorithm="EXPLICIT"):
    x = channels_first(x, data_format)
    n = x.ndim - 2
    kernel = spread(kernel_size, n)
    stride = kernel if stride is None else spread(stride, n)
    pads = symmetric(before_after(padding, n, algorithm, x.shape[2:], kernel, stride))
    check_windows(x.shape[2:], kernel, stride, pads, ceil_mode)
    if divisor is not None and (n == 1 or divisor != int(divisor)):
        raise Absent("a divisor of sequences, or one with a fraction")
    more = {} if n == 1 else {"divisor_override": None if divisor is None else int(divisor)}
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    return channels_last(function(x, kernel, stride, pads, ceil_mode, not exclusive, **more), data_format)


def lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, algorithm):
    x = channels_first(x, data_format)
    n = x.ndim - 2
    if algorithm != "EXPLICIT" or any(padding):
        raise Absent("padding")
    function = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[n - 1]
    kernel = spread(kernel_size, n)
    stride = None if stride is None else spread(stride, n)
    if n == 1:
        kernel, stride = kernel[0], stride and stride[0]
    return channels_last(function(x, norm_type, kernel, stride, ceil_mode), data_format)


def adaptive(kind, x, output_size, data_format="NCL", mask=False):
    x = channels_first(x, data_format)
    n = x.ndim - 2
    sizes = [m if o == -1 else o for o, m in zip(spread(output_size, n), x.shape[2:])]
    found = getattr(F, f"adaptive_{kind}_pool{n}d")(x, sizes, *([True] if mask else []))
    return [channels_last(t, data_format) for t in found] if mask else channels_last(found, data_format)


def max_unpool(x, indices, kernel_size, stride, padding, output_size, data_format):
    x, indices = channels_first(x, data_format), channels_first(indices, data_format)
    n = x.ndim - 2
    function = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[n - 1]
    kernel, padding = spread(kernel_size, n), spread(padding, n)
    stride = kernel if stride is None else spread(stride, n)
    return channels_last(function(x, indices.long(), kernel, stride, padding, output_size), data_format)


def interpolate(x, axis, size, scale, mode, align_corners=None, align_mode=0):
    """The axes from `axis` on; PyTorch takes images [n, c, ...]."""
    axis %= x.ndim
    n = len(size)
    if align_mode == 1 and mode == "linear" and not align_corners:
        raise Absent("align_mode 1")
    if scale is not None and mode == "area":
        raise Absent("scales of areas: it takes sizes")
    y = x.movedim(list(range(axis, axis + n)), list(range(-n, 0)))
    outer, inner = y.shape[:-n], y.shape[-n:]
    if mode == "linear" and not align_corners and any(m == 1 and k > 1 for m, k in zip(size, inner)):
        raise Absent("size 1 as the first element: it takes the middle")
    names = {"linear": ("linear", "bilinear", "trilinear"), "cubic": (None, "bicubic", None)}.get(mode, (mode,) * 3)
    if names[n - 1] is None:
        raise Absent(f"{mode} over {n} axes")
    y = y.reshape(1, math.prod(outer), *inner)
    if scale is not None:
        out = F.interpolate(y, None, tuple(scale), names[n - 1], align_corners, False)
        if list(out.shape[2:]) != list(size):
            raise Absent("scales that do not give the size")
    else:
        out = F.interpolate(y, tuple(size), None, names[n - 1], align_corners)
    return out.reshape(*outer, *size).movedim(list(range(-n, 0)), list(range(axis, axis + n)))


def attention(query, key, value, mask, scale, causal, training_dropout=0.0):
    if training_dropout:
        raise Absent("the same random numbers")
    query, key, value = (x.transpose(-3, -2) for x in (query, key, value))
    if mask is not None and causal:
        raise Absent("a mask and causal at once")
    out = F.scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale=scale, enable_gqa=True)
    return out.transpose(-3, -2)


def log_total(query, key, mask, scale, causal):
    """The logarithm of what the softmax divides by."""
    key = key.repeat_interleave(query.shape[2] // key.shape[2], 2)
    scores = torch.einsum("bqhe,bkhe->bhqk", query, key) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    return scores.logsumexp(-1)


def recurrent(gates, weight, hidden, cell, bias, projection, length, mode, reverse):
    """The states after each step, by the cells of PyTorch, step by step."""
    if length is not None:
        raise Absent("lengths without packing")
    unit = torch.eye(gates.shape[-1], dtype=gates.dtype)
    cells, states = [], []
    for gate in (gates.flip(0) if reverse else gates):
        if projection is not None:
            raise Absent("a projection in a single cell")
        if mode == "lstm":
            hidden, cell = torch.lstm_cell(gate, (hidden, cell), unit, weight, None, bias)
            cells.append(cell)
        else:
            step = {"tanh": torch.rnn_tanh_cell, "relu": torch.rnn_relu_cell, "gru": torch.gru_cell}[mode]
            hidden = step(gate, hidden, unit, weight, None, bias)
        states.append(hidden)
    order = -1 if reverse else 1
    return torch.stack(states[::order]), torch.stack(cells[::order]) if cells else None


def rows_of(crows):
    """The row of each element of a compressed matrix."""
    return torch.arange(len(crows) - 1).repeat_interleave(crows.diff())


def csr(crows, cols, values, width):
    return torch.sparse_coo_tensor(torch.stack([rows_of(crows), cols]), values, (len(crows) - 1, width))


def csr_product(x, y):
    """Compressed rows, columns and values of a product."""
    found = torch.sparse.mm(x, y).coalesce()
    rows, columns = found.indices()
    return torch.searchsorted(rows.contiguous(), torch.arange(x.shape[0] + 1)), columns, found.values()


def segment_rows(x, places, size, pooltype):
    """Sums, means, maxima or minima of the rows of each segment, 0 for those without one."""
    pool = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}[pooltype]
    parts = [x[places == i] for i in range(size)]
    pooled = [pool(rows, 0).to(x.dtype) if len(rows) else x.new_zeros(x.shape[1:]) for rows in parts]
    return torch.stack(pooled) if pooled else x.new_zeros(0, *x.shape[1:])


def fft_c2r(x, axes, normalization, forward, size):
    """A transform forward of Hermitian numbers is that of their conjugates back, without its divisor."""
    sizes = [x.shape[a] for a in axes[:-1]] + [size or 2 * (x.shape[axes[-1]] - 1)]
    if sizes[-1] == 0:
        raise Absent("a result without an element")
    return (torch.fft.hfftn if forward else torch.fft.irfftn)(x, sizes, axes, normalization)


def fft_r2c(x, axes, normalization, forward, onesided):
    if onesided:
        return (torch.fft.rfftn if forward else torch.fft.ihfftn)(x, dim=axes, norm=normalization)
    return (torch.fft.fftn if forward else torch.fft.ifftn)(x, dim=axes, norm=normalization)


def reduced(values, reduction):
    return {"none": lambda v: v, "mean": lambda v: v.mean(), "sum": lambda v: v.sum()}[reduction](values)


def cross_entropy(x, label, weight, ignore_index, reduction, soft, axis, use_softmax, label_smoothing):
    """Of scores or probabilities, and of classes or probabilities; results keep the axis of a label that has it."""
    sizes = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    kept = soft or label_smoothing or label.ndim == x.ndim
    if soft:
        label = class_axis(label, axis)
    else:
        label = (label.squeeze(axis) if label.ndim == x.ndim else label).long()
    scores = class_axis(x, axis)
    if use_softmax:
        out = F.cross_entropy(scores, label, weight, ignore_index=ignore_index, reduction=reduction,
                              label_smoothing=label_smoothing)
    elif soft:
        raise Absent("probabilities for both")
    else:
        out = F.nll_loss(scores.log(), label, weight, ignore_index=ignore_index, reduction=reduction)
    return out.reshape(sizes) if reduction == "none" and kept else out


def class_axis(x, axis):
    return x.movedim(axis, 1) if x.ndim > 1 else x
