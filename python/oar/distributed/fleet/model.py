"""``distributed_model`` by the path that Paddle's scripts use."""

from oar.distributed.fleet.optimizer import distributed_model

__all__ = ["distributed_model"]
