"""Activations as layers."""

from oar.nn.layer.activation import along_axis, plain, shaped
from oar.nn.layer.activation.along_axis import *  # noqa: F403
from oar.nn.layer.activation.plain import *  # noqa: F403
from oar.nn.layer.activation.shaped import *  # noqa: F403

__all__ = [*along_axis.__all__, *plain.__all__, *shaped.__all__]
