"""Functions of networks: activations, convolutions, pooling, normalisation, losses.

Nearly all of them are ops of the core and come from the op registry: each op whose record names this module. What
stands here in Python is only what is no op.
"""

from __future__ import annotations

from oar._C import ops as _ops
from oar._registry import functions_of
from oar.nn.functional import (
    activation,
    common,
    conv,
    flash_attention,
    loss,
    pooling,
    sampling,
    vision,
)
from oar.nn.functional.activation import *  # noqa: F403
from oar.nn.functional.activation import hard_sigmoid, hard_swish
from oar.nn.functional.common import *  # noqa: F403
from oar.nn.functional.conv import *  # noqa: F403
from oar.nn.functional.loss import *  # noqa: F403
from oar.nn.functional.pooling import *  # noqa: F403
from oar.nn.functional.sampling import *  # noqa: F403
from oar.nn.functional.vision import *  # noqa: F403
from oar.nn.functional.flash_attention import flash_attn_qkvpacked, flash_attn_varlen_qkvpacked

from oar.nn.functional import distance, extension, input, norm  # noqa: E402,F401

_KINDS = (
    activation,
    common,
    conv,
    loss,
    pooling,
    sampling,
    vision,
)
__all__: list[str] = [*(name for kind in _KINDS for name in kind.__all__), "flash_attention", "flash_attn_qkvpacked",
                      "flash_attn_varlen_qkvpacked"]


# Functions that are ops, in the modules where Paddle's programs look for them too.
_INNER = {
    activation: ("gelu", "hardshrink", "leaky_relu", "log_sigmoid", "relu", "relu6", "selu", "silu", "softmax"),
    common: ("cosine_similarity", "interpolate", "linear", "pad", "unfold", "upsample"),
    vision: ("affine_grid", "channel_shuffle", "grid_sample", "pixel_shuffle", "pixel_unshuffle"),
}


def _attach_ops() -> None:
    """Add the ops to this module. A name that Python code here defines already is left alone."""
    names = globals()
    for name, function in functions_of("oar.nn.functional").items():
        if name not in names:
            names[name] = function
            __all__.append(name)
    for module, inner in _INNER.items():
        for name in inner:
            setattr(module, name, names[name])


_attach_ops()
diag_embed = _ops.diag_embed  # its older place
