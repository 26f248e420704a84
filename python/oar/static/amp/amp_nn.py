"""The steps of dynamic loss scaling, as calls on the gradients: each writes its arguments, in eager mode and in programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops

__all__ = ["check_finite_and_unscale", "update_loss_scaling"]


def _checked(op: str, x: Any) -> Sequence[Tensor]:
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"[{op}] x should be a list of tensors, but received {type(x).__name__}.")
    for entry in x:
        if not isinstance(entry, Tensor):
            raise TypeError(f"[{op}] x should hold tensors, but received {type(entry).__name__}.")
    return x


def check_finite_and_unscale(
    x: Sequence[Tensor], scale: Tensor, name: str | None = None, float_status: Any = None
) -> tuple[Sequence[Tensor], Tensor]:
    """Divide gradients by the scale of the loss, in place, and find out whether one of their elements is not finite.

    Args:
        x: the gradients.
        scale: a tensor with one number.
        float_status: accepted for compatibility.

    Returns:
        the gradients, and a tensor with one bool.

    Examples:
        >>> import oar
        >>> x = [oar.to_tensor([2.0, 4.0]), oar.to_tensor([float('inf')])]
        >>> _, found = oar.static.amp.amp_nn.check_finite_and_unscale(x, oar.to_tensor([2.0]))
        >>> x[0].tolist(), found.tolist()
        ([1.0, 2.0], [True])
    """
    entries = _checked("check_finite_and_unscale", x)
    if not entries:
        return x, oar.zeros([1], dtype="bool")
    finite = ops.all(ops.stack([ops.all(ops.isfinite(entry)) for entry in entries], 0))
    factor = 1.0 / ops.cast(ops.reshape(scale, []), "float32")
    for entry in entries:
        ops.copy_into(entry, _times(entry, factor))
    return x, ops.reshape(ops.logical_not(finite), [1])


def _times(entry: Tensor, factor: Tensor) -> Tensor:
    # A scale of 2 ** 16 is infinite in float16, so the product is formed in float32.
    if entry.dtype in (oar.float16, oar.bfloat16):
        return ops.cast(ops.cast(entry, "float32") * factor, entry.dtype)
    return entry * ops.cast(factor, entry.dtype)


def update_loss_scaling(
    x: Sequence[Tensor],
    found_inf: Tensor,
    prev_loss_scaling: Tensor,
    num_good_steps: Tensor,
    num_bad_steps: Tensor,
    incr_every_n_steps: Any,
    decr_every_n_nan_or_inf: Any,
    incr_ratio: float,
    decr_ratio: float,
    stop_update: Any = False,
    name: str | None = None,
) -> Sequence[Tensor]:
    """After a step: zero gradients that are not finite, count the step, and raise or lower the scale of the loss, all in place.

    Args:
        x: the gradients.
        found_inf: a tensor with one bool, whether one of them is not finite.
        prev_loss_scaling: the scale.
        num_good_steps: how many steps in a row were finite.
        num_bad_steps: how many were not.
        incr_every_n_steps: after so many good steps the scale is multiplied by ``incr_ratio``, if it stays finite.
        decr_every_n_nan_or_inf: after so many bad steps it is multiplied by ``decr_ratio``, down to 1.
        incr_ratio: above 1.
        decr_ratio: below 1.
        stop_update: True leaves the scale and the counts as they are.

    Returns:
        the gradients.

    Examples:
        >>> import oar
        >>> x, scale = [oar.to_tensor([1.0])], oar.to_tensor([8.0])
        >>> good, bad = oar.to_tensor([0], dtype='int32'), oar.to_tensor([0], dtype='int32')
        >>> _ = oar.static.amp.amp_nn.update_loss_scaling(x, oar.to_tensor([True]), scale, good, bad, 100, 1, 2.0, 0.5)
        >>> x[0].tolist(), scale.tolist(), good.tolist(), bad.tolist()
        ([0.0], [4.0], [0], [0])
    """
    for entry in _checked("update_loss_scaling", x):
        ops.copy_into(entry, oar.where(found_inf, oar.zeros_like(entry), entry))
    if stop_update is True:
        return x
    good = oar.where(found_inf, oar.zeros_like(num_good_steps), num_good_steps + 1)
    bad = oar.where(found_inf, num_bad_steps + 1, oar.zeros_like(num_bad_steps))
    more, less = good == incr_every_n_steps, bad == decr_every_n_nan_or_inf
    raised, lowered = prev_loss_scaling * incr_ratio, oar.clip(prev_loss_scaling * decr_ratio, min=1.0)
    scale = oar.where(oar.logical_and(more, oar.isfinite(raised)), raised, oar.where(less, lowered, prev_loss_scaling))
    good, bad = oar.where(more, oar.zeros_like(good), good), oar.where(less, oar.zeros_like(bad), bad)
    for old, new in ((prev_loss_scaling, scale), (num_good_steps, good), (num_bad_steps, bad)):
        kept = oar.where(stop_update, old, new) if isinstance(stop_update, Tensor) else new
        ops.copy_into(old, ops.cast(kept, old.dtype))
    return x
