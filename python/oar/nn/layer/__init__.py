"""The layers, one file per kind."""

from oar._spelling import respell_constructors
from oar.nn.layer import (
    activation,
    common,
    container,
    conv,
    distance,
    dropout,
    layers,
    loss,
    norm,
    pooling,
    rnn,
    spectral,
    transformer,
    vision,
)
from oar.nn.layer.activation import *  # noqa: F403
from oar.nn.layer.common import *  # noqa: F403
from oar.nn.layer.container import *  # noqa: F403
from oar.nn.layer.conv import *  # noqa: F403
from oar.nn.layer.distance import *  # noqa: F403
from oar.nn.layer.dropout import *  # noqa: F403
from oar.nn.layer.layers import *  # noqa: F403
from oar.nn.layer.loss import *  # noqa: F403
from oar.nn.layer.norm import *  # noqa: F403
from oar.nn.layer.pooling import *  # noqa: F403
from oar.nn.layer.rnn import *  # noqa: F403
from oar.nn.layer.spectral import *  # noqa: F403
from oar.nn.layer.transformer import *  # noqa: F403
from oar.nn.layer.vision import *  # noqa: F403

_KINDS = (
    activation,
    common,
    container,
    conv,
    distance,
    dropout,
    layers,
    loss,
    norm,
    pooling,
    rnn,
    spectral,
    transformer,
    vision,
)
__all__ = sorted(name for kind in _KINDS for name in kind.__all__)

respell_constructors({base for name in __all__ for base in getattr(globals()[name], "__mro__", ())
                      if base.__module__.startswith("oar.")})
