"""``LazyGuard``, in the module where Paddle's programs look for it too."""

from oar.nn.initializer.initializer import LazyGuard

__all__ = ["LazyGuard"]
