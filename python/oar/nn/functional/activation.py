"""Activations: some ops, and what is more than one op."""

from __future__ import annotations

import oar
from oar import _C
from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = ["gumbel_softmax", "logsigmoid", "softmax_"]

logsigmoid = ops.log_sigmoid
hard_sigmoid, hard_swish = ops.hardsigmoid, ops.hardswish  # names of older versions

# Ops of the core (src/oar/ops/families), in the module where Paddle's programs look for them too.
gelu = ops.gelu
hardshrink = ops.hardshrink
leaky_relu = ops.leaky_relu
log_sigmoid = ops.log_sigmoid
relu = ops.relu
relu6 = ops.relu6
selu = ops.selu
silu = ops.silu
softmax = ops.softmax


@spelled
def gumbel_softmax(
    x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Tensor:
    """A sample from the classes along an axis, drawn by their scores ``x``, that can be differentiated.

    The softmax of ``(x + noise) / temperature``. With ``hard`` it is 1 for the largest class and 0 for the
    others, with the gradient of the softmax.

    Args:
        x: the input.
        temperature: the lower, the closer to one-hot.
        hard: whether the result is one-hot; the gradient is that of the soft one.
        axis: the axis to work along; a negative one counts from the end.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.gumbel_softmax(oar.to_tensor([[1.0, 2.0, 3.0]]), hard=True).sum().item()
        1.0
    """
    if not isinstance(x, Tensor):
        raise _C.ArgumentTypeError(f"[gumbel_softmax] argument 'x' must be a tensor, not {type(x).__name__}.")
    if temperature <= 0:
        raise ValueError(f"[gumbel_softmax] temperature is {temperature}; it must be positive.")
    if x.ndim == 0:  # one class
        return ops.reshape(gumbel_softmax(ops.reshape(x, [1]), temperature, hard, axis), [])
    # Less the logarithm of an exponential number is a Gumbel number.
    noise = -oar.log(ops.exponential(x.shape, 1.0, x.dtype))
    soft = ops.softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    largest = ops.argmax(soft, axis, True)
    chosen = ops.put_along_axis(ops.zeros_like(soft), largest, ops.ones_like(largest, soft.dtype), axis)
    return chosen - soft.detach() + soft


def softmax_(x: Tensor, axis: int = -1, dtype=None, name: str | None = None) -> Tensor:
    """``softmax``, written into ``x``.

    Args:
        x: the input.
        axis: the axis to work along; a negative one counts from the end.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.to_tensor([[1.0, 1.0]])
        >>> F.softmax_(x)
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.50000000, 0.50000000]])
    """
    return ops.copy_into(x, ops.softmax(x, axis, dtype))
