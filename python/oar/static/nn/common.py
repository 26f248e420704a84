"""Layers as functions: products, convolutions, embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.initializer import Constant
from oar.static.nn.convolutions import (
    channels_of,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    deform_conv2d,
)
from oar.static.nn.maker import LayerMaker

__all__ = [
    "bilinear_tensor_product",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "deform_conv2d",
    "embedding",
    "fc",
    "prelu",
    "row_conv",
    "sparse_embedding",
]


def fc(
    x: Tensor | Sequence[Tensor],
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of ``x @ weight`` over all inputs, plus a bias.

    Args:
        x: an input, or several, each with its own weight.
        size: how many outputs.
        num_flatten_dims: that many leading axes stay; the others are one.
        weight_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.fc(x, size=4, activation='relu')
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 4)
        >>> oar.disable_static()
    """
    inputs = [x] if isinstance(x, Tensor) else list(x)
    for one in inputs:
        if not isinstance(one, Tensor):
            raise TypeError(f"[fc] x should be a variable or a list of them, but received {type(one).__name__}.")
    maker = LayerMaker("fc", name, inputs[0].dtype)
    attrs = list(weight_attr) if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    total: Any = None
    for one, attr in zip(inputs, attrs):
        kept = num_flatten_dims if num_flatten_dims >= 0 else one.ndim + num_flatten_dims
        width = math.prod(one.shape[kept:])
        flat = one if kept == one.ndim - 1 else ops.reshape(one, [*one.shape[:kept], width])
        part = ops.matmul(flat, maker.parameter([width, size], attr))
        total = part if total is None else total + part
    bias = maker.parameter([size], bias_attr, is_bias=True)
    return maker.activated(total if bias is None else total + bias, activation)


def embedding(
    input: Tensor,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Tensor:
    """The rows of a table ``[size[0], size[1]]`` at the indices ``input``.

    Args:
        input: the input.
        size: the number of rows and the width.
        is_sparse: whether gradients hold only the rows that were used.
        is_distributed: accepted for compatibility.
        padding_idx: an index whose row is zeros.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None], 'int64')
        ...     y = oar.static.nn.embedding(x, size=[10, 4])
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': [1, 2]}, fetch_list=[y])[0].shape
        (2, 4)
        >>> oar.disable_static()
    """
    maker = LayerMaker("embedding", None, dtype)
    weight = maker.parameter([int(s) for s in size], param_attr)
    padding = None if padding_idx is None else padding_idx if padding_idx >= 0 else int(size[0]) + padding_idx
    return F.embedding(input, weight, padding)


def sparse_embedding(
    input: Tensor,
    size: Sequence[int],
    padding_idx: int | None = None,
    is_test: bool = False,
    entry: Any = None,
    table_class: str = "MemorySparseTable",
    param_attr: Any = None,
    dtype: Any = "float32",
    slot: Any = None,
) -> Tensor:
    """As ``embedding``, with a table on the servers of ``fleet.init``; any 64-bit integer is a key then. Without servers the table is one
    of this process.

    Args:
        input: the input.
        size: the number of rows and the width.
        padding_idx: an index whose row is zeros.
        is_test: whether to use the running statistics.
        entry: which keys get a row on servers: ``CountFilterEntry``, ``ProbabilityEntry`` or ``ShowClickEntry``; None for all.
        table_class: ``'SSDSparseTable'`` keeps the rows of servers on disk.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        dtype: the dtype of the result; None takes the default, or that of the input.
        slot: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None], 'int64')
        ...     y = oar.static.nn.sparse_embedding(x, size=[10, 4])
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': [1, 2]}, fetch_list=[y])[0].shape
        (2, 4)
        >>> oar.disable_static()
    """
    if 0 in input.shape:
        raise ValueError(f"[sparse_embedding] input has shape {list(input.shape)}; it must have elements.")
    from oar.distributed.fleet import _process

    servers = _process.fleet._servers
    if servers is not None:
        from oar.distributed.ps.program import lookup
        from oar.distributed.ps.tables import TableConfig, initial_of
        from oar.utils import unique_name

        name = getattr(param_attr, "name", None) or unique_name.generate("sparse_embedding")
        width = int(size[1])
        table = TableConfig(name, width, initial=initial_of(param_attr, width), entry=entry, on_disk=table_class == "SSDSparseTable")
        return lookup(input, table, servers, padding_idx)
    if entry is not None:
        raise ValueError("[sparse_embedding] entry is for tables of parameter servers, which there are none of.")
    return embedding(input, size, False, False, padding_idx, param_attr, dtype)


def bilinear_tensor_product(x: Tensor, y: Tensor, size: int, act: str | None = None, name: str | None = None,
                            param_attr: Any = None, bias_attr: Any = None) -> Tensor:
    """``x @ weight[i] @ y`` for each of ``size`` matrices, plus a bias.

    Args:
        x: the input.
        y: the second input.
        size: the number of results.
        act: the name of an activation, or None.
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
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.bilinear_tensor_product(x, x, size=5)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 5)
        >>> oar.disable_static()
    """
    maker = LayerMaker("bilinear_tensor_product", name, x.dtype)
    weight = maker.parameter([size, x.shape[1], y.shape[1]], param_attr)
    bias = maker.parameter([1, size], bias_attr, is_bias=True)
    return maker.activated(F.bilinear(x, y, weight, bias), act)


def prelu(x: Tensor, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """``x`` if it is positive, else a learnt slope times ``x``: one for all, by channel or by element.

    Args:
        x: the input.
        mode: 'all', 'channel' or 'element'.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = oar.static.nn.prelu(x, mode='all')
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
    """
    maker = LayerMaker("prelu", name, x.dtype)
    if mode not in ("all", "channel", "element"):
        raise ValueError(f"[prelu] mode is {mode!r}; it can be 'all', 'channel' or 'element'.")
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise ValueError(f"[prelu] data_format {data_format!r} has no channel axis.")
    last = data_format[-1] == "C" and data_format != "NC"
    if mode == "channel":
        shape = [1] * x.ndim
        shape[-1 if last else 1] = channels_of(x, data_format) if x.ndim > 1 else 1
    else:
        shape = [1] if mode == "all" else [1, *x.shape[1:]]
    slope = maker.parameter(shape, param_attr, default=Constant(0.25))
    return ops.where(x > 0, x, x * slope)


def row_conv(input: Tensor, future_context_size: int, param_attr: Any = None, act: str | None = None) -> Tensor:
    """Each step becomes a weighted sum of itself and the steps after it; ``input`` is ``[batch, time, width]``.

    Args:
        input: the input.
        future_context_size: how many later steps count.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        act: the name of an activation, or None.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 4, 3])
        ...     y = oar.static.nn.row_conv(x, future_context_size=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 4, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 4, 3)
        >>> oar.disable_static()
    """
    maker = LayerMaker("row_conv", None, input.dtype)
    weight = maker.parameter([future_context_size + 1, input.shape[-1]], param_attr)
    later = ops.zeros([input.shape[0], future_context_size, input.shape[2]], input.dtype)
    padded = ops.concat([input, later], 1)
    length = input.shape[1]
    total: Any = None
    for step in range(future_context_size + 1):
        part = padded[:, step : step + length] * weight[step]
        total = part if total is None else total + part
    return maker.activated(total, act)
