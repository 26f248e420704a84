"""Linear layers whose weights are integers with scales.

The integers are the transposed weight, in its own order. Paddle has other orders, each for one kind of GPU; so weights
that it quantised must be quantised again here.
"""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.nn.quant._rounding import away_from_zero

__all__ = ["llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]

_LARGEST = {"weight_only_int8": 127, "llm.int8": 127, "weight_only_int4": 7}


def _check(op: str, algo: str, group_size: int) -> None:
    if algo in ("w4a8", "w4afp8"):
        raise NotImplementedError(f"[{op}] algo {algo!r} needs a GPU. Use 'weight_only_int4'.")
    if algo not in _LARGEST:
        raise ValueError(f"[{op}] algo is {algo!r}; it can be one of {', '.join(map(repr, _LARGEST))}.")
    if group_size not in (-1, 64, 128):
        raise ValueError(f"[{op}] group_size is {group_size}; it can be -1, 64 or 128.")


def _of_rows(scale: Tensor, rows: int, group_size: int) -> Tensor:
    """The scale of each row of the weight, [rows or 1, columns]."""
    if group_size < 0:
        return ops.reshape(scale, [1, -1])
    return ops.repeat_interleave(scale, group_size, 0)[:rows]


def weight_quantize(
    x: Tensor, algo: str = "weight_only_int8", arch: int | None = None, group_size: int = -1
) -> tuple[Tensor, Tensor]:
    """The weight of a linear layer as integers, with the scales that give it back.

    Args:
        x: the weight [in, out].
        algo: 'weight_only_int8' or 'llm.int8' for numbers from -127 to 127; 'weight_only_int4' for -7 to 7.
        arch: the kind of GPU; not used, as the order of the result is the same for all.
        group_size: how many elements of a column share a scale, 64 or 128; -1 for all.

    Returns:
        the integers as int8, [out, in]; for int4 [out // 2, in], with the even columns of x in the lower four bits. And
        the scales, [out], or [groups, out] with group_size; of the dtype of x, or float32 for 'llm.int8'.

    Examples:
        >>> import oar
        >>> out, scale = oar.nn.quant.weight_quantize(oar.to_tensor([[1.0, -4.0], [2.0, 1.0]]))
        >>> out.tolist()
        [[64, 127], [-127, 32]]
    """
    op = "weight_quantize"
    _check(op, algo, group_size)
    if x.ndim != 2 or (algo == "weight_only_int4" and x.shape[1] % 2):
        even = ", with an even number of columns for 'weight_only_int4'" if algo == "weight_only_int4" else ""
        raise ValueError(f"[{op}] x has shape {list(x.shape)}; it must be [in, out]{even}.")
    rows, columns = x.shape
    wide = ops.cast(x, "float64" if x.dtype.name == "float64" else "float32")
    if group_size < 0:
        highest = ops.max(ops.abs(wide), [0])
    else:
        groups = -(-rows // group_size)
        whole = ops.concat([wide, ops.zeros([groups * group_size - rows, columns], wide.dtype)], 0)
        highest = ops.max(ops.abs(ops.reshape(whole, [groups, group_size, columns])), [1])
    most = _LARGEST[algo]
    scale = ops.cast(highest / most, "float32" if algo == "llm.int8" else x.dtype)
    each = _of_rows(ops.cast(scale, wide.dtype), rows, group_size)
    steps = wide / ops.where(each > 0, each, ops.ones([], wide.dtype))
    whole_numbers = ops.transpose(ops.clip(away_from_zero(steps), -most, most), [1, 0])
    if algo == "weight_only_int4":
        pairs = ops.reshape(whole_numbers, [columns // 2, 2, rows])
        whole_numbers = pairs[:, 1] * 16 + pairs[:, 0] % 16
    return ops.cast(whole_numbers, "int8"), scale


def _weight(op: str, x: Tensor, scale: Tensor, algo: str, group_size: int) -> Tensor:
    """The weight [in, out], in the dtype of the scale."""
    _check(op, algo, group_size)
    if x.ndim != 2 or x.dtype.name != "int8":
        raise ValueError(f"[{op}] the weight is {x.dtype.name}{list(x.shape)}; it must be a matrix of int8, from "
                         "weight_quantize.")
    if algo == "weight_only_int4":
        both = ops.cast(x, "int32")
        low = (both + 8) % 16 - 8
        x = ops.reshape(ops.stack([low, both // 16], 1), [2 * x.shape[0], x.shape[1]])
    columns, rows = x.shape
    wanted = [columns] if group_size < 0 else [-(-rows // group_size), columns]
    if list(scale.shape) != wanted:
        raise ValueError(f"[{op}] the scale has shape {list(scale.shape)}; for this weight and group_size={group_size} it "
                         f"must be {wanted}.")
    return ops.cast(ops.transpose(x, [1, 0]), scale.dtype) * _of_rows(scale, rows, group_size)


def weight_dequantize(
    x: Tensor, scale: Tensor, algo: str = "weight_only_int8", out_dtype: Any = "float16", group_size: int = -1
) -> Tensor:
    """The weight that ``weight_quantize`` rounded.

    Args:
        x: the integers of ``weight_quantize``.
        scale: its scales.
        algo: as for ``weight_quantize``.
        out_dtype: not used, as in Paddle; the result has the dtype of scale.
        group_size: as for ``weight_quantize``.

    Returns:
        a tensor [in, out].

    Examples:
        >>> import oar
        >>> out, scale = oar.nn.quant.weight_quantize(oar.to_tensor([[1.0, -7.0], [7.0, 2.6]]), 'weight_only_int4')
        >>> oar.nn.quant.weight_dequantize(out, scale, 'weight_only_int4').tolist()
        [[1.0, -7.0], [7.0, 3.0]]
    """
    return _weight("weight_dequantize", x, scale, algo, group_size)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = ops.matmul(x, weight)
    return product if bias is None else product + bias


def weight_only_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, weight_scale: Tensor | None = None,
    weight_dtype: str = "int8", arch: int | None = None, group_size: int = -1,
) -> Tensor:
    """x @ weight + bias, for a weight of integers; x is not quantised.

    Args:
        x: the input [..., in].
        weight: the integers of ``weight_quantize``, with 'weight_only_int8' or 'weight_only_int4'.
        bias: added to each row; or None.
        weight_scale: its scales.
        weight_dtype: 'int8' or 'int4'.
        arch: the kind of GPU; not used.
        group_size: as for ``weight_quantize``.

    Returns:
        a tensor [..., out].

    Examples:
        >>> import oar
        >>> weight, scale = oar.nn.quant.weight_quantize(oar.to_tensor([[1.0, -7.0], [7.0, 2.6]]), 'weight_only_int4')
        >>> oar.nn.quant.weight_only_linear(oar.ones([1, 2]), weight, None, scale, 'int4').tolist()
        [[8.0, -4.0]]
    """
    op = "weight_only_linear"
    if weight_dtype not in ("int8", "int4"):
        raise ValueError(f"[{op}] weight_dtype is {weight_dtype!r}; it can be 'int8' or 'int4'.")
    if weight_scale is None:
        raise ValueError(f"[{op}] weight_scale is None; pass the second result of weight_quantize.")
    return _linear(x, ops.cast(_weight(op, weight, weight_scale, f"weight_only_{weight_dtype}", group_size), x.dtype), bias)


def llm_int8_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, weight_scale: Tensor | None = None, threshold: float = 6.0
) -> Tensor:
    """x @ weight + bias, for a weight of integers and x quantised row by row; columns of x with outliers are not.

    It is for inference and has no gradient.

    Args:
        x: the input [..., in].
        weight: the integers of ``weight_quantize``, with 'llm.int8'.
        bias: added to each row; or None.
        weight_scale: its scales.
        threshold: a column of x with an element larger than this, without its sign, is not quantised.

    Returns:
        a tensor [..., out].

    Examples:
        >>> import oar
        >>> weight, scale = oar.nn.quant.weight_quantize(oar.to_tensor([[127.0, 2.0], [-3.0, -127.0]]), 'llm.int8')
        >>> oar.nn.quant.llm_int8_linear(oar.to_tensor([[1.0, 100.0]]), weight, None, scale).tolist()
        [[-173.0, -12698.0]]
    """
    op = "llm_int8_linear"
    if weight_scale is None:
        raise ValueError(f"[{op}] weight_scale is None; pass the second result of weight_quantize.")
    floats = _weight(op, weight, weight_scale, "llm.int8", -1)
    rows = ops.cast(ops.reshape(x.detach(), [-1, x.shape[-1]]), "float32")
    outlier, zero = ops.max(ops.abs(rows), [0], True) > threshold, ops.zeros([], "float32")
    usual = ops.where(outlier, zero, rows)
    highest = ops.max(ops.abs(usual), [1], True)
    steps = away_from_zero(usual * 127.0 / ops.where(highest > 0, highest, ops.ones([], "float32")))
    # float64 holds the sums of products of integers exactly
    product = ops.matmul(ops.cast(steps, "float64"), ops.cast(weight, "float64"), False, True)
    out = ops.cast(product, "float32") * (highest / 127.0) * ops.cast(weight_scale, "float32")
    out = out + ops.matmul(ops.where(outlier, rows, zero), ops.cast(floats, "float32"))
    out = ops.reshape(ops.cast(out, x.dtype), [*x.shape[:-1], weight.shape[0]])
    return out if bias is None else out + bias
