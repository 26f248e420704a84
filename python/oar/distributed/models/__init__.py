"""Parts of networks of several processes."""

from oar.distributed.models import moe

__all__ = ["moe"]
