"""Networks: layers, initialisers, losses and gradient clipping."""

from oar.nn import attention, functional, init, initializer, layer, quant, utils
from oar.nn._second_names import *  # noqa: F403
from oar.nn._second_names import __all__ as _second_names
from oar.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from oar.nn.decode import BeamSearchDecoder, dynamic_decode
from oar.nn.layer import *  # noqa: F403
from oar.nn.layer import __all__ as _layers
from oar.nn.layer import loss
from oar.nn.utils import spectral_norm

__all__ = [*_layers, *_second_names, "BeamSearchDecoder", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue",
           "dynamic_decode"]  # fmt: skip
