"""Names that do not repeat: ``linear_0``, ``linear_1``, ``linear_0.w_0``, …

A generator counts how often each key was requested. ``guard`` swaps the generator for the duration of a
``with`` block, so that a model built twice inside two guards carries the same names.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from oar._framework import in_dynamic_mode

__all__ = ["UniqueNameGenerator", "generate", "generate_with_ignorable_key", "guard", "switch"]


class UniqueNameGenerator:
    """Counts keys and returns ``prefix + key_n``.

    Args:
        prefix: put before every name.

    Examples:
        >>> import oar
        >>> generator = oar.utils.unique_name.UniqueNameGenerator('net_')
        >>> generator('linear'), generator('linear')
        ('net_linear_0', 'net_linear_1')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self.ids: dict[str, int] = {}
        self.prefix = prefix or ""

    def __call__(self, key: str) -> str:
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"

    def peek(self, key: str, ahead: int) -> str:
        """The name that ``key`` will have after so many others, without handing it out."""
        return f"{self.prefix}{key}_{self.ids.get(key, 0) + ahead}"


_current = UniqueNameGenerator()


def generate(key: str) -> str:
    """The next name for ``key``.

    Args:
        key: the first part of the name.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> with oar.utils.unique_name.guard():
        ...     print(oar.utils.unique_name.generate('linear'), oar.utils.unique_name.generate('linear'))
        ...
        linear_0 linear_1
    """
    return _current(key)


generate_with_ignorable_key = generate


def generate_within(owner: dict[str, int], key: str) -> str:
    """The next name for ``key``, counted by an owner whose own name, the beginning of the key, no other has."""
    number = owner.get(key, 0)
    owner[key] = number + 1
    return f"{_current.prefix}{key}_{number}"


def generate_for(owner: Any, key: str) -> str:
    """The next name for ``key``, which begins with the name of a tensor. The tensor counts, so nothing is left of it.

    In static mode tensors of one name in two programs are one, and the generator counts for both.
    """
    if not in_dynamic_mode():
        return generate(key)
    counts = getattr(owner, "_name_counts", None)
    if counts is None:
        counts = owner._name_counts = {}
    return generate_within(counts.setdefault(_current, {}), key)


def switch(new_generator: UniqueNameGenerator | None = None, new_para_name_checker: object = None) -> UniqueNameGenerator:
    """Install ``new_generator`` (a fresh one when None) and return the one it replaces.

    Args:
        new_generator: a generator, a prefix, or None for a fresh one.
        new_para_name_checker: accepted for compatibility.

    Examples:
        >>> import oar
        >>> before = oar.utils.unique_name.switch()
        >>> oar.utils.unique_name.generate('linear')
        'linear_0'
        >>> _ = oar.utils.unique_name.switch(before)
    """
    global _current
    old = _current
    _current = UniqueNameGenerator() if new_generator is None else new_generator
    return old


def same_names(function: Callable) -> Callable:
    """The function, which uses the names of its first call at every call."""
    first: UniqueNameGenerator | None = None

    def call(*args: Any) -> Any:
        nonlocal first
        if first is None:
            first = copy.deepcopy(_current)
            return function(*args)
        with guard(copy.deepcopy(first)):
            return function(*args)

    return call


@contextlib.contextmanager
def guard(new_generator: str | bytes | UniqueNameGenerator | None = None) -> Iterator[None]:
    """Use another generator inside the block; a string is the prefix of a fresh one.

    Args:
        new_generator: a generator, a prefix, or None for a fresh one.

    Examples:
        >>> import oar
        >>> with oar.utils.unique_name.guard('net_'):
        ...     print(oar.utils.unique_name.generate('linear'))
        ...
        net_linear_0
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
