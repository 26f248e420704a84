"""Normalisations as functions."""

from __future__ import annotations

import math
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework import ParamAttr
from oar.nn import functional as F
from oar.nn.initializer import Constant, Normal
from oar.static.nn.maker import LayerMaker

__all__ = ["batch_norm", "data_norm", "group_norm", "instance_norm", "layer_norm", "spectral_norm"]

_ONES = Constant(1.0)


def _channels(x: Tensor, layout: str) -> int:
    return x.shape[-1] if layout[-1] == "C" and x.ndim > 2 else x.shape[1]


def batch_norm(input: Tensor, act: str | None = None, is_test: bool = False, momentum: float = 0.9,
               epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None, data_layout: str = "NCHW",
               in_place: bool = False, name: str | None = None, moving_mean_name: str | None = None,
               moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
               use_global_stats: bool = False) -> Tensor:
    """Normalises channels by the batch's statistics, or by the running ones where ``is_test`` or
    ``use_global_stats``.

    Args:
        input: the input.
        act: the name of an activation, or None.
        is_test: whether to use the running statistics.
        momentum: how much of the running statistics is kept in each step.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        data_layout: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        in_place: accepted for compatibility.
        moving_mean_name: the name of the running mean, or None.
        moving_variance_name: the name of the running variance, or None.
        do_model_average_for_mean_and_var: accepted for compatibility.
        use_global_stats: whether to use the running statistics in training too.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3, 8, 8])
        ...     y = oar.static.nn.batch_norm(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3, 8, 8], 'float32')}, fetch_list=[y])[0].shape
        (2, 3, 8, 8)
        >>> oar.disable_static()
    """
    maker = LayerMaker("batch_norm", name, "float32" if input.dtype.name in ("float16", "bfloat16") else input.dtype)
    shape = [_channels(input, data_layout)]
    scale = maker.parameter(shape, param_attr, default=_ONES)
    shift = maker.parameter(shape, bias_attr, is_bias=True)
    mean = maker.statistic(shape, 0.0, moving_mean_name)
    variance = maker.statistic(shape, 1.0, moving_variance_name)
    made = F.batch_norm(input, mean, variance, scale, shift, not is_test, momentum, epsilon, data_layout,
                        True if use_global_stats else None)
    return maker.activated(made, act)


