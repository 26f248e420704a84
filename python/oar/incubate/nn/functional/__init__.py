"""Functions that do several steps of a network at once."""

from oar.incubate.nn.functional.attention import *  # noqa: F403
from oar.incubate.nn.functional.attention import __all__ as _ATTENTION
from oar.incubate.nn.functional.backward import *  # noqa: F403
from oar.incubate.nn.functional.backward import __all__ as _BACKWARD
from oar.incubate.nn.functional.block_attention import *  # noqa: F403
from oar.incubate.nn.functional.block_attention import __all__ as _BLOCK_ATTENTION
from oar.incubate.nn.functional.dispatch import *  # noqa: F403
from oar.incubate.nn.functional.dispatch import __all__ as _DISPATCH
from oar.incubate.nn.functional.experts import *  # noqa: F403
from oar.incubate.nn.functional.experts import __all__ as _EXPERTS
from oar.incubate.nn.functional.gpu import *  # noqa: F403
from oar.incubate.nn.functional.gpu import __all__ as _GPU
from oar.incubate.nn.functional.linear import *  # noqa: F403
from oar.incubate.nn.functional.linear import __all__ as _LINEAR
from oar.incubate.nn.functional.multi_transformer import *  # noqa: F403
from oar.incubate.nn.functional.multi_transformer import __all__ as _MULTI_TRANSFORMER
from oar.incubate.nn.functional.norms import *  # noqa: F403
from oar.incubate.nn.functional.norms import __all__ as _NORMS

__all__ = [*_ATTENTION, *_BACKWARD, *_BLOCK_ATTENTION, *_DISPATCH, *_EXPERTS, *_GPU, *_LINEAR, *_MULTI_TRANSFORMER,
           *_NORMS]
