"""``oar.static``'s gradients under their other path."""

from oar.static.backward import append_backward, gradients

__all__ = ["append_backward", "gradients"]
