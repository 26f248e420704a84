"""Small helpers: unique names, optional imports, versions, extensions."""

from oar.framework import unique_name
from oar.utils import dlpack
from oar._lazy import LazyNames
from oar.utils.helpers import deprecated, require_version, strtobool, try_import  # noqa: F401  (strtobool as in Paddle)
from oar.utils.register_op import register_op

__all__ = ["cpp_extension", "deprecated", "dlpack", "download", "register_op", "require_version", "run_check",
           "try_import", "unique_name"]  # fmt: skip

# The nests need oar.jit, which needs this module; few programs need the others.
_lazy_names = LazyNames(
    "oar.utils", ("cpp_extension", "download", "flops", "gast", "install_check", "layers_utils", "profiler"),
    {"oar.utils.install_check": ("run_check",),
     "oar.utils.layers_utils": ("assert_same_structure", "convert_to_list", "flatten", "is_same_shape",
                                "is_sequence", "map_structure", "pack_sequence_as", "to_sequence")})  # fmt: skip


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