def layer_norm(input: Tensor, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1,
               epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None, act: str | None = None,
               name: str | None = None) -> Tensor:
    """Normalises over the axes from ``begin_norm_axis`` on.

    Args:
        input: the input.
        scale: whether to multiply by a weight.
        shift: whether to add a bias.
        begin_norm_axis: the first axis to normalise over.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        act: the name of an activation, or None.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.layer_norm(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    maker = LayerMaker("layer_norm", name, input.dtype)
    width = [math.prod(input.shape[begin_norm_axis:])]
    gain = maker.parameter(width, param_attr, default=_ONES) if scale else None
    bias = maker.parameter(width, bias_attr, is_bias=True) if shift else None
    shape = list(input.shape[begin_norm_axis:])
    gain = None if gain is None else ops.reshape(gain, shape)
    bias = None if bias is None else ops.reshape(bias, shape)
    return maker.activated(F.layer_norm(input, shape, gain, bias, epsilon), act)


def group_norm(input: Tensor, groups: int, epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None,
               act: str | None = None, data_layout: str = "NCHW", name: str | None = None) -> Tensor:
    """Normalises each sample over groups of neighbouring channels.

    Args:
        input: the input.
        groups: the number of groups of channels.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        act: the name of an activation, or None.
        data_layout: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 4, 8, 8])
        ...     y = oar.static.nn.group_norm(x, groups=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 4, 8, 8], 'float32')}, fetch_list=[y])[0].shape
        (2, 4, 8, 8)
        >>> oar.disable_static()
    """
    if data_layout not in ("NCHW", "NHWC"):
        raise ValueError(f"[group_norm] data_layout is {data_layout!r}; it can be 'NCHW' or 'NHWC'.")
    maker = LayerMaker("group_norm", name, input.dtype)
    shape = [_channels(input, data_layout)]
    scale = maker.parameter(shape, param_attr, default=_ONES)
    shift = maker.parameter(shape, bias_attr, is_bias=True)
    return maker.activated(F.group_norm(input, groups, epsilon, scale, shift, data_layout), act)


def instance_norm(input: Tensor, epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None,
                  name: str | None = None) -> Tensor:
    """Normalises each channel of each sample.

    Args:
        input: the input.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3, 8, 8])
        ...     y = oar.static.nn.instance_norm(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3, 8, 8], 'float32')}, fetch_list=[y])[0].shape
        (2, 3, 8, 8)
        >>> oar.disable_static()
    """
    if (param_attr is False) != (bias_attr is False):
        raise AssertionError("[instance_norm] param_attr and bias_attr are False together or not at all.")
    maker = LayerMaker("instance_norm", name, input.dtype)
    scale = maker.parameter([input.shape[1]], param_attr, default=_ONES)
    shift = maker.parameter([input.shape[1]], bias_attr, is_bias=True)
    return F.instance_norm(input, weight=scale, bias=shift, eps=epsilon)


def data_norm(input: Tensor, act: str | None = None, epsilon: float = 1e-05, param_attr: Any = None,
              data_layout: str = "NCHW", in_place: bool = False, name: str | None = None,
              moving_mean_name: str | None = None, moving_variance_name: str | None = None,
              do_model_average_for_mean_and_var: bool = True, slot_dim: int = -1, sync_stats: bool = False,
              summary_decay_rate: float = 0.9999999, enable_scale_and_shift: bool = False) -> Tensor:
    """Normalises columns by sums over all rows seen so far: their number, their sum, the sum of their squares.

    ``param_attr`` may be a dictionary of what these begin with: ``batch_size``, ``batch_sum``, ``batch_square``.

    Args:
        input: the input.
        act: the name of an activation, or None.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        data_layout: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        in_place: accepted for compatibility.
        moving_mean_name: the name of the running mean, or None.
        moving_variance_name: the name of the running variance, or None.
        do_model_average_for_mean_and_var: accepted for compatibility.
        slot_dim: accepted for compatibility.
        sync_stats: accepted for compatibility.
        summary_decay_rate: how fast old rows are forgotten.
        enable_scale_and_shift: whether to learn a scale and a shift.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.data_norm(x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    maker = LayerMaker("data_norm", name, input.dtype)
    given = param_attr if isinstance(param_attr, dict) else {}
    width = [_channels(input, data_layout)]
    size = maker.statistic(width, float(given.get("batch_size", 1e4)), f"{maker.name}.batch_size")
    total = maker.statistic(width, float(given.get("batch_sum", 0.0)), f"{maker.name}.batch_sum")
    square = maker.statistic(width, float(given.get("batch_square", 1e4)), f"{maker.name}.batch_square_sum")
    made = (input - total / size) * oar.sqrt(size / square)
    if enable_scale_and_shift:
        scale = maker.parameter(width, ParamAttr(f"{maker.name}.scale_w", Constant(float(given.get("scale_w", 1.0)))))
        shift = maker.parameter(width, ParamAttr(f"{maker.name}.bias", Constant(float(given.get("bias", 0.0)))))
        made = made * scale + shift
    _gather_statistics(input, size, total, square, summary_decay_rate)
    return maker.activated(made, act)


def _gather_statistics(x: Tensor, size: Tensor, total: Tensor, square: Tensor, decay: float) -> None:
    """The sums move on by the rows of this run; in training only."""
    program = oar.static.default_main_program()
    with program._role("training"), oar.no_grad():
        mean = total / size
        size.set_value(size * decay + ops.sum(ops.ones_like(x), 0))
        square.set_value(square * decay + ops.sum((x - mean) * (x - mean), 0))
        total.set_value(total * decay + ops.sum(x, 0))


def spectral_norm(weight: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12,
                  name: str | None = None) -> Tensor:
    """A weight divided by its largest singular value, which iterations of two vectors follow.

    Args:
        weight: a factor per class or element, or None.
        dim: the axis of the outputs.
        power_iters: how many iterations per call.
        eps: a small number that avoids division by zero.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     weight = oar.static.create_parameter([3, 4], 'float32')
        ...     y = x @ oar.static.nn.spectral_norm(weight, power_iters=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 4)
        >>> oar.disable_static()
    """
    maker = LayerMaker("spectral_norm", name, weight.dtype)
    order = [dim, *(i for i in range(weight.ndim) if i != dim)]
    moved = ops.transpose(weight, order)
    rows = moved.shape[0]
    flat = ops.reshape(moved, [rows, -1])
    u = maker.parameter([rows], ParamAttr(initializer=Normal(0.0, 1.0), trainable=False))
    v = maker.parameter([flat.shape[1]], ParamAttr(initializer=Normal(0.0, 1.0), trainable=False))
    with oar.no_grad():
        new_u, new_v = u, v
        for _ in range(power_iters):
            new_v = _unit(ops.matmul(flat, new_u, True), eps)
            new_u = _unit(ops.matmul(flat, new_v), eps)
        if power_iters:
            new_u, new_v = new_u.detach().clone(), new_v.detach().clone()
            u.set_value(new_u)
            v.set_value(new_v)
    return weight / ops.sum(new_u * ops.matmul(flat, new_v))


def _unit(x: Tensor, eps: float) -> Tensor:
    return x / (oar.sqrt(ops.sum(x * x)) + eps)
