"""Losses as layers."""

from oar.nn.layer.loss import classification, margin, regression, sequence
from oar.nn.layer.loss.classification import *  # noqa: F403
from oar.nn.layer.loss.margin import *  # noqa: F403
from oar.nn.layer.loss.regression import *  # noqa: F403
from oar.nn.layer.loss.sequence import *  # noqa: F403

__all__ = [*classification.__all__, *margin.__all__, *regression.__all__, *sequence.__all__]
