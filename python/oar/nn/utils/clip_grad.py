"""Clipping the gradients of parameters in place."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters: Any) -> list[Tensor]:
    listed: Iterable[Tensor] = [parameters] if isinstance(parameters, Tensor) else parameters
    return [parameter.grad for parameter in listed if parameter.grad is not None]


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Shorten the gradients together to at most ``max_norm``, in place.

    Args:
        parameters: a tensor or an iterable of tensors.
        max_norm: the bound.
        norm_type: 0, 1, 2, … or infinity.
        error_if_nonfinite: raise when the norm is infinite or not a number.

    Returns:
        The norm before clipping.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> (net(oar.ones([1, 2])) * 100).sum().backward()
        >>> _ = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        >>> sum((p.grad ** 2).sum().item() for p in net.parameters())
        0.9999999403953552
    """
    if norm_type not in (float("inf"), 0, 1, 2) and not (isinstance(norm_type, (int, float)) and norm_type > 0):
        raise ValueError(f"norm_type should be a non-negative number or inf, but received {norm_type}.")
    with oar.no_grad():
        grads = _gradients(parameters)
        if not grads:
            return oar.to_tensor(0.0)
        total = _total_norm(grads, float(norm_type))
        if error_if_nonfinite and not math.isfinite(float(total)):
            raise RuntimeError(
                f"The norm of order {norm_type} of the gradients is {float(total)}, so it cannot be clipped. "
                "Pass error_if_nonfinite=False to scale by it nevertheless."
            )
        scale = oar.clip(float(max_norm) / (total + 1e-6), max=1.0)
        for grad in grads:
            grad.set_value(grad * scale.astype(grad.dtype))
        return total


def _total_norm(grads: list[Tensor], norm_type: float) -> Tensor:
    flat = [oar.abs(grad.flatten()) for grad in grads]
    if norm_type == math.inf:
        peaks = [oar.max(part) for part in flat]
        return oar.max(oar.stack(peaks))
    if norm_type == 0:
        return functools.reduce(operator.add, [oar.sum((part != 0).astype("float32")) for part in flat])
    if norm_type == 1:
        return functools.reduce(operator.add, [oar.sum(part) for part in flat])
    return oar.pow(sum(oar.sum(oar.pow(part, norm_type)) for part in flat), 1.0 / norm_type)


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Cut every element of the gradients to ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: the parameters.
        clip_value: the bound.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> (net(oar.ones([1, 2])) * 100).sum().backward()
        >>> nn.utils.clip_grad_value_(net.parameters(), 0.5)
        >>> net.bias.grad.tolist()
        [0.5]
    """
    bound = float(clip_value)
    if bound < 0:
        raise ValueError(f"clip_value should not be negative, but is {clip_value}.")
    with oar.no_grad():
        for grad in _gradients(parameters):
            grad.set_value(oar.clip(grad, -bound, bound))
