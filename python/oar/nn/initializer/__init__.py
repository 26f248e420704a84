"""First values for parameters."""

from oar.nn.initializer import lazy_init  # noqa: F401
from oar.nn.initializer.fixed_init import Assign, Bilinear, Constant, Dirac, Orthogonal
from oar.nn.initializer.initializer import (
    Initializer,
    LazyGuard,
    _global_initializer,
    calculate_gain,
    lazy_init_active,
    set_global_initializer,
)
from oar.nn.initializer.older_init import (  # noqa: F401
    ConstantInitializer,
    MSRAInitializer,
    NormalInitializer,
    NumpyArrayInitializer,
    TruncatedNormalInitializer,
    UniformInitializer,
    XavierInitializer,
)
from oar.nn.initializer.random_init import (
    KaimingNormal,
    KaimingUniform,
    Normal,
    TruncatedNormal,
    Uniform,
    XavierNormal,
    XavierUniform,
)

__all__ = [
    "Assign",
    "Bilinear",
    "Constant",
    "Dirac",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Orthogonal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "calculate_gain",
    "set_global_initializer",
]
