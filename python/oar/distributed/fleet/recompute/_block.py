"""A call whose saved tensors are dropped and computed again when the derivative needs them.

While the function runs, ``saved_tensors_hooks`` give the tape empty slots in place of the tensors that it would save. When
a derivative asks for the first of them, the function runs again, from the same inputs, random state and mixed precision, and
what is saved then fills the slots in order. The tape itself is that of the first run: gradients of any order, of parameters
and of whatever the function reads flow as without recomputation. The tape of the second run is thrown away.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._grad_mode import enable_grad
from oar.autograd.saved_tensors_hooks import saved_tensors_hooks

__all__ = ["Block"]


class _Slot:
    """Stands on the tape for a tensor that is computed again."""

    __slots__ = ("__weakref__", "content", "dtype", "shape", "version")

    def __init__(self, like: Tensor) -> None:
        self.shape, self.dtype, self.version = list(like.shape), like.dtype, like.inplace_version
        self.content: Tensor | None = None

    def fill(self, content: Tensor) -> None:
        if list(content.shape) != self.shape or content.dtype != self.dtype:
            raise _unlike(f"saved a tensor of shape {list(content.shape)} and dtype {content.dtype.name} where it first saved "
                          f"one of shape {self.shape} and dtype {self.dtype.name}")
        self.content = content
        self._check()

    def take(self) -> Tensor | None:
        """The content, which is released: the memory is free when the derivative has used it."""
        if self.content is not None:
            self._check()
        content, self.content = self.content, None
        return content

    def _check(self) -> None:
        assert self.content is not None
        if self.content.inplace_version != self.version:
            raise RuntimeError(
                f"[recompute] a tensor of shape {self.shape} that the derivative needs has been changed in place since the "
                "function first read or computed it. Use the op without the underscore, clone() the tensor before you change "
                "it, or call backward() before the optimizer's step()."
            )


class _Filled(BaseException):
    """Ends the second run when all slots are filled: what follows is not needed."""


class _Kept:
    """An input of a block: itself, or moved to the host, or saved by the block around."""

    def __init__(self, tensor: Tensor, offload: bool) -> None:
        self._stop_gradient = tensor.stop_gradient
        self._unpack = _C.pack_saved(tensor)
        self._place = tensor.place if offload and not tensor.place.is_cpu_place() else None
        self._content: Tensor | None = None
        self._version = tensor.inplace_version
        self._moved = self._unpack is not None or self._place is not None
        if self._unpack is None:
            self._content = tensor.detach() if self._place is None else tensor.detach().cpu()

    def again(self) -> Tensor:
        content = self._unpack() if self._unpack is not None else self._content
        assert content is not None
        if not self._moved and content.inplace_version != self._version:
            raise RuntimeError(
                f"[recompute] an input of shape {list(content.shape)} has been changed in place since the function was called, so "
                "it cannot run again. Use the op without the underscore, or clone() the tensor before you change it."
            )
        fresh = content.detach() if self._place is None else content.to(self._place)
        fresh.stop_gradient = self._stop_gradient
        return fresh


class Block:
    """One call of a function that will run again for the derivative.

    Args:
        function: the function.
        args: its arguments; tensors may be in lists, tuples and dicts.
        kwargs: its keyword arguments.
        preserve_rng_state: whether the second run draws the random numbers of the first.
        offload: the positions of arguments that are kept in the memory of the host; True is all of them.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], preserve_rng_state: bool,
        offload: frozenset[int] | bool,
    ) -> None:  # fmt: skip
        self._function = function
        self._args = [_kept(value, offload is True or (offload is not False and i in offload)) for i, value in enumerate(args)]
        self._kwargs = {name: _kept(value, offload is True) for name, value in kwargs.items()}
        self._random = (_C.rng_state(), _streams().get_states_tracker()) if preserve_rng_state else None
        self._autocast = _C.get_autocast()
        self._slots: list[weakref.ref[_Slot]] = []

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result. What it would save is not kept."""
        with saved_tensors_hooks(self._open_slot, self._content_of):
            return self._function(*args, **kwargs)

    def _open_slot(self, tensor: Tensor) -> _Slot:
        slot = _Slot(tensor)
        self._slots.append(weakref.ref(slot))
        return slot

    def _content_of(self, slot: _Slot) -> Tensor:
        content = slot.take()
        if content is None:
            self._run_again()
            content = slot.take()
        if content is None:
            raise _unlike("saved fewer tensors")
        return content

    def _run_again(self) -> None:
        args = [_mapped(value, _Kept, _Kept.again) for value in self._args]
        kwargs = {name: _mapped(value, _Kept, _Kept.again) for name, value in self._kwargs.items()}
        random, autocast = (_C.rng_state(), _streams().get_states_tracker()), _C.set_autocast(*self._autocast)
        try:
            if self._random is not None:
                _set_random(*self._random)
            with enable_grad(), saved_tensors_hooks(self._filling(), _never):
                self._function(*args, **kwargs)
        except _Filled:
            pass
        finally:
            _C.set_autocast(*autocast)
            if self._random is not None:
                _set_random(*random)

    def _filling(self) -> Callable[[Tensor], None]:
        """A hook that puts what the second run saves into the slots that are still in use, in order."""
        slots = [slot() for slot in self._slots]
        while slots and slots[-1] is None:
            slots.pop()
        waiting = iter(slots)
        left = len(slots)

        def fill(content: Tensor) -> None:
            nonlocal left
            slot = next(waiting, None)
            if slot is not None:
                slot.fill(content)
            left -= 1
            if left <= 0:
                raise _Filled

        return fill


def _streams() -> Any:
    """The streams of random numbers that have names: the function may draw from them, too."""
    from oar.distributed.fleet.layers.mpu.random import get_rng_state_tracker

    return get_rng_state_tracker()


def _set_random(state: tuple[Any, ...], of_streams: dict[str, Any]) -> None:
    _C.set_rng_state(*state)
    _streams().states_.update(of_streams)


def _never(slot: object) -> Tensor:
    raise RuntimeError("[recompute] the function calls backward() on what it computes; call it outside of the function.")


def _unlike(what: str) -> RuntimeError:
    return RuntimeError(
        f"[recompute] the function {what} when it ran again for the derivative. It must compute the same each time: it may not "
        "depend on something that changes between the runs, such as a counter or Python's own random numbers."
    )


def _kept(value: Any, offload: bool) -> Any:
    return _mapped(value, Tensor, lambda tensor: _Kept(tensor, offload))


def _mapped(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The value with other objects in the places of those of a class, in lists, tuples and dicts too."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (dict, OrderedDict):
        return type(value)((name, _mapped(item, kind, change)) for name, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, kind, change) for item in value))
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, kind, change) for item in value)
    return value
