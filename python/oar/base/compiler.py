"""``oar.static``'s strategies under their other path."""

from oar.static.executor import BuildStrategy, CompiledProgram, ExecutionStrategy

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]
