"""Parts of networks of several processes."""

from oar.incubate.distributed.models import moe

__all__ = ["moe"]
