"""Tensors on the memory of others, and the other way round."""

from oar._creation import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
