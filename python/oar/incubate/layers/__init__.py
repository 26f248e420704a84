"""Layers of Paddle's incubating names."""

from oar.incubate.layers.nn import shuffle_batch, tdm_child

__all__ = ["shuffle_batch", "tdm_child"]
