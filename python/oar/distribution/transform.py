"""Transforms of random variables."""

from oar.distribution._composed_transforms import (
    ChainTransform, IndependentTransform, ReshapeTransform, SoftmaxTransform, StackTransform, StickBreakingTransform)
from oar.distribution._elementwise_transforms import (
    AbsTransform, AffineTransform, ExpTransform, PowerTransform, SigmoidTransform, TanhTransform)
from oar.distribution._transform import Transform, Type  # noqa: F401

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ChainTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
]
