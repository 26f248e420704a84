"""Scopes: what lives on between runs, by name."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar._tensor_content import set_tensor
from oar.static.program import written_elsewhere

__all__ = ["LoDTensor", "Scope", "ScopeVariable", "global_scope", "scope_guard"]


class LoDTensor:
    """A tensor as older programs handle it: ``set`` sets its content, ``np.array`` reads it.

    Args:
        scope: the scope.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> rows = oar.base.create_lod_tensor(np.ones([5, 1], 'float32'), [[2, 3]], oar.CPUPlace())
        >>> rows.recursive_sequence_lengths()
        [[2, 3]]
    """

    def __init__(self, scope: Scope | None = None, name: str = "") -> None:
        self._scope = Scope() if scope is None else scope
        self._name = name
        self._lengths: list[list[int]] = []

    @property
    def _tensor(self) -> Tensor:
        found = self._scope._tensors.get(self._name)
        if found is None:
            raise RuntimeError("the tensor has no content yet; give it one with set().")
        return found

    def set(self, value: Any, place: Any = None) -> None:
        """Give it another content."""
        self._scope._set(self._name, value)

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._tensor.shape)

    def lod(self) -> list[list[int]]:
        """Where sequences begin and end, for each level of ``recursive_sequence_lengths``."""
        return [list(itertools.accumulate(level, initial=0)) for level in self._lengths]

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths that were given with the content, level by level."""
        return [list(level) for level in self._lengths]

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Sequence[Sequence[int]]) -> None:
        """Keep lengths of sequences, level by level; the last one counts rows."""
        levels = [list(level) for level in recursive_sequence_lengths]
        counts = [*map(len, levels[1:]), self.shape()[0]] if levels else []
        for level, count in zip(levels, counts):
            if sum(level) != count:
                raise ValueError(f"the lengths {level} add up to {sum(level)}, but there are {count} parts to divide.")
        self._lengths = levels

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """True: lengths that do not fit are rejected when they are set."""
        return True

    def _dtype(self) -> Any:
        return self._tensor.dtype

    def _is_initialized(self) -> bool:
        return self._name in self._scope._tensors

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._tensor.numpy(), dtype)

    def __repr__(self) -> str:
        return repr(self._tensor) if self._is_initialized() else "LoDTensor()"


class TensorContent(LoDTensor):
    """The content of a tensor of eager mode, for ``Tensor.get_tensor``."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self._held = tensor

    @property
    def _tensor(self) -> Tensor:
        return self._held

    def set(self, value: Any, place: Any = None) -> None:
        """Give the tensor another content."""
        set_tensor(self._held, oar.to_tensor(value, place=place))

    def _is_initialized(self) -> bool:
        return True


class ScopeVariable:
    """What a scope holds under one name."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope, self._name = scope, name

    def name(self) -> str:
        """Its name."""
        return self._name

    def get_tensor(self) -> LoDTensor:
        """Its content."""
        return LoDTensor(self._scope, self._name)

    def is_initialized(self) -> bool:
        """Whether it has a content."""
        return self._scope._tensors.get(self._name) is not None or self.is_int()

    def set_int(self, value: int) -> None:
        """Give it a number instead of a tensor."""
        self._scope._integers[self._name] = int(value)

    def get_int(self) -> int:
        """Its number."""
        return self._scope._integers[self._name]

    def is_int(self) -> bool:
        """Whether it is a number."""
        return self._name in self._scope._integers


class Scope:
    """Tensors by name, with a parent to look further in.

    Args:
        parent: the scope to look further in, or None.

    Examples:
        >>> import oar
        >>> scope = oar.static.Scope()
        >>> with oar.static.scope_guard(scope):
        ...     print(oar.static.global_scope() is scope)
        ...
        True
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self._tensors: dict[str, Tensor] = {}
        self._names: set[str] = set()  # of variables without a content yet
        self._integers: dict[str, int] = {}
        self._pooled = True
        self._parent = parent
        self._kids: list[Scope] = []
        self._epoch = 0

    def var(self, name: str) -> ScopeVariable:
        """The variable of this name, created if there is none."""
        self._names.add(name)
        return ScopeVariable(self, name)

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of this name, here or in a parent."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._tensors or name in scope._names:
                return ScopeVariable(scope, name)
            scope = scope._parent
        return None

    def local_var_names(self) -> list[str]:
        """The names here."""
        return sorted(self._names | set(self._tensors))

    def size(self) -> int:
        """How many variables there are here."""
        return len(self.local_var_names())

    def _remove_from_pool(self) -> None:
        if not self._pooled:
            raise ValueError("Deleting a nonexistent scope is not allowed.")
        self._pooled = False

    def erase(self, names: Sequence[str]) -> None:
        """Forget some variables."""
        for name in names:
            self._tensors.pop(name, None)
            self._names.discard(name)
        self._epoch += 1

    def new_scope(self) -> Scope:
        """A scope with this one as its parent."""
        self._kids.append(Scope(self))
        return self._kids[-1]

    def drop_kids(self) -> None:
        """Drop the scopes created here."""
        self._kids.clear()

    def _content(self, name: str) -> Tensor:
        """The content of a variable, which must have one."""
        found = self._tensor(name)
        if found is None:
            raise RuntimeError(f"the variable {name!r} has no content in this scope. Run the startup program first.")
        return found

    def _tensor(self, name: str) -> Tensor | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope._tensors:
                return scope._tensors[name]
            scope = scope._parent
        return None

    def _put(self, name: str, tensor: Tensor) -> None:
        tensor.name = name
        tensor.persistable = True
        self._tensors[name] = tensor
        self._epoch += 1

    def _set(self, name: str, value: Any) -> None:
        with written_elsewhere():
            new = value if isinstance(value, Tensor) else oar.to_tensor(np.asarray(value))
            there = self._tensor(name)
            if there is not None and list(there.shape) == list(new.shape) and there.dtype == new.dtype:
                there.set_value(new)
            else:
                self._put(name, new.detach().clone())


_global_scope = Scope()
_scopes = [_global_scope]


def global_scope() -> Scope:
    """The scope that runs use unless they are given one.

    Examples:
        >>> import oar
        >>> oar.static.global_scope() is oar.static.global_scope()
        True
    """
    return _scopes[-1]


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Another global scope within the block.

    Args:
        scope: the scope.

    Examples:
        >>> import oar
        >>> scope = oar.static.Scope()
        >>> with oar.static.scope_guard(scope):
        ...     print(oar.static.global_scope() is scope)
        ...
        True
    """
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()
