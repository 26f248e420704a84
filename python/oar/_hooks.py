"""Hooks on the gradients of tensors."""

from __future__ import annotations

import builtins

from oar._C import Tensor

__all__ = ["TensorHookRemoveHelper", "register_backward_hook", "register_hook"]


class TensorHookRemoveHelper:
    """Takes a gradient hook off again."""

    def __init__(self, tensor: Tensor, hook_id: int):
        self._tensor, self._id = tensor, hook_id

    def remove(self) -> builtins.bool:
        return self._tensor._remove_hook(self._id)


def register_hook(self, hook) -> TensorHookRemoveHelper:
    """Calls ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces it.

    Args:
        hook: a function of the gradient.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> handle = x.register_hook(lambda gradient: gradient * 10)
        >>> (x * 2).backward()
        >>> x.grad.tolist()
        [20.0]
        >>> handle.remove()
        True
    """
    return TensorHookRemoveHelper(self, self._add_hook(hook))


def register_backward_hook(self, hook) -> builtins.bool:
    """Calls ``hook()`` whenever a leaf has received its gradient."""
    if self.stop_gradient or not self.is_leaf:
        raise ValueError("a backward hook is for leaves that require a gradient; use register_hook for others.")

    def call(grad):
        hook()

    self.register_hook(call)
    return True
