"""``oar.io.collate`` under Paddle's inner path."""

from oar.io.collate import default_collate_fn, default_convert_fn

__all__ = ["default_convert_fn", "default_collate_fn"]
