"""Functions of networks whose arguments are PyTorch's where Paddle's differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar import softmax
from oar._C import Tensor, ops

__all__ = ["linear", "pad", "scaled_dot_product_attention", "softmax", "unfold"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input times the transposed weight, plus the bias.

    Args:
        input: the input, [..., in].
        weight: the weight, [out, in].
        bias: the bias, [out], or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.compat.nn.functional.linear(oar.ones([2, 3]), oar.ones([4, 3])).shape
        [2, 4]
    """
    product = ops.matmul(input, weight, False, weight.ndim > 1)
    return product if bias is None else product + bias


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = 0.0) -> Tensor:
    """The tensor with a margin. Sizes come in pairs, those of the last axis first.

    Args:
        input: the tensor.
        pad: how much before and after along the last axis, then along the one before it, and so on.
        mode: ``'constant'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
        value: what the margin holds in mode constant.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.compat.nn.functional.pad(oar.to_tensor([[1.0, 2.0]]), (1, 0), value=5.0).tolist()
        [[5.0, 1.0, 2.0]]
        >>> oar.compat.nn.functional.pad(oar.to_tensor([[1.0, 2.0]]), (0, 1), mode='replicate').tolist()
        [[1.0, 2.0, 2.0]]
    """
    from oar.nn import functional

    sizes = [int(size) for size in pad]
    if len(sizes) % 2 or len(sizes) > 2 * input.ndim:
        raise ValueError(f"[pad] pad is {sizes}; it has two numbers for each of up to {input.ndim} axes.")
    if mode == "constant":
        full = [0, 0] * (input.ndim - len(sizes) // 2)
        pairs = [sizes[i : i + 2] for i in range(0, len(sizes), 2)][::-1]
        return functional.pad(input, [*full, *(s for pair in pairs for s in pair)], "constant",
                              0.0 if value is None else value, pad_from_left_axis=True)  # fmt: skip
    axes = len(sizes) // 2
    if input.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"[pad] mode {mode!r} with {len(sizes)} numbers takes tensors of {axes + 1} or {axes + 2} axes, "
                         f"not one of shape {list(input.shape)}.")
    batched = input if input.ndim == axes + 2 else ops.unsqueeze(input, [0])
    made = functional.pad(batched, sizes, mode, data_format=("NCL", "NCHW", "NCDHW")[axes - 1])
    return made if input.ndim == axes + 2 else ops.squeeze(made, [0])


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns.

    Args:
        input: the images, [n, c, h, w].
        kernel_size: the size of the windows.
        dilation: the distance of elements within a window.
        padding: the margin.
        stride: the distance of windows.

    Returns:
        a tensor [n, c * window, number of windows].

    Examples:
        >>> import oar
        >>> oar.compat.nn.functional.unfold(oar.ones([1, 1, 4, 4]), 2, stride=2).shape
        [1, 4, 4]
    """
    from oar.nn import functional

    return functional.unfold(input, kernel_size, stride, padding, dilation)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Attention of heads: softmax(query keyᵀ scale + mask) value.

    Args:
        query: [batch, heads, length, size]; the axis of heads may be left out in all three.
        key: [batch, heads, other length, size].
        value: [batch, heads, other length, size].
        attn_mask: what is added to the scores, or where True lets a score count; None is no mask.
        dropout_p: the part of the scores that is dropped.
        is_causal: whether a place sees only the places before it and itself.
        scale: the factor of the scores; None is one over the root of the size.
        enable_gqa: whether key and value may have fewer heads, which several of query share.

    Returns:
        a tensor [batch, heads, length, size].

    Examples:
        >>> import oar
        >>> x = oar.ones([1, 2, 3, 4])
        >>> oar.compat.nn.functional.scaled_dot_product_attention(x, x, x).shape
        [1, 2, 3, 4]
    """
    if query.ndim == 3:  # one head, without an axis of its own
        query, key, value = (ops.unsqueeze(x, [1]) for x in (query, key, value))
        mask = None if attn_mask is None or attn_mask.ndim < 3 else ops.unsqueeze(attn_mask, [1])
        made = scaled_dot_product_attention(
            query, key, value, attn_mask if mask is None else mask, dropout_p, is_causal, scale)
        return ops.squeeze(made, [1])
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(f"[scaled_dot_product_attention] query has {query.shape[1]} heads and key {key.shape[1]}. "
                         "hint: enable_gqa=True lets heads of query share those of key.")
    swapped = [ops.transpose(x, [0, 2, 1, 3]) for x in (query, key, value)]
    made = ops.scaled_dot_product_attention(*swapped, attn_mask, dropout_p, is_causal, True, None, scale, enable_gqa)
    return ops.transpose(made, [0, 2, 1, 3])
