"""He's initializers, under Paddle's inner path."""

from oar.nn.initializer.random_init import KaimingNormal, KaimingUniform

__all__ = ["KaimingNormal", "KaimingUniform"]
