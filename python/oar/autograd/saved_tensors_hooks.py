"""Hooks for the tensors that are saved for the derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor

__all__ = ["saved_tensors_hooks"]


class saved_tensors_hooks:
    """While active, each tensor that is saved for the derivative passes through a pair of hooks.

    ``pack_hook`` gets every tensor that an op or ``PyLayerContext.save_for_backward`` saves. What it returns is kept
    instead of the tensor; ``unpack_hook`` gets it each time when the derivative needs the tensor. So saved tensors can be
    stored with fewer bits, or on a disk. Tensors whose shape alone is needed, sparse tensors, and calls of a captured program do not
    pass through the hooks. Neither does what the hooks compute. Of nested pairs the innermost acts.

    Args:
        pack_hook: gets the tensor, returns any object.
        unpack_hook: gets that object, returns a tensor with the same content.

    Examples:
        >>> import oar
        >>> a = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> b = oar.to_tensor([3.0, 4.0], stop_gradient=False)
        >>> with oar.autograd.saved_tensors_hooks(lambda x: x.numpy(), oar.to_tensor):
        ...     y = a * b
        ...
        >>> y.sum().backward()
        >>> a.grad.tolist(), b.grad.tolist()
        ([3.0, 4.0], [1.0, 2.0])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks: {name} must be a function, not {type(hook).__name__}.")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _C.pop_saved_hooks()
