"""Training of large models. What helps a single process is here: recomputation."""

from oar.distributed.fleet import recompute, utils

__all__ = ["recompute", "utils"]
