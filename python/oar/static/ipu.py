"""The names for IPUs. Each raises an error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oar.static.program import Program

__all__ = ["IpuCompiledProgram", "IpuStrategy", "ipu_shard_guard", "set_ipu_shard"]


def _no_ipu(name: str, way_out: str) -> str:
    return f"[static.{name}] there is no IPU; devices other than the CPU are plug-ins. hint: {way_out}"


class IpuStrategy:
    """Raises an error: there are no IPUs to configure.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.static.IpuStrategy()
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        RuntimeError
    """

    def __init__(self) -> None:
        raise RuntimeError(_no_ipu("IpuStrategy", "run the program as it is, or with a BuildStrategy."))


class IpuCompiledProgram:
    """Raises an error: there are no IPUs to compile a program for.

    Args:
        program: the program.
        scope: the scope.
        ipu_strategy: accepted for compatibility.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.static.IpuCompiledProgram()
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        ValueError
    """

    def __init__(self, program: Program | None = None, scope: Any = None, ipu_strategy: Any = None) -> None:
        raise ValueError(_no_ipu("IpuCompiledProgram", "give the program itself to Executor.run, or a CompiledProgram."))


@contextlib.contextmanager
def ipu_shard_guard(index: int = -1, stage: int = -1) -> Iterator[None]:
    """Raises an error: there are no IPUs to divide calls between.

    Args:
        index: accepted for compatibility.
        stage: accepted for compatibility.

    Examples:
        >>> import oar
        >>> try:
        ...     with oar.static.ipu_shard_guard():
        ...         pass
        ... except ValueError as error:
        ...     print(type(error).__name__)
        ...
        ValueError
    """
    raise ValueError(_no_ipu("ipu_shard_guard", "leave the guard out; all calls run on the CPU."))
    yield


def set_ipu_shard(call_func: Any, index: int = -1, stage: int = -1) -> Any:
    """Raises an error: there are no IPUs to divide calls between.

    Args:
        call_func: accepted for compatibility.
        index: accepted for compatibility.
        stage: accepted for compatibility.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.static.set_ipu_shard(None)
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        ValueError
    """
    raise ValueError(_no_ipu("set_ipu_shard", "call the function as it is; all calls run on the CPU."))
