"""Functions of networks: activations, convolutions, pooling, normalisation, losses.

Nearly all of them are ops of the core. `_attach_ops` adds each op whose record (src/oar/ops/families) names this module in its field
`python`; `help(oar.nn.functional.softmax)` shows an op's schema. The Python code here is for what is not an op.
"""

from __future__ import annotations

from oar._C import ops as _ops
from oar._registry import functions_of
from oar.nn.functional import (
    activation,
    common,
    conv,
    experts,
    flash_attention,
    loss,
    masked_attention,
    pooling,
    sampling,
    vision,
)
from oar.nn.functional.activation import *  # noqa: F403
from oar.nn.functional.activation import hard_sigmoid, hard_swish
from oar.nn.functional.common import *  # noqa: F403
from oar.nn.functional.conv import *  # noqa: F403
from oar.nn.functional.experts import *  # noqa: F403
from oar.nn.functional.loss import *  # noqa: F403
from oar.nn.functional.masked_attention import *  # noqa: F403
from oar.nn.functional.pooling import *  # noqa: F403
from oar.nn.functional.sampling import *  # noqa: F403
from oar.nn.functional.vision import *  # noqa: F403
from oar.nn.functional.input import one_hot
from oar.nn.functional.flash_attention import (
    flash_attention_v3_varlen,
    flash_attn_qkvpacked,
    flash_attn_varlen_qkvpacked,
)

from oar.nn.functional import distance, extension, input, norm  # noqa: E402,F401

_KINDS = (
    activation,
    common,
    conv,
    experts,
    loss,
    masked_attention,
    pooling,
    sampling,
    vision,
)
__all__: list[str] = [*(name for kind in _KINDS for name in kind.__all__), "flash_attention", "flash_attention_v3_varlen",
                      "flash_attn_qkvpacked", "flash_attn_varlen_qkvpacked", "one_hot"]


def _attach_ops() -> None:
    """Add the ops to this module. A name that Python code here defines already is left alone."""
    names = globals()
    for name, function in functions_of("oar.nn.functional").items():
        if name not in names:
            names[name] = function
            __all__.append(name)


_attach_ops()
diag_embed = _ops.diag_embed  # its older place
embedding_renorm_ = input.embedding_renorm_
pdist = distance.pdist
