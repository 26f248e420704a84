"""States of solvers: a tensor, or tuples, lists and dicts of tensors, as one flat vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oar import _C
from oar._C import Tensor, ops


def readable(tensor: Tensor) -> bool:
    """Whether a tensor has values that can be checked: not inside a captured function, jvp or vmap."""
    return not _C.is_capturing() and not _C.is_symbolic(tensor)


def leaves(tree: Any) -> Iterator[Tensor]:
    """The tensors of a tree, in order."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


def rebuilt(tree: Any, values: Iterator[Any]) -> Any:
    """A tree of the same structure with other leaves."""
    if isinstance(tree, dict):
        return {key: rebuilt(value, values) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [rebuilt(value, values) for value in tree]
        if hasattr(tree, "_fields"):
            return type(tree)(*parts)
        return type(tree)(parts)
    return next(values)


class Packing:
    """Converts between a state and one flat vector.

    Args:
        state: the state whose structure, shapes and dtype count.
        owner: the function to name in errors.
        what: the argument to name in errors.
    """

    def __init__(self, state: Any, owner: str, what: str) -> None:
        self._state, self._owner, self._what = state, owner, what
        found = list(leaves(state))
        if not found:
            raise ValueError(f"[{owner}] {what} holds no tensor.")
        for leaf in found:
            if not isinstance(leaf, Tensor):
                raise TypeError(f"[{owner}] {what} must be a tensor, or a tuple, list or dict of tensors, but it holds "
                                f"{type(leaf).__name__}. Convert it with oar.to_tensor.")
            if not (leaf.is_floating_point() or leaf.is_complex()):
                raise TypeError(f"[{owner}] {what} has dtype {leaf.dtype}, but needs a float or complex one. "
                                "Convert it with astype('float64').")
            if leaf.dtype != found[0].dtype:
                raise TypeError(f"[{owner}] the tensors of {what} must share one dtype, but there are {found[0].dtype} and "
                                f"{leaf.dtype}. Convert them with astype.")
        self._shapes = [list(leaf.shape) for leaf in found]
        self._sizes = [leaf.size for leaf in found]
        self._single = isinstance(state, Tensor)
        self.dtype = found[0].dtype
        self.size = sum(self._sizes)

    def pack(self, state: Any, source: str | None = None) -> Tensor:
        """The state as a vector; its structure and shapes are checked.

        Args:
            state: the state.
            source: what returned it, for errors.
        """
        source = source or self._what
        found = list(leaves(state))
        if len(found) != len(self._shapes) or (type(state) is not type(self._state) and (self._single or isinstance(state, (dict, Tensor)))):
            raise ValueError(f"[{self._owner}] {source} has another structure than {self._what}: {_outline(state)} "
                             f"instead of {_outline(self._state)}.")
        for leaf, shape in zip(found, self._shapes):
            if not isinstance(leaf, Tensor) or list(leaf.shape) != shape:
                raise ValueError(f"[{self._owner}] {source} must have the shapes of {self._what}, but there is "
                                 f"{_outline(leaf)} where {shape} is expected.")
        flat = [ops.reshape(leaf if leaf.dtype == self.dtype else ops.cast(leaf, self.dtype), [-1]) for leaf in found]
        return flat[0] if len(flat) == 1 else ops.concat(flat, 0)

    def unpack(self, vector: Tensor, leading: list[int] | None = None) -> Any:
        """The state that a vector holds; ``leading`` are sizes of axes before the vector's."""
        leading = leading or []
        if self._single:
            return ops.reshape(vector, [*leading, *self._shapes[0]])
        parts, at = [], 0
        for shape, size in zip(self._shapes, self._sizes):
            parts.append(ops.reshape(vector[..., at : at + size], [*leading, *shape]))
            at += size
        return rebuilt(self._state, iter(parts))

    def spread(self, value: Any, name: str) -> Any:
        """A setting per element: a number, or a tree (or tensor) that fits the state, as a vector."""
        if isinstance(value, (int, float)):
            return float(value)
        own = list(leaves(value))
        if len(own) != len(self._shapes):
            raise ValueError(f"[{self._owner}] {name} must be a number or have the structure of {self._what}: "
                             f"{_outline(value)} instead of {_outline(self._state)}.")
        real = ops.real(ops.zeros([0], self.dtype)).dtype if "complex" in str(self.dtype) else self.dtype
        flat = []
        for one, shape in zip(own, self._shapes):
            tensor = ops.cast(one, real) if isinstance(one, Tensor) else ops.full([], float(one), real)
            try:
                flat.append(ops.reshape(ops.broadcast_to(tensor, shape), [-1]))
            except ValueError:
                raise ValueError(f"[{self._owner}] {name} of shape {list(tensor.shape)} does not fit a state of shape "
                                 f"{shape}.") from None
        return flat[0] if len(flat) == 1 else ops.concat(flat, 0)


def _outline(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_outline(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        return "(" + ", ".join(_outline(value) for value in tree) + ")"
    return f"a tensor of shape {list(tree.shape)}" if isinstance(tree, Tensor) else type(tree).__name__


def positive(owner: str, **settings: float) -> None:
    """Raises an error for a setting that is not above zero."""
    for name, value in settings.items():
        if not (isinstance(value, (int, float)) and value > 0):
            raise ValueError(f"[{owner}] {name} must be a number above 0, but is {value!r}.")


def at_least_one(owner: str, **settings: int) -> None:
    """Raises an error for a count below one."""
    for name, value in settings.items():
        if not (isinstance(value, int) and value >= 1):
            raise ValueError(f"[{owner}] {name} must be an integer of at least 1, but is {value!r}.")


Residual = Callable[[Tensor], Tensor]
