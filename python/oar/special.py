"""Special functions."""

from oar import expm1, logsumexp, softmax

__all__ = ["expm1", "logsumexp", "softmax"]
