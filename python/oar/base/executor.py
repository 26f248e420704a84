"""``oar.static``'s executor under its other path."""

from oar.static.executor import Executor, Scope, global_scope, scope_guard

__all__ = ["Executor", "Scope", "global_scope", "scope_guard"]
