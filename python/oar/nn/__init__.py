"""Networks: layers, initialisers, losses and gradient clipping."""

from oar.nn import functional, initializer, layer, utils
from oar.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from oar.nn.layer import *  # noqa: F403
from oar.nn.layer import __all__ as _layers
from oar.nn.layer import loss
from oar.nn.utils import spectral_norm

__all__ = [*_layers, "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]
